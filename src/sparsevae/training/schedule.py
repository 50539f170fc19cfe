"""What a fit does when: phases with their Laplace rates, learning rates and lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

__all__ = ["Phase", "Rate", "ladder"]

Rate = float | Tensor
"""A Laplace rate: one number, or a tensor that broadcasts against the mask."""


@dataclass(frozen=True)
class Phase:
    """A stretch of training with one setting.

    Attributes
    ----------
    name : str
        Shown in the history: "dense", "warm-up", "ladder", "final" or "polish".
    epochs : int
    learning_rate : (float, float)
        At the beginning and at the end, changing linearly.
    spike_rate, slab_rate : float or Tensor
        Exact Laplace rates λ0, λ1.
    kl_warmup : int
        Epochs over which the KL term grows to its full weight.
    penalty_warmup : int
        Epochs over which the mask penalty grows to its full weight.
    hold_mask : bool
        Only the network moves.
    full_batch : bool
        One step per epoch with the gradient of all rows.
    patience : int
        Stop after this many epochs without a better held-out bound, and go back to the best; 0 for never.
    """

    name: str
    epochs: int
    learning_rate: tuple[float, float]
    spike_rate: Rate = 1.0
    slab_rate: Rate = 1.0
    kl_warmup: int = 0
    penalty_warmup: int = 0
    hold_mask: bool = False
    full_batch: bool = False
    patience: int = 0

    def rate_at(self, epoch: int) -> float:
        """Learning rate of an epoch of this phase."""
        start, end = self.learning_rate
        return start + (end - start) * (epoch / max(1, self.epochs - 1))


def ladder(
    n_epochs: int,
    learning_rate: float,
    *,
    spike_rates: tuple[Rate, Rate],
    slab_rates: tuple[Rate, Rate],
    n_rungs: int = 8,
    n_polish: int = 30,
    patience: int = 0,
) -> list[Phase]:
    r"""The two-sided ladder: begin like a lasso, end like a spike and slab, each rung from where the last one ended.

    Parameters
    ----------
    n_epochs : int
        Of all rungs together; a third goes to the lasso, a third to the rungs, a third to the last rung.
    learning_rate : float
    spike_rates, slab_rates : pairs of float or Tensor
        First and last rates; rungs between are geometric.
    """
    lasso, climb = max(1, round(0.35 * n_epochs)), max(n_rungs - 1, round(0.35 * n_epochs))
    last = max(1, n_epochs - lasso - climb)

    def rates(share: float) -> dict[str, Rate]:
        return {
            "spike_rate": spike_rates[0] * (spike_rates[1] / spike_rates[0]) ** share,
            "slab_rate": slab_rates[0] * (slab_rates[1] / slab_rates[0]) ** share,
        }

    phases = [Phase("lasso", lasso, (learning_rate,) * 2, penalty_warmup=min(10, lasso), **rates(0.0))]
    rung_epochs = _spread(climb, n_rungs - 1)
    for rung, epochs in enumerate(rung_epochs, start=1):
        phases.append(Phase("ladder", epochs, (learning_rate,) * 2, **rates(rung / n_rungs)))
    phases.append(Phase("final", last, (learning_rate, 0.1 * learning_rate), patience=patience, **rates(1.0)))
    if n_polish:
        phases.append(Phase("polish", n_polish, (0.3 * learning_rate, 0.1 * learning_rate), full_batch=True, **rates(1.0)))
    return phases


def _spread(total: int, parts: int) -> list[int]:
    cuts = [math.floor(total * i / parts) for i in range(parts + 1)]
    return [max(1, b - a) for a, b in zip(cuts, cuts[1:], strict=False)]
