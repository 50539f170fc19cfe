"""Rows of a table as tensors, from arrays, CSR matrices and memory maps, without a Python loop per row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.modules.observation import Observation

__all__ = ["Batches", "Table"]

_RESIDENT_BYTES = (
    2 << 30
)  # tables up to this size are kept as one tensor; larger ones are read batch by batch


class Table:
    """A table of samples whose rows can be asked for by index, in the units of the model.

    Parameters
    ----------
    X : ndarray, memmap or CSR matrix of shape (n_samples, n_features)
    observation : Observation
    device : torch.device
    """

    def __init__(self, X: Any, observation: Observation, device: torch.device | str = "cpu") -> None:
        self.X, self.observation, self.device = X, observation, torch.device(device)
        self.n_samples, self.n_features = X.shape
        self._resident: Tensor | None = None
        small = 4 * self.n_samples * self.n_features <= _RESIDENT_BYTES
        if not sparse.issparse(X) and not isinstance(X, np.memmap) and small:
            self._resident = self._to_tensor(X)

    def rows(self, index: Tensor) -> Tensor:
        """Rows by position: (n, n_features), or (R, n, n_features) for an index of shape (R, n)."""
        if self._resident is not None:
            return self._resident[index]
        flat = index.reshape(-1).numpy()
        block = self.X[flat]
        dense = block.toarray() if sparse.issparse(block) else np.asarray(block)
        return self._to_tensor(dense).reshape(*index.shape, self.n_features)

    def _to_tensor(self, block: np.ndarray) -> Tensor:
        # torch has no read-only tensors and warns where it would share such memory.
        block = np.require(block, np.float32, ["C", "W"])
        tensor = torch.as_tensor(block).to(self.device)
        return self.observation.to_model_units(tensor)


class Batches:
    """Shuffled or sequential batches of some rows of a table.

    Parameters
    ----------
    table : Table
    rows : integer Tensor of shape (n_rows,) or (R, n_rows)
        Positions; the second form gives each replicate rows of its own (bootstraps).
    batch_size : int
    generator : torch.Generator
        Of the shuffling.
    """

    def __init__(self, table: Table, rows: Tensor, batch_size: int, generator: torch.Generator) -> None:
        self.table, self.rows, self.generator = table, rows, generator
        self.n_rows = rows.shape[-1]
        self.n_batches = max(1, round(self.n_rows / batch_size))

    def shuffled(self) -> Iterator[Tensor]:
        """Every row once, in batches of nearly equal size: a last crumb would be noise at full step."""
        order = torch.randperm(self.n_rows, generator=self.generator)
        yield from self._batches(self.rows[..., order])

    def sequential(self) -> Iterator[Tensor]:
        """Every row once, in order."""
        yield from self._batches(self.rows)

    def _batches(self, rows: Tensor) -> Iterator[Tensor]:
        for part in torch.tensor_split(rows, self.n_batches, dim=-1):
            yield self.table.rows(part)
