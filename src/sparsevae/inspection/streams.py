"""Codes of a table on disk, block by block, and arrays that are written as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike
from torch import Tensor

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.inspection.codes import Codes, block_size
from sparsevae.modules import LatentModule
from sparsevae.persistence import writing_npy
from sparsevae.stored import StoredTable

__all__ = ["StoredCodes", "array_on_disk"]

_CELLS_AT_ONCE = 1 << 21  # of a table whose codes are found together
_MOST_SAMPLED, _SAMPLED_CELLS, _FEWEST_SAMPLED = 50_000, 1 << 24, 2000  # rows that stand for all


class StoredCodes(Codes):
    """Posteriors of the rows of a table on disk, found block by block and not kept.

    Parameters
    ----------
    module, X, weight, group, exposure
        As for `Codes`; X is a `StoredTable`.
    """

    def __init__(
        self,
        module: LatentModule,
        X: Any,
        weight: np.ndarray | None = None,
        group: np.ndarray | None = None,
        exposure: np.ndarray | None = None,
        positions: np.ndarray | None = None,
    ) -> None:
        if group is not None and (group < 0).any():
            raise DataError(
                "Expected the groups of the fit for a table on disk; got rows of a new group, or no groups. "
                "Pass groups that fit saw, or load the rows of the new one."
            )
        self.module, self.X, self.weight, self.group, self.exposure = module, X, weight, group, exposure

    @cached_property
    def in_memory(self) -> Codes:
        """Codes of some of the rows, drawn at random: what is read off a table is read off these."""
        table = cast(StoredTable, self.X)
        most = max(_FEWEST_SAMPLED, _SAMPLED_CELLS // table.shape[1])
        n = min(len(table), _MOST_SAMPLED, most)
        rows = np.sort(np.random.default_rng(0).choice(len(table), n, replace=False))
        return self._part(table.rows(rows), rows, rows)

    def moments(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Mean and log variance of rows (all by default), next to each other: (n_rows, 2 n_factors)."""
        if rows is not None:
            return self._part(self.X[rows], rows).moments()
        return self._collected((begin, part.moments()) for begin, part in self.blocks_of_codes())

    def means(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Posterior means of the factors: (n_rows, n_factors)."""
        if rows is not None:
            return self._part(self.X[rows], rows).means()
        return self._collected(self.blocks_of_means())

    def bounds(self, draws: Tensor) -> np.ndarray:
        """ELBO of each row in the units of the table: (n_samples,)."""
        return self._collected((begin, part.bounds(draws)) for begin, part in self.blocks_of_codes())

    def blocks_of_codes(self) -> Iterator[tuple[int, Codes]]:
        """Position of the first row of a block, and codes of the block."""
        table, own = cast(StoredTable, self.X), block_size(self.module)
        size = max(own, table.block_rows(_CELLS_AT_ONCE) // own * own)  # the last of a block is filled up
        for begin, rows in table.blocks(size):
            yield begin, self._part(rows, slice(begin, begin + rows.shape[0]))

    def _part(self, rows: Matrix, index: np.ndarray | slice, positions: np.ndarray | None = None) -> Codes:
        weight = None if self.weight is None else self.weight[index]
        return Codes(self.module, rows, weight, **self._sides(index), positions=positions)

    def _collected(self, parts: Iterator[tuple[int, np.ndarray]]) -> np.ndarray:
        found: np.ndarray | None = None
        for begin, part in parts:
            if found is None:
                found = np.empty((len(self.X), *part.shape[1:]), dtype=part.dtype)
            found[begin : begin + len(part)] = part
        assert found is not None
        return found


@contextmanager
def array_on_disk(
    path: str | Path, shape: tuple[int, int], dtype: DTypeLike
) -> Iterator[Callable[[np.ndarray], None]]:
    """An NPY file that gets its rows block after block: see `writing_npy`."""
    if not isinstance(path, str | Path) or Path(path).suffix.lower() != ".npy":
        raise ParameterError(f"Expected out to be the path of an NPY file; got {path!r}. Pass 'factors.npy'.")
    try:
        with writing_npy(Path(path), shape, dtype) as append:
            yield append
    except OSError as error:
        raise DataError(
            f"Expected {path} to be written; that failed ({error.strerror or error}). Name a place with room "
            f"for {shape[0] * shape[1] * np.dtype(dtype).itemsize:,} bytes."
        ) from error
