"""One pass over a table on disk: moments, ranges, holes and what kind of numbers it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from sparsevae.aliases import JSON, Matrix

__all__ = ["Survey", "merge_moments", "survey_blocks"]

_LARGEST = 1e37  # what float32 has room for


@dataclass(frozen=True)
class Survey:
    """What one pass over a table finds.

    Attributes
    ----------
    n_samples : int
    mean, variance, minimum, maximum : ndarray of shape (n_features,)
        Of what is there of each column; 0, and NaN of a range, where nothing is.
    n_missing, n_large : integer ndarray of shape (n_features,)
        Cells that are NaN; that are infinite or too large for float32.
    n_nonzero : int
        Cells that are neither zero nor missing.
    fraction : ndarray of shape (n_features,)
        A value of each column that is no whole number, NaN where there is none.
    silent, empty : integer ndarray
        Matrix without a value above or below zero; rows without any value.
    first_large, first_missing : (int, int) or None
        Row and column of the first such cell.
    """

    n_samples: int
    mean: np.ndarray
    variance: np.ndarray
    minimum: np.ndarray
    maximum: np.ndarray
    n_missing: np.ndarray
    n_large: np.ndarray
    n_nonzero: int
    fraction: np.ndarray
    silent: np.ndarray
    empty: np.ndarray
    first_large: tuple[int, int] | None
    first_missing: tuple[int, int] | None

    @property
    def has_missing(self) -> bool:
        """Whether a cell is NaN."""
        return bool(self.n_missing.any())

    @property
    def zeros(self) -> float:
        """Fraction of zeros among the cells that are there."""
        there = self.n_samples * len(self.mean) - int(self.n_missing.sum())
        return 1.0 - self.n_nonzero / max(there, 1)


def survey_blocks(blocks: Iterable[tuple[int, Matrix]], shape: tuple[int, int]) -> Survey:
    """Survey a table that comes in blocks of rows.

    Parameters
    ----------
    blocks : iterable of (int, ndarray or CSR matrix)
        Position of the first row of each block, and the block.
    shape : (int, int)
    """
    n_features = shape[1]
    count, mean, squares = np.zeros((3, n_features))
    minimum, maximum, fraction = np.full((3, n_features), np.nan)
    n_missing, n_large = np.zeros((2, n_features), dtype=np.int64)
    n_nonzero, silent, empty = 0, [], []
    first: dict[str, tuple[int, int] | None] = {"large": None, "missing": None}
    for begin, block in blocks:
        stored = block if isinstance(block, np.ndarray) else block.data
        low, high = _ranges(block)
        holes = _count_cells(block, np.isnan) if np.isnan(stored.min(initial=0.0)) else None
        if holes is not None:
            n_missing += holes
            first["missing"] = first["missing"] or _first_cell(block, np.isnan, begin)
            gone = _n_missing_of_rows(block) == n_features
            empty.append(begin + np.flatnonzero(gone))
        if not np.fmax.reduce(np.maximum(-low, high), initial=0.0) < _LARGEST:
            n_large += _count_cells(block, _is_large)
            first["large"] = first["large"] or _first_cell(block, _is_large, begin)
            return _abandoned(shape, n_missing, n_large, first)
        own, average, spread = _moments(block, holes)
        mean, squares, count = merge_moments((mean, squares, count), (average, spread, own))
        minimum, maximum = np.fmin(minimum, low), np.fmax(maximum, high)
        quiet, n = _silent_rows(block)
        silent.append(begin + np.flatnonzero(quiet))
        n_nonzero += n - (0 if holes is None else int(holes.sum()))
        if np.isnan(fraction).any():
            fraction = np.where(np.isnan(fraction), _fractions(block, np.isnan(fraction)), fraction)
    return Survey(
        shape[0],
        mean,
        squares / np.maximum(count, 1e-300),
        minimum,
        maximum,
        n_missing,
        n_large,
        n_nonzero,
        fraction,
        np.concatenate(silent),
        np.concatenate(empty) if empty else np.zeros(0, dtype=np.int64),
        first["large"],
        first["missing"],
    )


def merge_moments(
    first: tuple[np.ndarray, np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, sum of squared deviations and count of two sets of rows together (Chan, Golub and LeVeque)."""
    mean, squares, count = first
    other, spread, n = second
    total = np.maximum(count + n, 1e-300)
    apart = other - mean
    return mean + apart * n / total, squares + spread + np.square(apart) * count * n / total, count + n


def _moments(block: Matrix, holes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and sum of squared deviations of what is there of each column."""
    count = np.full(block.shape[1], float(block.shape[0])) - (0 if holes is None else holes)
    if sparse.issparse(block):
        mean, variance = mean_variance_axis(block.astype(np.float64, copy=False), axis=0)
        return count, np.nan_to_num(mean), np.nan_to_num(variance) * count
    if holes is None:
        mean = block.mean(axis=0, dtype=np.float64)
        return count, mean, np.square(block - mean).sum(axis=0)
    mean = np.nansum(block, axis=0, dtype=np.float64) / np.maximum(count, 1.0)
    return count, mean, np.nansum(np.square(block - mean), axis=0)


def _ranges(block: Matrix) -> tuple[np.ndarray, np.ndarray]:
    if sparse.issparse(block):
        low, high = min_max_axis(block, axis=0, ignore_nan=True)
        return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    ends = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
    return ends[0].astype(np.float64), ends[1].astype(np.float64)


def _silent_rows(block: Matrix) -> tuple[np.ndarray, int]:
    """Which rows hold nothing but zeros and missing values; how many cells are not zero."""
    if isinstance(block, np.ndarray):
        there = block != 0
        n = int(np.count_nonzero(there))
        return ~(there & ~np.isnan(block)).any(axis=1) if not there.all() else _all_missing(block), n
    there = (block.data != 0) & ~np.isnan(block.data)
    loud = np.add.reduceat(np.append(there, False), block.indptr[:-1]) * (np.diff(block.indptr) > 0)
    return loud == 0, int(np.count_nonzero(block.data))


def _all_missing(block: np.ndarray) -> np.ndarray:
    if not np.isnan(block[:, 0]).any():
        return np.zeros(len(block), dtype=bool)
    return np.asarray(np.isnan(block).all(axis=1))


def _fractions(block: Matrix, wanted: np.ndarray) -> np.ndarray:
    """Of each column that is wanted a value that is no whole number, else NaN."""
    found = np.full(block.shape[1], np.nan)
    if not isinstance(block, np.ndarray):
        odd = block.data != np.rint(block.data)
        odd &= ~np.isnan(block.data)
        found[block.indices[odd]] = block.data[odd]
        return np.where(wanted, found, np.nan)
    columns = np.flatnonzero(wanted)
    part = block if len(columns) == block.shape[1] else block[:, columns]
    odd = (part != np.rint(part)) & ~np.isnan(part)
    at = odd.argmax(axis=0)
    found[columns] = np.where(odd.any(axis=0), part[at, np.arange(len(columns))], np.nan)
    return found


def _is_large(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(values) >= _LARGEST)


def _count_cells(block: Matrix, is_wanted: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """How many cells of each column are wanted."""
    if not isinstance(block, np.ndarray):
        return np.bincount(block.indices[is_wanted(block.data)], minlength=block.shape[1])
    return np.asarray(is_wanted(block).sum(axis=0))


def _n_missing_of_rows(block: Matrix) -> np.ndarray:
    if isinstance(block, np.ndarray):
        return np.asarray(np.isnan(block).sum(axis=1))
    holes = np.append(np.isnan(block.data), False).astype(np.int64)
    return np.asarray(np.add.reduceat(holes, block.indptr[:-1]) * (np.diff(block.indptr) > 0))


def _first_cell(block: Matrix, is_wanted: Callable[[np.ndarray], np.ndarray], begin: int) -> tuple[int, int]:
    if not isinstance(block, np.ndarray):
        entries = block.tocoo()
        at = int(np.flatnonzero(is_wanted(entries.data))[0])
        return begin + int(entries.row[at]), int(entries.col[at])
    row, column = np.argwhere(is_wanted(block))[0]
    return begin + int(row), int(column)


def _abandoned(shape: tuple[int, int], n_missing: np.ndarray, n_large: np.ndarray, first: JSON) -> Survey:
    """A table with infinite cells is refused: the rest of it need not be looked at."""
    zeros, nothing = np.zeros(shape[1]), np.zeros(0, dtype=np.int64)
    return Survey(
        shape[0],
        zeros,
        zeros,
        zeros,
        zeros,
        n_missing,
        n_large,
        0,
        np.full(shape[1], np.nan),
        nothing,
        nothing,
        first["large"],
        first["missing"],
    )
