"""What a fit does when: phases with their Laplace rates, learning rates and lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

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
    """The ladder: begin like a lasso, end like a spike and slab, each rung from where the last one ended.

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

    def phase(name: str, epochs: int, speed: tuple[float, float], share: float, **options: Any) -> Phase:
        return Phase(
            name,
            epochs,
            (speed[0] * learning_rate, speed[1] * learning_rate),
            spike_rate=spike_rates[0] * (spike_rates[1] / spike_rates[0]) ** share,
            slab_rate=slab_rates[0] * (slab_rates[1] / slab_rates[0]) ** share,
            **options,
        )

    phases = [phase("lasso", lasso, (1.0, 1.0), 0.0, penalty_warmup=min(10, lasso))]
    for rung, epochs in enumerate(_spread(climb, n_rungs - 1), start=1):
        phases.append(phase("ladder", epochs, (1.0, 1.0), rung / n_rungs))
    phases.append(phase("final", last, (1.0, 0.1), 1.0, patience=patience))
    if n_polish:
        phases.append(phase("polish", n_polish, (0.3, 0.1), 1.0, full_batch=True))
    return phases


def _spread(total: int, parts: int) -> list[int]:
    cuts = [math.floor(total * i / parts) for i in range(parts + 1)]
    return [max(1, b - a) for a, b in pairwise(cuts)]
