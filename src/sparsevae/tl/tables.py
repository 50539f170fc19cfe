"""The table behind an AnnData or MuData object: which matrix, which features, and their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.io.modalities import check_same_rows, join_names, side_by_side
from sparsevae.io.table import list_names

__all__ = ["Cells", "check_kind", "is_multimodal", "read_cells"]


@dataclass(frozen=True)
class Cells:
    """Cells and the features to fit.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_cells, n_used)
    names : list of str
        Of the features used; with the modality before them where there are several.
    used : dict from str to boolean array
        For each modality ("" for AnnData) which of its features are used.
    views : list of str, optional
        The modality of each feature used; None for AnnData.
    used_because : str
        Which column or mask chose the features.
    """

    X: Matrix
    names: list[str]
    used: dict[str, np.ndarray]
    views: list[str] | None
    used_because: str


def check_kind(adata: Any) -> None:
    """Refuse what is neither AnnData nor MuData."""
    if not all(hasattr(adata, name) for name in ("obsm", "uns", "obs_names")):
        raise ParameterError(
            f"Expected an AnnData or MuData object; got {type(adata).__name__}. Fit arrays and data frames "
            "with sparsevae.SparseVAE."
        )


def is_multimodal(adata: Any) -> bool:
    """Whether an object has modalities, as MuData has."""
    return hasattr(adata, "mod")


def read_cells(adata: Any, *, layer: str | None, use_var: Any) -> Cells:
    """The table of an AnnData object, or those of all modalities of a MuData object side by side.

    Parameters
    ----------
    adata : AnnData or MuData
    layer : str, optional
        In place of X; of MuData, in the modalities that have it.
    use_var : str, boolean array, False or None
        See `sparsevae.tl.sparse_vae`.
    """
    if not is_multimodal(adata):
        _check_names(adata.var_names, "var_names")
        used, why = _used(adata, use_var)
        names = [str(name) for name in adata.var_names[used]]
        return Cells(_matrix(adata, layer, used), names, {"": used}, None, why)
    if use_var is not None and not isinstance(use_var, str | bool):
        raise ParameterError("Expected use_var to be a column of var for MuData; got a mask. Name a column.")
    if layer is not None and not any(layer in part.layers for part in adata.mod.values()):
        raise DataError(
            f"Expected a layer '{layer}' in a modality; there is none. Name another, or leave it out."
        )
    check_same_rows(adata)
    tables, names, chosen, views, reasons = [], [], {}, [], set()
    for view, part in adata.mod.items():
        _check_names(part.var_names, f"var_names of '{view}'")
        used, why = _used(part, use_var)
        tables.append(_matrix(part, layer if layer in part.layers else None, used))
        names += join_names(str(view), part.var_names[used])
        views += [str(view)] * int(used.sum())
        chosen[str(view)] = used
        reasons.add(why)
    return Cells(side_by_side(tables), names, chosen, views, ", ".join(sorted(reasons)))


def _matrix(adata: Any, layer: str | None, used: np.ndarray) -> Matrix:
    layer = None if layer == "X" and "X" not in adata.layers else layer
    if layer is not None and layer not in adata.layers:
        there = list_names([str(name) for name in adata.layers if name is not None])
        remedy = (
            f"there is {there}. Name one of them, or" if there else "there are no layers. Leave it out, or"
        )
        raise DataError(f"Expected a layer '{layer}'; {remedy} pass layer='X'.")
    # A backed X is read here, the features used alone where they are not all.
    part = adata if used.all() else adata[:, used]
    X = part.X if layer is None else part.layers[layer]
    if X is None:
        there = list_names([str(name) for name in adata.layers if name is not None])
        raise DataError(
            f"Expected a matrix X; there is none. Name a layer: {there or 'there is none either'}."
        )
    X = X.to_memory() if hasattr(X, "to_memory") else X
    return sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X[...])


def _used(adata: Any, use_var: Any) -> tuple[np.ndarray, str]:
    """Which features to fit, and what says so."""
    n = adata.n_vars
    if use_var is None and "highly_variable" in adata.var:
        use_var = "highly_variable"
    if use_var is None or use_var is False:
        return np.ones(n, dtype=bool), "all"
    if isinstance(use_var, str):
        if use_var not in adata.var:
            there = list_names([str(name) for name in adata.var.columns])
            remedy = f"there is {there}. Name one of them" if there else "var has no columns. Pass a mask"
            raise DataError(f"Expected a column '{use_var}' in var; {remedy}.")
        mask, why = np.asarray(adata.var[use_var]), use_var
    else:
        mask, why = np.asarray(use_var), "a mask"
    if mask.dtype.kind != "b" or mask.shape != (n,) or not mask.any():
        raise DataError(
            f"Expected use_var to choose some of {n} features with True and False; got {why} of type "
            f"{mask.dtype}, shape {mask.shape}, with {int(np.count_nonzero(mask))} chosen. Pass a boolean "
            "column "
            "of var, or use_var=False for all."
        )
    return mask, why


def _check_names(names: Sequence[object], what: str) -> None:
    twice = [name for name, count in Counter(str(name) for name in names).items() if count > 1]
    if twice:
        raise DataError(
            f"Expected different {what}; got {list_names(twice)} more than once. Call "
            "adata.var_names_make_unique() first."
        )
