"""What a table is like: moments of its columns, totals of its rows, cells that stand alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from sparsevae.aliases import Matrix
from sparsevae.stored import StoredTable, is_stored
from sparsevae.stored.survey import merge_moments

__all__ = [
    "EXTREME",
    "OVERDISPERSED",
    "column_moments",
    "constant_columns",
    "dense_table",
    "extreme_cell",
    "lone_cell",
    "resembles_counts",
    "row_blocks",
    "row_totals",
]

_CELLS_AT_ONCE = 1 << 22  # of a dense table in one look: temporary arrays stay small beside any table
_SMALLEST_DEVIATION = 1e-37  # what float32 has room for
OVERDISPERSED = 1.2  # typical ratio of variance to mean above which counts are more than Poisson
EXTREME = 1e4  # times its usual size: a number that is wrong, or the cause of a failure, not a long tail
_FIRST_ROWS = 4096  # of a table on disk, in which what is usual is seen
_LONE = 0.99  # of the variance of a column that one cell makes
_MANY_ZEROS, _SOME_ZEROS, _FAR = 0.2, 0.01, 3.0  # see `resembles_counts`


def dense_table(X: Any) -> np.ndarray:
    """A table, or some of its rows or columns, as a dense array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


def row_blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of rows, small enough for temporary arrays of their size."""
    step = max(1, _CELLS_AT_ONCE // max(1, X.shape[1]))
    for begin in range(0, len(X), step):
        yield X[begin : begin + step]


def column_moments(X: Matrix, weight: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each column in float64, without making a sparse table dense.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        NaN for what is missing: moments are those of the other rows; 0 for a column without any.
    weight : ndarray of shape (n_samples,), optional
        How often each row counts.
    """
    if is_stored(X):
        return (X.survey.mean, X.survey.variance) if weight is None else _streamed_moments(X, weight)
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X.astype(np.float64, copy=False), axis=0, weights=weight)
        return np.nan_to_num(np.asarray(mean)), np.maximum(np.nan_to_num(np.asarray(variance)), 0.0)
    mean, variance = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for block in row_blocks(X):
        mean += block.sum(axis=0, dtype=np.float64)
    if weight is not None or np.isnan(mean).any():
        return _careful_moments(X, np.ones(len(X)) if weight is None else weight)
    mean /= len(X)
    for block in row_blocks(X):
        variance += np.square(block - mean).sum(axis=0)
    return mean, variance / len(X)


def constant_columns(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Which columns vary by less than a millionth of their mean; float32 hardly sees it."""
    return variance <= np.maximum(1e-12 * mean**2, _SMALLEST_DEVIATION**2)


def resembles_counts(X: Matrix, mean: np.ndarray, variance: np.ndarray) -> bool:
    """Whether whole numbers of 0 or more look like counts of something, to judge by a typical used column.

    Counts of rare things have many zeros. Others have a few at least, vary more than a Poisson allows, and
    reach far above their mean: test scores, ratings and ages do not.
    """
    if is_stored(X):
        zeros = X.survey.zeros
    else:
        stored = np.asarray(X.data) if sparse.issparse(X) else np.asarray(X)
        n_missing = np.count_nonzero(np.isnan(stored))
        zeros = 1.0 - (np.count_nonzero(stored) - n_missing) / max(X.shape[0] * X.shape[1] - n_missing, 1)
    if zeros >= _MANY_ZEROS:
        return True
    used = mean > 0
    if zeros < _SOME_ZEROS or not used.any():
        return False
    if is_stored(X):
        largest = X.survey.maximum
    elif sparse.issparse(X):
        largest = np.asarray(X.nanmax(axis=0).toarray()).ravel()  # type: ignore[union-attr]
    else:
        largest = np.fmax.reduce(X)
    ratio, reach = (np.median(size[used] / mean[used]) for size in (variance, largest))
    return bool(ratio > OVERDISPERSED and reach > _FAR)


def row_totals(X: Matrix) -> np.ndarray:
    """Sum of each row in float64, of what is there of it."""
    totals = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    holed = np.flatnonzero(np.isnan(totals))
    if len(holed):
        totals[holed] = np.nansum(dense_table(X[holed]), axis=1, dtype=np.float64)
    return totals


def extreme_cell(X: Matrix) -> tuple[int, int, float, float]:
    """The cell that is largest beside its column: row, column, value, and how many times its typical size.

    The typical size is the median of the absolute values that are not zero, without this cell.

    Parameters
    ----------
    X : ndarray, CSR matrix or StoredTable of shape (n_samples, n_features)
        Of a table on disk the typical size is the root mean square, and the row is -1: it is not looked for.
    """
    found = (0, 0, 0.0, 0.0)
    if is_stored(X):
        survey = X.survey
        sizes = np.maximum(np.abs(survey.minimum), np.abs(survey.maximum))
        ratios = sizes / np.maximum(np.sqrt(survey.variance + survey.mean**2), 1e-300)
        j = int(np.nan_to_num(ratios).argmax())
        ends = survey.minimum[j], survey.maximum[j]
        return -1, j, float(max(ends, key=abs)), float(ratios[j])
    columns = sparse.csc_array(X) if sparse.issparse(X) else X
    for j in range(X.shape[1]):
        column = dense_table(columns[:, [j]]).ravel()
        sizes = np.nan_to_num(np.abs(column.astype(np.float64)))  # a missing cell is the cause of nothing
        i = int(sizes.argmax())
        usual = _typical_size(np.delete(sizes, i))
        ratio = float(sizes[i] / usual) if usual else 0.0
        if ratio > found[3]:
            found = (i, j, float(column[i]), ratio)
    return found


def lone_cell(X: Matrix, mean: np.ndarray, variance: np.ndarray) -> tuple[int, int, float, float] | None:
    """A cell that makes nearly all of its column's variance, and how far it is from what is usual there.

    The rest of such a column is next to constant once it is standardised: a fit does not see it.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    mean, variance : ndarray of shape (n_features,)
        Of the columns.

    Returns
    -------
    row, column, value, ratio, or None
        As of `extreme_cell`; None where the largest cell is less than 10,000 times its typical size.
    """
    if is_stored(X):
        low, high = X.survey.minimum, X.survey.maximum
    elif sparse.issparse(X):
        low, high = min_max_axis(X, axis=0, ignore_nan=True)
    else:
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    furthest = np.maximum(high - mean, mean - low).astype(np.float64)
    alone = np.flatnonzero((variance > 0) & (furthest**2 >= _LONE * (X.shape[0] - 1) * variance))
    if not len(alone):
        return None
    if not is_stored(X):
        row, place, value, ratio = extreme_cell(X[:, alone])
    else:  # what is usual is seen in the first rows
        usual = [_typical_size(column) for column in X.slice(0, min(_FIRST_ROWS, X.shape[0]))[:, alone].T]
        ends = np.where(high + low > 0, high, low)[alone]
        ratios = np.divide(np.abs(ends), usual, out=np.zeros(len(alone)), where=np.array(usual) > 0)
        place = int(ratios.argmax())
        row, value, ratio = -1, float(ends[place]), float(ratios[place])
    return (row, int(alone[place]), value, ratio) if ratio >= EXTREME else None


def _typical_size(column: Any) -> float:
    """Median of the absolute values of a column that are neither zero nor missing; 0 where there are none."""
    values = np.asarray(dense_table(column), dtype=np.float64).ravel()
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(np.median(sizes)) if len(sizes) else 0.0


def _streamed_moments(X: StoredTable, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of what is there of each column, in one pass."""
    total = tuple(np.zeros((3, X.shape[1])))
    for begin, block in X.blocks():
        share = weight[begin : begin + block.shape[0]].astype(np.float64)
        own = np.full(X.shape[1], share.sum())
        if X.survey.has_missing:
            table = dense_table(block)
            own = share @ ~np.isnan(table)
            mean, variance = _careful_moments(table, share)
        else:
            mean, variance = column_moments(block, share)
        total = merge_moments(total, (mean, variance * own, own))  # type: ignore[arg-type]
    return total[0], total[1] / np.maximum(total[2], 1e-300)


def _careful_moments(X: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of what is there of each column."""

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        begin = 0
        for block in row_blocks(X):
            yield block, weight[begin : begin + len(block), None]
            begin += len(block)

    count, mean, variance = np.zeros((3, X.shape[1]))
    for block, share in blocks():
        there = ~np.isnan(block)
        count += (share * there).sum(0)
        mean += (share * np.where(there, block, 0.0)).sum(0)
    mean /= np.maximum(count, 1e-300)
    for block, share in blocks():
        variance += (share * np.square(np.where(np.isnan(block), mean, block) - mean)).sum(0)
    return mean, variance / np.maximum(count, 1e-300)
