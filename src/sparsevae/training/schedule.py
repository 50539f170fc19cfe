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
    proximal : bool
        Whether the mask's penalty acts through proximal steps, which make exact zeros; see `ProximalAdam`.
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
    proximal: bool = True
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
    spike_rate: Rate,
    slab_rate: Rate,
    n_rungs: int = 8,
    patience: int = 0,
) -> list[Phase]:
    """The ladder: begin like a lasso, end like a spike and slab, each rung from where the last one ended.

    Parameters
    ----------
    n_epochs : int
        Of all rungs together; a third goes to the lasso, a third to the rungs, a third to the last rung.
    learning_rate : float
    spike_rate : float or Tensor
        λ0, on every rung, and of the lasso.
    slab_rate : float or Tensor
        λ1 of the last rung; it falls geometrically from λ0.
    n_rungs : int
        At most; fewer where epochs are few.
    patience : int
        Of the last rung, see `Phase`.
    """
    lasso = climb = round(0.35 * n_epochs)
    n_rungs = min(n_rungs, climb + 1)

    def phase(name: str, epochs: int, speed: tuple[float, float], share: float, **options: Any) -> Phase:
        return Phase(
            name,
            epochs,
            (speed[0] * learning_rate, speed[1] * learning_rate),
            spike_rate=spike_rate,
            slab_rate=spike_rate * (slab_rate / spike_rate) ** share,
            **options,
        )

    phases = []
    if lasso:
        phases.append(phase("lasso", lasso, (1.0, 1.0), 0.0, penalty_warmup=min(10, lasso)))
    for rung, epochs in enumerate(_spread(climb, n_rungs - 1), start=1):
        phases.append(phase("ladder", epochs, (1.0, 1.0), rung / n_rungs))
    phases.append(phase("final", n_epochs - lasso - climb, (1.0, 0.1), 1.0, patience=patience))
    return phases


def _spread(total: int, parts: int) -> list[int]:
    cuts = [math.floor(total * i / parts) for i in range(parts + 1)] if parts else []
    return [b - a for a, b in pairwise(cuts)]
