"""Columns with a few levels, evenly spaced: answers on a scale, codes of categories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError
from sparsevae.stored import is_stored
from sparsevae.summaries import dense_table

__all__ = ["MOST_LEVELS", "check_levels", "count_levels", "find_levels", "known_cells"]

MOST_LEVELS = 50
"""Levels that a column may have; more are real values or counts."""

_CLOSE = 1e-6  # to a level, in steps


def find_levels(X: Matrix, columns: np.ndarray, names: Sequence[object] | np.ndarray) -> np.ndarray:
    """First level, step between two and number of levels of each of some columns.

    Levels that do not occur between others count too.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        NaN for what is missing.
    columns : integer array
    names : sequence of length n_features
        For the messages.

    Returns
    -------
    ndarray of shape (n_features, 3)
        NaN for the other columns.
    """
    levels = np.full((X.shape[1], 3), np.nan)
    for j in np.asarray(columns).tolist():
        values = _different_values(X, j)
        step = np.diff(values).min(initial=np.inf)
        first = values[0] if len(values) else 0.0
        step = step if np.isfinite(step) else 1.0
        position = (values - first) / step
        n_levels = max(round(position[-1]) + 1, 2) if len(values) else 2
        if n_levels > MOST_LEVELS or np.abs(position - np.rint(position)).max(initial=0.0) > _CLOSE:
            raise DataError(
                f"Expected a few evenly spaced levels, such as 1 to 5, in {str(names[j])!r}; got "
                f"{len(values)} different values from {first:g} to {values[-1]:g}. Use "
                "likelihood='gaussian' for such a column, or number its levels from 0."
            )
        levels[j] = first, step, n_levels
    return levels


def check_levels(X: Matrix, levels: np.ndarray, names: Sequence[object] | np.ndarray) -> None:
    """Refuse values that are none of the levels of the table fitted.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    levels : ndarray of shape (n_features, 3)
        As `find_levels` returns them.
    names : sequence of length n_features
    """
    for j in np.flatnonzero(~np.isnan(levels[:, 0])).tolist():
        values = _different_values(X, j) if is_stored(X) else _column(X, j)
        wrong = _is_unseen(values, levels[j])
        if wrong.any():
            first, step, n_levels = levels[j]
            last = first + step * (n_levels - 1)
            raise DataError(
                f"Expected levels that fit saw, from {first:g} to {last:g} in steps of {step:g}, in "
                f"{str(names[j])!r}; got {values[wrong][0]:g}. Correct these cells, make them NaN, or fit a "
                "table that has this level."
            )


def known_cells(X: Matrix, levels: np.ndarray) -> np.ndarray:
    """Which cells have a level that the table fitted had, or none at all: boolean, (n_samples, n_features).

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    levels : ndarray of shape (n_features, 3)
        As `find_levels` returns them.
    """
    known = np.ones(X.shape, dtype=bool)
    for j in np.flatnonzero(~np.isnan(levels[:, 0])).tolist():
        known[:, j] = ~_is_unseen(_column(X, j), levels[j])
    return known


def count_levels(X: Matrix, levels: np.ndarray, column: int, weight: np.ndarray | None = None) -> np.ndarray:
    """How often each level of a column occurs, by weight: shape (n_levels,)."""
    if is_stored(X):
        counts = [
            count_levels(block, levels, column, None if weight is None else weight[at : at + block.shape[0]])
            for at, block in X.blocks()
        ]
        return np.asarray(np.sum(counts, axis=0))
    first, step, n_levels = levels[column]
    values = _column(X, column)
    seen = ~np.isnan(values)
    position = np.rint((values[seen] - first) / step).astype(np.intp)
    weights = None if weight is None else weight[seen]
    return np.bincount(position, weights, minlength=int(n_levels)).astype(np.float64)


def _is_unseen(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Whether each value is none of the levels of its column; a missing one is not."""
    first, step, n_levels = levels
    position = (values - first) / step
    between = np.abs(position - np.rint(position)) > _CLOSE
    return between | (position < -_CLOSE) | (position > n_levels - 1 + _CLOSE)


def _different_values(X: Matrix, j: int) -> np.ndarray:
    """Values of a column without repetitions, sorted; of a table on disk not all, if there are very many."""
    if not is_stored(X):
        values = np.unique(_column(X, j))
        return values[~np.isnan(values)]
    found = np.zeros(0)
    for _, block in X.blocks():
        found = np.union1d(found, _different_values(block, j))
        if len(found) > 100 * MOST_LEVELS:
            break
    return found


def _column(X: Matrix, j: int) -> np.ndarray:
    return dense_table(X[:, [j]]).ravel().astype(np.float64)
