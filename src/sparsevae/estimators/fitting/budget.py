"""How many epochs each part of a fit gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Budget"]

_STEPS = 900  # gradient steps of the ladder, and of dense starts that are many
_DENSE = (30, 150)
_FEW_STEPS = 3000  # of dense starts that are few: a plain VAE costs little beside the ladder that follows
_FEW = (60, 150)
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
    def of(cls, max_epochs: int | None, n_steps: int, *, many_starts: bool = True) -> Budget:
        """Enough epochs of ``n_steps`` gradient steps each, or exactly as many as the user allows."""
        if max_epochs is None:

            def epochs(steps: int, limits: tuple[int, int]) -> int:
                return int(np.clip(math.ceil(steps / n_steps), *limits))

            dense = epochs(_STEPS, _DENSE) if many_starts else epochs(_FEW_STEPS, _FEW)
            return cls(dense, epochs(_STEPS, _LADDER), epochs(_REFINE_STEPS, _REFINE), _POLISH)
        dense, refine, polish = (int(share * max_epochs) for share in _SHARES.values())
        polish = min(polish, _POLISH)
        return cls(dense, max_epochs - dense - refine - polish, refine, polish)

    @property
    def total(self) -> int:
        """Epochs of one candidate from its start to the end of the fit."""
        return self.dense + self.ladder + self.refine + self.polish
