"""Views of a table: groups of its columns, such as the assays or questionnaires that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from sparsevae.exceptions import ParameterError
from sparsevae.validation import shown

__all__ = ["flatten_columns", "split_views"]

_BETWEEN = ":"  # as MuData joins the name of a modality and that of a feature
_OTHER = "other"


def flatten_columns(X: Any) -> tuple[Any, list[str] | None]:
    """A data frame with one level of column names, and the first of several levels as views.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)

    Returns
    -------
    X : the same table
        A column that was ``("rna", "CD3D")`` is ``"rna:CD3D"``.
    views : list of str of length n_features, or None
        None where there is one level of names, or none.
    """
    columns = getattr(X, "columns", None)
    if not isinstance(columns, pd.MultiIndex):
        return X, None
    keys = [tuple(str(level) for level in key) for key in columns]
    views = [key[0] for key in keys] if columns.nlevels > 1 else None
    return X.set_axis([_BETWEEN.join(key) for key in keys], axis=1), views


def split_views(names: Sequence[str], separator: str) -> list[str]:
    """Views in the names of columns: what is before the first separator, "other" where there is none.

    Parameters
    ----------
    names : sequence of str
    separator : str

    Examples
    --------
    >>> from sparsevae.annotations.views import split_views
    >>> split_views(["rna:CD3D", "rna:NKG7", "protein:CD3"], ":")
    ['rna', 'rna', 'protein']
    """
    if not separator:
        raise ParameterError("Expected a separator of views and names, such as ':'; got none.")
    parts = [name.partition(separator) for name in names]
    views = [view if found else _OTHER for view, found, _ in parts]
    known = list(dict.fromkeys(views))
    if len(known) < 2:
        got = shown(known) + " alone" if any(found for _, found, _ in parts) else "no such name"
        raise ParameterError(
            f"Expected at least two views before {separator!r} in the names of the columns, as in "
            f"'rna{separator}CD3D'; got {got}. Choose another separator, or leave it out."
        )
    return views
