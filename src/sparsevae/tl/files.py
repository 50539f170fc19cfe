"""A fit of an H5AD or H5MU file, written into a copy of it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.identifiability import Certificate
from sparsevae.inspection.codes import Codes
from sparsevae.io.modalities import join_names
from sparsevae.persistence import check_writable, replacing
from sparsevae.tl.annotations import annotate
from sparsevae.tl.tables import Cells

__all__ = ["check_h5ad", "write_h5ad"]


def check_h5ad(source: Path, target: Path, *, force: bool) -> None:
    """Refuse, before a fit, what `write_h5ad` could not write."""
    ending = source.suffix.lower()
    if ending not in (".h5ad", ".h5mu"):
        raise DataError(
            f"Expected an H5AD or H5MU table, to write factors into it; got {source.name}. The factors of "
            "other tables are in factors.csv of the run."
        )
    if target.suffix.lower() != ending:
        raise DataError(
            f"Expected an output that ends in {ending}, as the table does; got {target.name}. Name it "
            f"{target.with_suffix(ending).name}."
        )
    if target.exists() and target.samefile(source):
        raise DataError(f"Expected another file than the table to write to; got {target} twice.")
    if target.exists() and not force:
        raise DataError(f"Expected a new file for the output; {target} exists. Add --force to replace it.")
    check_writable(target)


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
    """Copy an H5AD or H5MU file with the result of its fit, as `sparsevae.tl.sparse_vae` writes it.

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
    known, names = model.feature_names().astype(str), [str(name) for name in model.feature_names()]
    used, views = {}, None
    if source.suffix.lower() == ".h5mu":
        import mudata

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # mudata's own, on how it will join columns one day
            adata = mudata.read_h5mu(source)
        used = {
            str(view): np.isin(join_names(view, part.var_names), known) for view, part in adata.mod.items()
        }
        views = [view for view, mask in used.items() for _ in range(int(mask.sum()))]
    else:
        import anndata

        adata = anndata.read_h5ad(source)
        used = {"": np.isin(adata.var_names.astype(str), known)}
    cells = Cells(codes.X, names, used, views, "all")
    settings = {"layer": layer, "use_var": "all", **model.get_params()}
    annotate(adata, cells, model, codes, key, settings, certificate)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial, warnings.catch_warnings():
        if views is None:
            adata.write_h5ad(partial)
        else:
            warnings.simplefilter("ignore")
            adata.write_h5mu(partial)
