"""Weights of rows, how often each counts; and exposure, how large each is."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError, DataWarning

__all__ = ["are_large", "check_exposure", "check_weights", "note_large_weights"]

_LARGE = 2.0  # mean weight above which weights are probably not frequencies


def check_weights(sample_weight: ArrayLike | None, X: Matrix) -> np.ndarray | None:
    """Weights as an array of float64; None where all rows count once.

    Parameters
    ----------
    sample_weight : None, number or array of shape (n_samples,)
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight)
    if weight.ndim == 0:
        weight = np.full(X.shape[0], weight)
    if weight.shape != (X.shape[0],):
        # scikit-learn's checks look for the words "sample_weight.shape".
        raise DataError(
            f"Expected a weight for each of {X.shape[0]} rows; got sample_weight.shape == {weight.shape}. "
            "Sample weights must be 1D array or scalar: pass one number per row."
        )
    try:
        weight = weight.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Expected weights that are numbers; got {str(weight[0])!r} first. Pass one number per row."
        ) from error
    if not np.isfinite(weight).all() or weight.min() < 0:
        raise DataError(
            f"Expected weights of 0 or more; got {weight[~(weight >= 0) | ~np.isfinite(weight)][0]:g}. Leave "
            "rows without a weight out, or give them 0."
        )
    if not weight.any():
        raise DataError("Expected some weight above 0; got zeros only. Give rows that count a weight of 1.")
    return weight


def check_exposure(exposure: ArrayLike | None, X: Matrix) -> np.ndarray | None:
    """Sizes of the rows as an array of float64; None where they are not given."""
    if exposure is None:
        return None
    try:
        sizes = np.asarray(exposure, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"Expected exposures that are numbers; got others ({error}). Pass one number per row."
        ) from error
    if sizes.shape != (X.shape[0],):
        raise DataError(
            f"Expected an exposure for each of {X.shape[0]} rows; got shape {sizes.shape}. Pass one number "
            "per row."
        )
    bad = ~(np.isfinite(sizes) & (sizes > 0))
    if bad.any():
        raise DataError(
            f"Expected exposures above 0; got {sizes[bad][0]:g}. Leave out rows that were not exposed."
        )
    return sizes


def are_large(weight: np.ndarray) -> bool:
    """Whether weights sum to so much that they probably count people, not copies of rows."""
    return bool(weight.sum() > _LARGE * len(weight))


def note_large_weights(weight: np.ndarray | None, depth: int) -> None:
    """Say that weights stand for copies of rows, where they look as if they stood for people."""
    if weight is not None and are_large(weight):
        warnings.warn(
            f"The weights sum to {weight.sum():g} for {len(weight)} rows, and each counts as so many copies "
            "of its row. Survey weights that count people make a table look larger than it is: scale them to "
            "mean one, sample_weight / sample_weight.mean().",
            DataWarning,
            stacklevel=depth + 1,
        )
