"""Rows of a table as batches, from arrays, CSR matrices and memory maps, without a Python loop per row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.aliases import Matrix
from sparsevae.annotations.missing import has_missing
from sparsevae.modules import Batch, Observation
from sparsevae.stored import StoredTable
from sparsevae.summaries import dense_table
from sparsevae.training.processes import Group

__all__ = ["Batches", "RowSource", "Share"]

_RESIDENT_BYTES = 2 << 30  # values and inputs up to this size are kept as tensors; else read batch by batch
_CELLS_AT_ONCE = 1 << 22  # of a table that are in float64 at a time


class RowSource:
    """A table of samples whose rows can be asked for by position.

    Parameters
    ----------
    X : ndarray, memmap or CSR matrix of shape (n_samples, n_features)
        NaN for what is missing.
    observation : Observation
    device : torch.device
    weight : array of shape (n_samples,), optional
        How often each row counts.
    group : integer array of shape (n_samples,), optional
        Group of each row.
    exposure : array of shape (n_samples,), optional
        Known size of each row.
    holes : bool, optional
        Whether values may be missing; by default whether some are.
    """

    def __init__(
        self,
        X: np.ndarray | sparse.csr_matrix | StoredTable,
        observation: Observation,
        device: torch.device | str = "cpu",
        *,
        weight: np.ndarray | None = None,
        group: np.ndarray | None = None,
        exposure: np.ndarray | None = None,
        holes: bool | None = None,
    ) -> None:
        self.X: Any = X
        self.observation, self.device = observation, torch.device(device)
        self.n_samples, self.n_features = X.shape
        self.weight = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
        self.group = None if group is None else torch.as_tensor(group, dtype=torch.long)
        self.exposure = None if exposure is None else torch.as_tensor(exposure, dtype=torch.float32)
        self.has_missing = has_missing(self.X) if holes is None else holes
        self._resident: Batch | None = None
        small = 8 * self.n_samples * self.n_features <= _RESIDENT_BYTES
        if isinstance(X, np.ndarray) and not isinstance(X, np.memmap) and small:
            step = max(1, _CELLS_AT_ONCE // max(1, self.n_features))
            blocks = [observation.to_model_units(X[i : i + step]) for i in range(0, self.n_samples, step)]
            self._resident = self._observe(torch.cat(blocks), torch.arange(self.n_samples))

    def batch(self, index: Tensor) -> Batch:
        """Rows by position: n of them, or (R, n) for an index of that shape."""
        if self._resident is not None:
            return self._resident.rows(index)
        return self.observed(self.X[index.reshape(-1).numpy()], index)

    def observed(self, block: Matrix, index: Tensor) -> Batch:
        """Rows in the units of the table, array or CSR matrix, of which these are the positions."""
        x = self.observation.to_model_units(dense_table(block))
        return self._observe(x.reshape(*index.shape, self.n_features), index)

    def _observe(self, x: Tensor, index: Tensor) -> Batch:
        """A batch of rows in model units, of which these are the positions."""
        x, observed = x.to(self.device), None
        if self.has_missing:
            observed = ~x.isnan()
            x = torch.where(observed, x, 0.0)
        weight = None if self.weight is None else self.weight[index].to(x)
        group = None if self.group is None else self.group[index].to(self.device)
        exposure = None if self.exposure is None else self.exposure[index].to(self.device)
        return self.observation.batch(x, observed=observed, weight=weight, group=group, exposure=exposure)


class Share(NamedTuple):
    """The rows of a batch that one of several processes takes.

    Attributes
    ----------
    batch : Batch
        These rows.
    rows : slice
        Where they are in the whole batch.
    n_rows : int
        Of the whole batch.
    part : float
        Of the whole batch by weight; 0 for a row that fills the place of none.
    fraction : float
        What part of all rows the whole batch is, by weight.
    """

    batch: Batch
    rows: slice
    n_rows: int
    part: float
    fraction: float


class Batches:
    """Shuffled or sequential batches of some rows of a table.

    Parameters
    ----------
    source : RowSource
    rows : integer Tensor of shape (n_rows,) or (R, n_rows)
        Positions; the second form gives each replicate rows of its own (bootstraps).
    batch_size : int
    generator : torch.Generator
        Of the shuffling.

    Attributes
    ----------
    n_rows, n_batches : int
    n_samples : float
        Rows, each as often as its weight says.
    """

    def __init__(self, source: RowSource, rows: Tensor, batch_size: int, generator: torch.Generator) -> None:
        self.source, self.rows, self.generator = source, rows, generator
        self.n_rows = rows.shape[-1]
        self.n_batches = max(1, round(self.n_rows / batch_size))
        self.n_samples: float = self.n_rows
        if source.weight is not None:
            self.n_samples = float(source.weight[rows].double().sum()) / max(1, rows.shape[:-1].numel())

    @property
    def is_shared(self) -> bool:
        """Whether several processes share the rows out; not those that replicates have of their own."""
        return self.rows.ndim == 1

    def fraction(self, batch: Batch) -> float:
        """What part of the rows a batch is, each as often as its weight says."""
        if batch.weight is None:
            return batch.n_rows / self.n_rows
        return float(batch.weight.double().sum()) / batch.weight.shape[:-1].numel() / self.n_samples

    def shares(self, group: Group | None, *, shuffle: bool) -> Iterator[Share]:
        """What this process takes of each batch: all of it where there is one process."""
        if group is None:
            for batch in self.shuffled() if shuffle else self.sequential():
                yield Share(batch, slice(None), batch.n_rows, 1.0, self.fraction(batch))
            return
        weight = self.source.weight
        for whole in self._positions(shuffle=shuffle):
            rows = group.rows(len(whole))
            total = float(len(whole)) if weight is None else float(weight[whole].double().sum())
            own = whole[rows]
            yield self.share(self.source.batch(own) if len(own) else None, rows, len(whole), total)

    def share(self, batch: Batch | None, rows: slice, n_rows: int, total: float) -> Share:
        """A share of a batch of so many rows and so much weight; without any, a row that fills its place."""
        own = 0.0 if batch is None else float(torch.as_tensor(batch.total_weight).double())
        fraction = total / self.n_samples
        if batch is None or not own:
            return Share(self.first(1)._replace(weight=None), slice(0, 1), n_rows, 0.0, fraction)
        return Share(batch, rows, n_rows, own / total, fraction)

    def shuffled(self) -> Iterator[Batch]:
        """Every row once, in batches of nearly equal size: a last crumb would be noise at full step."""
        yield from map(self.source.batch, self._positions(shuffle=True))

    def first(self, n_rows: int) -> Batch:
        """At most so many of the rows, as they come."""
        return self.source.batch(self.rows[:n_rows])

    def sequential(self) -> Iterator[Batch]:
        """Every row once, in order."""
        yield from map(self.source.batch, self._positions(shuffle=False))

    def spread(self, n_rows: int) -> Batch:
        """At most so many of the rows, evenly spread."""
        return self.source.batch(
            self.rows[torch.linspace(0, self.n_rows - 1, min(n_rows, self.n_rows)).long()]
        )

    def _positions(self, *, shuffle: bool) -> Iterator[Tensor]:
        rows = self.rows
        if shuffle:
            rows = rows[..., torch.randperm(self.n_rows, generator=self.generator)]
        yield from torch.tensor_split(rows, self.n_batches, dim=-1)
