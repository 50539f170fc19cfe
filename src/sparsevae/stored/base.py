"""What every table on disk offers: its shape, rows by position, and all rows in blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError, SparseVAEError
from sparsevae.stored.survey import Survey, survey_blocks

__all__ = ["Rows", "StoredTable", "is_stored"]

Rows: TypeAlias = Matrix
"""Rows in memory: an array or a CSR matrix."""

_CELLS_AT_ONCE = 1 << 20  # of a table that are looked at together
_GAP = 8  # rows that are read for nothing rather than by a second access


def is_stored(X: object) -> TypeGuard[StoredTable]:
    """Whether a table stays on disk."""
    return isinstance(X, StoredTable)


class StoredTable(ABC):
    """A table whose rows are read when they are asked for, and not kept.

    A subclass says how consecutive rows are read, in `_read`.

    Parameters
    ----------
    where : str
        What messages call it.
    shape : (int, int)
    dtype : dtype
        Of the numbers on disk.
    is_sparse : bool
        Whether rows come as CSR matrices.
    chunk : int
        Rows that are stored together: one of them costs as much as all.
    feature_names : ndarray of str, optional

    Attributes
    ----------
    dtype : dtype
        Of the rows in memory: float32 where that is exact, else float64.
    survey : Survey
        What one pass over all rows finds; made when it is first asked for.
    """

    def __init__(
        self,
        where: str,
        shape: tuple[int, ...],
        dtype: DTypeLike,
        *,
        is_sparse: bool = False,
        chunk: int = 1,
        feature_names: np.ndarray | None = None,
    ) -> None:
        kind = np.dtype(dtype)
        if kind.kind not in "biuf":
            raise DataError(
                f"Expected numbers in {where}; got values of type {kind}. Convert them to float32, or leave "
                "out the columns that hold something else."
            )
        if len(shape) != 2:
            raise DataError(f"Expected rows and columns in {where}; got an array of shape {tuple(shape)}.")
        if 0 in shape:
            raise DataError(
                f"Expected at least one row and one column in {where}; got {shape[0]} x {shape[1]}."
            )
        self.where, self.shape = where, (int(shape[0]), int(shape[1]))
        exact = kind == np.float32 or kind.itemsize <= 2 or kind.kind == "b"
        self.dtype = np.dtype(np.float32 if exact else np.float64)
        self.is_sparse, self.feature_names = is_sparse, feature_names
        self.chunk = max(1, min(int(chunk), self.shape[0]))

    @abstractmethod
    def _read(self, begin: int, end: int) -> Rows:
        """Consecutive rows as they are stored: an array or a CSR matrix."""

    def rows(self, index: np.ndarray) -> Rows:
        """Rows by position.

        Parameters
        ----------
        index : integer array of shape (n_rows,)
            Sorted.
        """
        index = np.asarray(index, dtype=np.int64)
        if not len(index):
            return self._joined([])
        if self.chunk > 1:
            apart = np.diff(index // self.chunk) > 0
        else:
            apart = np.diff(index) > _GAP
        parts = []
        for own in np.split(index, np.flatnonzero(apart) + 1):
            begin, end = int(own[0]), int(own[-1]) + 1
            part = self.slice(begin, end)
            parts.append(part if end - begin == len(own) else part[own - begin])
        return self._joined(parts)

    def slice(self, begin: int, end: int) -> Rows:
        """Consecutive rows.

        Raises
        ------
        DataError
            If the table has changed under our hands: it is gone, cut off or damaged.
        """
        try:
            part = self._read(begin, end)
            part = sparse.csr_matrix(part) if self.is_sparse else np.asarray(part)
            part = part.astype(self.dtype, copy=False)
        except (SparseVAEError, MemoryError):
            raise
        except Exception as error:  # libraries raise what they like
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise DataError(
                f"Expected to read rows {begin + 1} to {end} of {self.where}; that failed: it is gone, "
                f"damaged or cut off ({reason}). Make it again, and start again."
            ) from error
        if part.shape != (end - begin, self.shape[1]):
            raise DataError(
                f"Expected {end - begin} rows of {self.shape[1]} columns from row {begin + 1} of "
                f"{self.where} on; got {part.shape[0]} x {part.shape[1] if part.ndim > 1 else 0}: it is cut "
                "off, or has changed. Make it again, and start again."
            )
        return part

    def blocks(self, size: int | None = None) -> Iterator[tuple[int, Rows]]:
        """Position of the first row of a block, and the block, until all rows have come.

        Parameters
        ----------
        size : int, optional
            Rows of a block; by default a million cells, in whole chunks.
        """
        size = self.block_rows() if size is None else size
        for begin in range(0, self.shape[0], size):
            yield begin, self.slice(begin, min(begin + size, self.shape[0]))

    def block_rows(self, cells: int = _CELLS_AT_ONCE) -> int:
        """Rows of a block of about so many cells, in whole chunks."""
        step = max(1, cells // self.shape[1])
        return step if step < self.chunk <= 1 else max(self.chunk, step - step % self.chunk)

    @cached_property
    def survey(self) -> Survey:
        """What one pass over all rows finds."""
        return survey_blocks(self.blocks(), self.shape)

    def __getitem__(self, key: Any) -> Rows:
        """Rows by position, in any order: integers, a boolean mask or a slice."""
        if isinstance(key, slice):
            begin, end, step = key.indices(self.shape[0])
            if step == 1:
                return self.slice(begin, end) if end > begin else self._joined([])
            key = np.arange(begin, end, step)
        if isinstance(key, tuple):
            raise DataError(
                f"Expected positions of rows of {self.where}; got {key!r}. A table on disk has no slices of "
                "columns: load some rows first, X[rows][:, columns]."
            )
        index = np.atleast_1d(np.asarray(key))
        if index.dtype == bool:
            index = np.flatnonzero(index)
        if len(index) < 2 or bool((np.diff(index) > 0).all()):
            return self.rows(index)
        positions, place = np.unique(index, return_inverse=True)
        return self.rows(positions)[place]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """A table on disk is never read whole in silence."""
        raise DataError(
            f"Expected a table in memory; got {self.where}, which stays on disk. Take some of its rows, "
            "X.rows(index), or load it: X[:]."
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shape[0]} x {self.shape[1]}, {self.where}>"

    def _joined(self, parts: list[Rows]) -> Rows:
        if not parts:
            empty = np.zeros((0, self.shape[1]), dtype=self.dtype)
            return sparse.csr_matrix(empty) if self.is_sparse else empty
        if len(parts) == 1:
            return parts[0]
        return sparse.vstack(parts, format="csr") if self.is_sparse else np.concatenate(parts)
