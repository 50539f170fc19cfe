"""What a fit writes into AnnData and MuData, and how it is read again."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sparsevae._version import __version__
from sparsevae.aliases import JSON
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.identifiability import Certificate
from sparsevae.inspection.codes import Codes
from sparsevae.io.table import list_names
from sparsevae.persistence import pack_estimator, unpack_estimator
from sparsevae.tl.tables import Cells

__all__ = ["annotate", "describe", "load_model", "write_factors"]


def load_model(adata: Any, key: str = "sparsevae") -> SparseVAE:
    """The model that `sparse_vae` left in an AnnData or MuData object, also after it was written to disk.

    Parameters
    ----------
    adata : AnnData or MuData
    key : str
        The ``key_added`` of the fit.

    Returns
    -------
    SparseVAE
    """
    if key not in adata.uns or "model" not in adata.uns[key]:
        raise DataError(
            f"Expected a model in uns['{key}'], as sparsevae.tl.sparse_vae writes it; there is "
            f"{list_names([str(name) for name in adata.uns]) or 'nothing'}. Fit first, or name another key."
        )
    model = adata.uns[key]["model"]
    tensors = np.asarray(model["tensors"], dtype=np.uint8).tobytes()
    return unpack_estimator(SparseVAE, str(model["json"]), tensors, f"uns[{key!r}]")


def annotate(
    adata: Any,
    cells: Cells,
    model: SparseVAE,
    codes: Codes,
    key: str,
    settings: JSON,
    certificate: Certificate | None = None,
) -> None:
    """Write a fit into the object that it was fitted to.

    Parameters
    ----------
    adata : AnnData or MuData
    cells : Cells
        What was fitted.
    model : SparseVAE
        Fitted to them.
    codes : Codes
        Of the cells.
    key : str
    settings : dict
        Parameters of the fit; those that are None are left out.
    certificate : Certificate, optional
        Of the fit; made here by default.
    """
    text, tensors = pack_estimator(model)
    result = {
        **describe(model, model.identifiability(codes) if certificate is None else certificate),
        "params": {name: _plain(value) for name, value in settings.items() if value is not None},
        "model": {"json": text, "tensors": np.frombuffer(tensors, dtype=np.uint8).copy()},
    }
    if cells.views is not None:
        by_view = model.explained_by_view(cells.views)
        result["variance_by_view"] = {str(view): by_view[view].to_numpy()[:-1] for view in by_view}
    active = model.active_factors_
    matrices = {key: model.effects_, f"{key}_mask": model.mask_, f"{key}_inclusion": model.inclusion_}
    begin = 0
    for view, used in cells.used.items():
        part, rows = adata.mod[view] if view else adata, slice(begin, begin + int(used.sum()))
        begin = rows.stop
        for name, matrix in matrices.items():
            whole = np.full((len(used), len(active)), np.nan)
            whole[used] = matrix[rows][:, active]
            _put(part.varm, name, whole)
    write_factors(adata, codes.means()[:, active], key, result)


def describe(model: SparseVAE, certificate: Certificate | None = None) -> JSON:
    """A fit in short, as values that an H5AD file can hold: names of factors, variance, verdicts, version."""
    active = model.active_factors_
    result: JSON = {
        "factors": np.array([str(name) for name in model.get_feature_names_out()[active]], dtype=object),
        "variance_explained": model.variance_explained_[active],
        "version": __version__,
    }
    if certificate is not None:
        for column in ("verdict", "reason"):
            result[column] = certificate.table[column].to_numpy(dtype=object)
    return result


def write_factors(adata: Any, Z: np.ndarray, key: str, result: JSON) -> None:
    """Write factors of cells to ``obsm`` and what is known of them to ``uns``."""
    _put(adata.obsm, f"X_{key}", np.ascontiguousarray(Z, dtype=np.float32))
    _put(adata.uns, key, result)


def _put(place: Any, name: str, value: object) -> None:
    with warnings.catch_warnings():
        # anndata makes a view an object of its own when something is written to it, and says so each time.
        warnings.filterwarnings("ignore", message=".*view.*")
        place[name] = value


def _plain(value: object) -> object:
    """Parameters as an H5AD file can hold them."""
    if isinstance(value, bool | int | float | str | np.ndarray):
        return value
    if isinstance(value, tuple | list) and value and all(isinstance(item, int | float) for item in value):
        return np.asarray(value)
    return str(value)
