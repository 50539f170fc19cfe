"""Checks that the measures share: arrays in, numbers out, never a silent NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsevae.exceptions import DataError

__all__ = ["as_matrix", "check_same_shape", "paired_matrices"]


def as_matrix(name: str, values: Any) -> np.ndarray:
    """Return a finite float array of two dimensions, or say what is wrong with it by name."""
    array = np.asarray(values, dtype=float)
    if array.ndim != 2:
        raise DataError(f"Expected {name} with two dimensions; got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise DataError(
            f"Expected {name} without missing or infinite values; got some. Leave those rows out."
        )
    return array


def paired_matrices(first: str, a: Any, second: str, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return two matrices with the same number of rows."""
    left, right = as_matrix(first, a), as_matrix(second, b)
    if len(left) != len(right):
        raise DataError(
            f"Expected {first} and {second} with the same number of rows; got {left.shape} and {right.shape}."
        )
    return left, right


def check_same_shape(first: str, a: Any, second: str, b: Any) -> None:
    """Refuse two arrays whose shapes differ."""
    if np.shape(a) != np.shape(b):
        raise DataError(
            f"Expected {first} and {second} of the same shape; got {np.shape(a)} and {np.shape(b)}."
        )
