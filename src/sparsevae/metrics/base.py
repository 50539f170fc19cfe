"""Checks that the measures share: arrays in, numbers out, never a silent NaN."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sparsevae.aliases import MatrixLike
from sparsevae.exceptions import DataError

__all__ = ["as_matrix", "check_same_shape", "paired_matrices"]


def as_matrix(name: str, values: ArrayLike | None) -> np.ndarray:
    """Return a finite float array of two dimensions, or say what is wrong with it by name.

    None is refused too: a data set may not know its factors or mask.
    """
    if values is None:
        raise DataError(f"Expected {name}; got None, so they are not known. Pass an array.")
    array = np.asarray(values, dtype=float)
    if array.ndim != 2:
        raise DataError(f"Expected {name} with two dimensions; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise DataError(
            f"Expected {name} without missing or infinite values; got some. Leave those rows out."
        )
    return array


def paired_matrices(
    first: str, a: ArrayLike, second: str, b: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return two matrices with the same number of rows."""
    left, right = as_matrix(first, a), as_matrix(second, b)
    if len(left) != len(right):
        raise DataError(
            f"Expected {first} and {second} with the same number of rows; got {left.shape} and {right.shape}."
        )
    return left, right


def check_same_shape(first: str, a: MatrixLike, second: str, b: MatrixLike) -> None:
    """Refuse two arrays whose shapes differ."""
    if np.shape(a) != np.shape(b):
        raise DataError(
            f"Expected {first} and {second} of the same shape; got {np.shape(a)} and {np.shape(b)}."
        )
