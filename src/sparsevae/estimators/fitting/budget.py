"""How many epochs each part of a fit gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Budget"]

_STEPS = 900  # gradient steps of the dense starts, and again of the ladder
_DENSE = (30, 150)
_LADDER = (40, 200)
_REFINE_STEPS = 1350  # of the refinement on all rows
_REFINE = (20, 300)
_POLISH = 30
_SHARES = {
    "dense": 0.35,
    "refine": 0.15,
    "polish": 0.1,
}  # of epochs counted by the user; the ladder has the rest


@dataclass(frozen=True)
class Budget:
    """Epochs of a fit from first to last.

    Attributes
    ----------
    dense : int
        Plain VAEs, or the network alone while a given mask is held.
    ladder : int
        From the lasso to the spike and slab.
    refine, polish : int
        On all rows after the choice: in batches, then with the gradient of all rows at once.
    """

    dense: int
    ladder: int
    refine: int
    polish: int

    @classmethod
    def of(cls, max_epochs: int | None, n_steps: int) -> Budget:
        """Enough epochs of ``n_steps`` gradient steps each, or exactly as many as the user allows."""
        if max_epochs is None:
            needed, refine = (math.ceil(steps / n_steps) for steps in (_STEPS, _REFINE_STEPS))
            return cls(
                int(np.clip(needed, *_DENSE)),
                int(np.clip(needed, *_LADDER)),
                int(np.clip(refine, *_REFINE)),
                _POLISH,
            )
        dense, refine, polish = (int(share * max_epochs) for share in _SHARES.values())
        polish = min(polish, _POLISH)
        return cls(dense, max_epochs - dense - refine - polish, refine, polish)

    @property
    def total(self) -> int:
        """Epochs of one candidate from its start to the end of the fit."""
        return self.dense + self.ladder + self.refine + self.polish
