"""Missing values: whatever a table has for them becomes NaN, the one sign for them from there on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sparsevae.aliases import Matrix, TableLike
from sparsevae.exceptions import DataError
from sparsevae.stored import as_stored, is_stored
from sparsevae.summaries import dense_table
from sparsevae.validation import shown

__all__ = [
    "add_absences",
    "check_columns_seen",
    "columns_with_holes",
    "empty_rows",
    "has_missing",
    "hide",
    "reveal_missing",
    "with_nan",
]

_MOSTLY = 0.5  # fraction of a sparse table that is missing from which on it is better kept dense


def with_nan(X: Any, observed: ArrayLike | None = None) -> Any:
    """A table in which NaN is the only sign for a missing value.

    Masked arrays lose their mask where scikit-learn converts them, and it cannot convert pandas' NA among
    Python objects; other tables are returned as they are.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    observed : boolean array or sparse matrix of shape (n_samples, n_features), optional
        Which cells count, beside those that are marked as missing.
    """
    stored = as_stored(X)
    if stored is not None:
        if observed is not None:
            raise DataError(
                "Expected no observed= for a table on disk; got some. Store NaN in cells that are missing."
            )
        return stored
    X = reveal_missing(X)
    if hasattr(X, "dtypes") and hasattr(X, "mask") and any(dtype.kind == "O" for dtype in X.dtypes):
        X = X.mask(X.isna(), np.nan)
    if observed is None:
        return X
    if hasattr(X, "columns") and hasattr(X, "where"):
        return X.where(_checked_mask(observed, X.shape))
    return hide(X if sparse.issparse(X) else np.asarray(X, dtype=np.float64), observed)


def reveal_missing(X: TableLike) -> TableLike:
    """A table with NaN where a masked array hides its cells; arrays of dates and time spans are refused.

    numpy would convert the one to the hidden values and the other to counts of some unit.
    """
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if isinstance(X, np.ndarray) and kind in "mM":
        raise DataError(
            f"Expected numbers; got dates or time spans ({X.dtype}). Convert them to numbers of a unit "
            "first, for example (X - X.min()) / np.timedelta64(1, 'D')."
        )
    if isinstance(X, np.ma.MaskedArray):
        if kind == "c":
            raise DataError("Expected real numbers; got complex ones (Complex data not supported).")
        if not np.ma.getmaskarray(X).any():
            return np.asarray(X.data)
        return np.ma.filled(X.astype(np.float64), np.nan)
    return X


def hide(X: Matrix, observed: ArrayLike) -> Matrix:
    """A table with NaN where ``observed`` is False; the caller's is not changed.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    observed : boolean array or sparse matrix of shape (n_samples, n_features)
        Which cells count.

    Returns
    -------
    ndarray or sparse matrix
        A sparse table of which most is missing becomes dense.
    """
    seen = _checked_mask(observed, X.shape)
    if not sparse.issparse(X):
        return np.where(seen, X, np.asarray(np.nan, dtype=X.dtype))
    hidden = ~seen
    if hidden.mean() > _MOSTLY:
        return np.where(seen, dense_table(X), np.asarray(np.nan, dtype=X.dtype))
    rows, columns = np.nonzero(hidden)
    holes = sparse.csr_array((np.full(len(rows), np.nan), (rows, columns)), shape=X.shape)
    filled = (sparse.csr_array(X) + holes).astype(np.result_type(X.dtype, np.float32))
    return type(X)(filled)


def has_missing(X: Matrix) -> bool:
    """Whether a table has NaN in it."""
    if is_stored(X):
        return X.survey.has_missing
    values = np.asarray(X.data) if sparse.issparse(X) else X
    return bool(np.isnan(np.sum(values, dtype=np.float64)))


def empty_rows(X: Matrix) -> np.ndarray:
    """Which rows have nothing but missing values: boolean, shape (n_samples,)."""
    if not has_missing(X):
        return np.zeros(X.shape[0], dtype=bool)
    if is_stored(X):
        empty = np.zeros(X.shape[0], dtype=bool)
        empty[X.survey.empty] = True
        return empty
    return _missing_counts(X, axis=1) == X.shape[1]


def columns_with_holes(X: Matrix) -> np.ndarray:
    """Positions of the columns that have missing values, but not only these."""
    counts = _missing_counts(X, axis=0)
    return np.flatnonzero((counts > 0) & (counts < X.shape[0]))


def add_absences(X: Matrix, columns: np.ndarray) -> Matrix:
    """A table with one more column for each of some columns: 1 where its value is missing, else 0."""
    if not sparse.issparse(X):
        return np.hstack([X, np.isnan(X[:, columns]).astype(X.dtype)])
    part = X[:, columns].tocsr()  # type: ignore[union-attr]
    absent = sparse.csr_array((np.isnan(part.data).astype(X.dtype), part.indices, part.indptr), part.shape)
    absent.eliminate_zeros()
    return type(X)(sparse.hstack([X, absent], format="csr"))


def check_columns_seen(X: Matrix, feature_names: Sequence[object] | np.ndarray) -> None:
    """Refuse a table to fit in which a column has nothing but missing values."""
    if not has_missing(X):
        return
    empty = np.flatnonzero(_missing_counts(X, axis=0) == X.shape[0])
    if len(empty):
        names = shown([feature_names[int(j)] for j in empty])
        raise DataError(
            f"Expected at least one value in every column; got only missing ones in {names}. Drop "
            "these columns."
        )


def _missing_counts(X: Matrix, axis: int) -> np.ndarray:
    if is_stored(X) and axis == 0:
        return X.survey.n_missing
    if not sparse.issparse(X):
        return np.isnan(X).sum(axis)
    coordinates = X.tocoo()  # type: ignore[union-attr]
    where = coordinates.col if axis == 0 else coordinates.row
    return np.bincount(where[np.isnan(coordinates.data)], minlength=X.shape[1 - axis])


def _checked_mask(observed: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    mask: Any = observed if sparse.issparse(observed) else np.asarray(observed)
    if mask.shape != shape:
        raise DataError(
            f"Expected observed of the table's shape, {shape}; got {mask.shape}. Pass one True or False for "
            "each cell."
        )
    if mask.dtype != bool:
        raise DataError(
            f"Expected observed to hold True and False; got numbers of type {mask.dtype}. Pass a boolean "
            "mask, for example ~np.isnan(X)."
        )
    return dense_table(mask)
