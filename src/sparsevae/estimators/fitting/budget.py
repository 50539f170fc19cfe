"""How many epochs each part of a fit gets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Budget"]

_LADDER = (900, 40, 200)  # gradient steps, and between how many epochs they must be
# The least number of them, which binds where a batch holds all rows: after fewer, entries are still on their
# way to zero at the top of the ladder.
_LADDER_STEPS = 400
# A small table has many starts, and last steps until nothing moves.
_DENSE = (900, 30, 150)
_REFINE = (1350, 20, 300)
_POLISH = 30
# In a large one a plain VAE costs little beside the ladder that follows; last steps, which no held-out row
# watches, soon learn rows by heart.
_DENSE_LARGE = (3000, 60, 150)
_REFINE_LARGE = (300, 10, 100)
_POLISH_LARGE = 20
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
    def of(
        cls, max_epochs: int | None, n_steps: int, *, small: bool = True, from_plain: bool = True
    ) -> Budget:
        """Enough epochs of ``n_steps`` gradient steps each, or exactly as many as the user allows.

        Parameters
        ----------
        max_epochs : int, optional
        n_steps : int
        small : bool
            Whether the table is small, see `is_small`.
        from_plain : bool
            Whether the fit starts from plain VAEs.
        """
        if max_epochs is None:
            dense = _epochs(_DENSE if small or not from_plain else _DENSE_LARGE, n_steps)
            refine = _epochs(_REFINE if small else _REFINE_LARGE, n_steps)
            ladder = max(_epochs(_LADDER, n_steps), math.ceil(_LADDER_STEPS / n_steps))
            return cls(dense, ladder, refine, _POLISH if small else _POLISH_LARGE)
        dense, refine, polish = (int(share * max_epochs) for share in _SHARES.values())
        polish = min(polish, _POLISH)
        return cls(dense, max_epochs - dense - refine - polish, refine, polish)

    @property
    def total(self) -> int:
        """Epochs of one candidate from its start to the end of the fit."""
        return self.dense + self.ladder + self.refine + self.polish


def _epochs(plan: tuple[int, int, int], n_steps: int) -> int:
    steps, least, most = plan
    return int(np.clip(math.ceil(steps / n_steps), least, most))
