"""A fit of an H5AD file, written into a copy of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.identifiability import Certificate
from sparsevae.inspection.codes import Codes
from sparsevae.persistence import replacing
from sparsevae.tl.annotations import annotate
from sparsevae.tl.tables import Cells

__all__ = ["check_h5ad", "write_h5ad"]


def check_h5ad(source: Path, target: Path, *, force: bool) -> None:
    """Refuse, before a fit, what `write_h5ad` could not write."""
    if source.suffix.lower() != ".h5ad" or target.suffix.lower() != ".h5ad":
        raise DataError(
            f"Expected an H5AD table, and an output that ends in .h5ad, to write factors into it; got "
            f"{source.name} and {target.name}. The factors of other tables are in factors.csv of the run."
        )
    if target.exists() and target.samefile(source):
        raise DataError(f"Expected another file than the table to write to; got {target} twice.")
    if target.exists() and not force:
        raise DataError(f"Expected a new file for the output; {target} exists. Add --force to replace it.")


def write_h5ad(
    source: Path,
    target: Path,
    model: SparseVAE,
    codes: Codes,
    *,
    layer: str | None = None,
    certificate: Certificate | None = None,
    key: str = "sparsevae",
) -> None:
    """Copy an H5AD file with the result of its fit, as `sparsevae.tl.sparse_vae` writes it.

    Parameters
    ----------
    source, target : Path
    model : SparseVAE
        Fitted to all cells of the source, with names of genes.
    codes : Codes
        Of these cells.
    layer : str, optional
        That was fitted.
    certificate : Certificate, optional
        Of the fit; made here by default.
    key : str
        Under which the result is written.
    """
    import anndata

    adata = anndata.read_h5ad(source)
    used = np.isin(adata.var_names.astype(str), model.feature_names().astype(str))
    cells = Cells(codes.X, [str(name) for name in model.feature_names()], {"": used}, None, "all")
    settings = {"layer": layer, "use_var": "all", **model.get_params()}
    annotate(adata, cells, model, codes, key, settings, certificate)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        adata.write_h5ad(partial)
