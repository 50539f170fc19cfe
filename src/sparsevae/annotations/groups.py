"""Groups of rows: studies, batches, countries."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError, DataWarning
from sparsevae.validation import shown

__all__ = ["check_groups", "number_groups"]


def check_groups(groups: ArrayLike | None, X: Matrix) -> np.ndarray | None:
    """Labels of the rows' groups as an array of strings and numbers; None where there are none.

    Parameters
    ----------
    groups : None or array of shape (n_samples,)
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    """
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (X.shape[0],):
        raise DataError(
            f"Expected a group for each of {X.shape[0]} rows; got groups of shape {labels.shape}. Pass one "
            "label per row."
        )
    if labels.dtype.kind not in "iub":
        missing = pd.isna(np.asarray(groups, dtype=object))  # a NaN among words would become the word "nan"
        if missing.any():
            rows = "1 row" if missing.sum() == 1 else f"{int(missing.sum())} rows"
            raise DataError(
                f"Expected a group for each row; got missing ones in {rows}. Give such rows a group of "
                "their own, or leave them out."
            )
        labels = labels.astype(str)
    return labels


def number_groups(labels: np.ndarray, known: np.ndarray, depth: int) -> np.ndarray:
    """Position of each label among the known ones, -1 for new ones, which are said to be new.

    Labels are compared by name: a file that is read again may have 1, 1.0 or "1" where the first had another.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
    known : ndarray of shape (n_groups,)
    depth : int
        Calls between the user's line and this function.
    """
    exact = {str(label): g for g, label in enumerate(known)}
    number = {_as_whole(name): g for name, g in exact.items()}
    different, inverse = np.unique(labels, return_inverse=True)
    places = [exact.get(name, number.get(_as_whole(name), -1)) for name in map(str, different)]
    position = np.array(places)[inverse]
    if (position < 0).any():
        names = shown(sorted(str(label) for label, g in zip(different, places, strict=True) if g < 0))
        warnings.warn(
            f"Groups that fit did not see: {names}. They are taken together as one new group, whose shift of "
            "each feature is estimated from its rows.",
            DataWarning,
            stacklevel=depth + 1,
        )
    return position


def _as_whole(name: str) -> str:
    """The name of a whole number without the decimals of a float."""
    return name[:-2] if name.endswith(".0") and name[:-2].lstrip("-").isdigit() else name
