"""Checks of tables and parameters: every refusal says what was expected, what came, and what to do."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from scipy import sparse

from sparsevae.exceptions import DataError, DataWarning, ParameterError

__all__ = [
    "check_choice",
    "check_columns_numeric",
    "check_fraction",
    "check_positive",
    "check_support",
    "column_moments",
    "warn_about_rows",
]


def check_positive(name: str, value: Any, *, integer: bool = False, minimum: float | None = None) -> None:
    """A number above zero, or at least ``minimum``."""
    kind = numbers.Integral if integer else numbers.Real
    low = minimum if minimum is not None else (1 if integer else 0)
    good = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(value)
    if not good or value < low or (not integer and minimum is None and value <= 0):
        what = f"a whole number of at least {low}" if integer else f"a number {'of at least' if minimum else 'above'} {low:g}"
        raise ParameterError(f"Expected {name} to be {what}; got {value!r}.")


def check_fraction(name: str, value: Any) -> None:
    """A number from 0 up to, but not including, 1."""
    if not isinstance(value, numbers.Real) or not 0.0 <= value < 1.0:
        raise ParameterError(f"Expected {name} to be a share from 0 up to but not including 1; got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ParameterError(f"Expected {name} to be one of {words}; got {value!r}.")


def check_columns_numeric(X: Any) -> None:
    """Name the columns of a data frame that are not numbers, before an array conversion loses their names."""
    dtypes = getattr(X, "dtypes", None)
    names = getattr(X, "columns", None)
    if dtypes is None or names is None:
        return
    text = [
        str(name)
        for name, dtype in zip(names, list(dtypes), strict=True)
        if not any(kind in str(dtype).lower() for kind in ("int", "float", "bool", "decimal", "double"))
    ]
    if text:
        shown = ", ".join(repr(name) for name in text[:5]) + (" ..." if len(text) > 5 else "")
        raise DataError(
            f"Expected every column to hold numbers; got text or other values (could not convert string to float) in "
            f"{shown}. Drop these columns, or encode them as numbers."
        )


def check_support(X: Any, support: str, columns: np.ndarray, likelihood: str) -> None:
    """Refuse values that the likelihood of these columns cannot produce.

    Parameters
    ----------
    X : ndarray or CSR matrix
    support : {"real", "count", "binary"}
    columns : integer array
    likelihood : str
        Named in the message.
    """
    if support == "real":
        return
    values = X.data if sparse.issparse(X) and len(columns) == X.shape[1] else _values(X, columns)
    if values.size and values.min() < 0:
        raise DataError(
            f"Expected no Negative values in data passed to a {likelihood} likelihood; got a minimum of "
            f"{values.min():g}. Use likelihood='gaussian' for real-valued features."
        )
    if support == "binary" and values.size and not np.isin(values, (0, 1)).all():
        raise DataError(
            f"Expected only 0 and 1 for a {likelihood} likelihood; got values up to {values.max():g}. Binarise the "
            "table, or use a count likelihood."
        )
    if support == "count" and values.size and not np.array_equal(values, np.rint(values)):
        raise DataError(
            f"Expected whole numbers for a {likelihood} likelihood; got fractions such as "
            f"{values[values != np.rint(values)][0]:g}. Pass raw counts, or use likelihood='gaussian'."
        )


def warn_about_rows(X: Any) -> np.ndarray:
    """Rows of counts that hold anything at all; a warning counts the others."""
    totals = np.asarray(X.sum(axis=1)).ravel()
    keep = totals > 0
    if not keep.all():
        warnings.warn(
            f"{int((~keep).sum())} of {len(keep)} rows hold no counts at all: they are left out of the fit, and "
            "transform gives them the prior mean.",
            DataWarning,
            stacklevel=4,
        )
    return keep


def column_moments(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each column in float64, without making a sparse table dense."""
    if sparse.issparse(X):
        mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0), dtype=np.float64).ravel()
        return mean, np.maximum(square - mean**2, 0.0)
    mean, var = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    step = max(1, (1 << 26) // max(1, X.shape[1]))
    for begin in range(0, len(X), step):
        mean += X[begin : begin + step].sum(axis=0, dtype=np.float64)
    mean /= len(X)
    for begin in range(0, len(X), step):
        var += np.square(X[begin : begin + step] - mean).sum(axis=0)
    return mean, var / len(X)


def _values(X: Any, columns: np.ndarray) -> np.ndarray:
    part = X[:, columns]
    return part.data if sparse.issparse(part) else np.asarray(part)
