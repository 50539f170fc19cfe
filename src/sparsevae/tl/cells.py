"""Fit AnnData and MuData objects, and project new ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsevae.aliases import JSON, Matrix, Parameters
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.io import suggest_likelihood
from sparsevae.io.suggestion import suggest_by_view
from sparsevae.io.table import list_names
from sparsevae.tl.annotations import annotate, describe, load_model, write_factors
from sparsevae.tl.tables import Cells, check_kind, read_cells

__all__ = ["project", "report", "sparse_vae"]

logger = logging.getLogger(__name__)


def sparse_vae(
    adata: Any,
    n_factors: int = 20,
    *,
    layer: str | None = None,
    use_var: str | Sequence[bool] | np.ndarray | bool | None = None,
    batch_key: str | None = None,
    likelihood: str | Mapping[str, object] = "auto",
    key_added: str = "sparsevae",
    copy: bool = False,
    **parameters: Any,
) -> Any:
    """Fit a sparse VAE to an AnnData or MuData object and write the result into it; X is not touched.

    Parameters
    ----------
    adata : AnnData or MuData
        In memory or backed; views, sparse matrices and layers are fine. Of MuData, the features of all
        modalities are fitted together.
    n_factors : int
        Largest number of factors.
    layer : str, optional
        Layer with raw counts; "X", which is the default, for X.
    use_var : str, boolean array or False, optional
        Features to fit: a boolean column of ``var``, or a mask; False for all. By default those of
        ``var["highly_variable"]`` where it exists, and all else.
    batch_key : str, optional
        Column of ``obs`` with the batch of each cell; what differs between batches is no factor.
    likelihood : str or dict
        As for `SparseVAE`; "auto" looks at the values. For MuData also a dict from modality to likelihood.
    key_added : str
        Under which the result is written.
    copy : bool
        Whether to write into a copy, and return it.
    **parameters
        Further parameters of `SparseVAE`: ``random_state``, ``max_epochs`` ...

    Returns
    -------
    None, or the copy
        Written to (with ``key_added="sparsevae"``): ``obsm["X_sparsevae"]``, the factors of the cells;
        ``varm["sparsevae"]``, effects; ``varm["sparsevae_mask"]`` and ``varm["sparsevae_inclusion"]``, NaN
        for features that were not fitted; ``uns["sparsevae"]``, parameters, names, verdicts, variance
        explained, version, and the model itself, for `load_model` and `project`.

    Examples
    --------
    >>> import sparsevae
    >>> sparsevae.tl.sparse_vae(adata, n_factors=20, layer="counts", random_state=0)  # doctest: +SKIP
    >>> sc.pl.embedding(adata, basis="X_sparsevae", color="louvain")  # doctest: +SKIP
    >>> model = sparsevae.tl.load_model(adata)  # doctest: +SKIP
    """
    check_kind(adata)
    _check_key("key_added", key_added)
    target = (adata.to_memory() if adata.isbacked else adata.copy()) if copy else adata
    cells = read_cells(target, layer=layer, use_var=use_var)
    chosen, why = _likelihood(cells, likelihood)
    if why:
        logger.info("%s", why)
    model = SparseVAE(n_factors, likelihood=chosen, **parameters)
    codes = model.fit_codes(cells.X, feature_names=cells.names, **_groups(target, batch_key))
    if cells.views is not None:
        model.set_views(cells.views)
    settings = {
        "layer": layer,
        "use_var": cells.used_because,
        "batch_key": batch_key,
        **{name: value for name, value in model.get_params().items() if name != "verbose"},
    }
    annotate(target, cells, model, codes, key_added, settings)
    return target if copy else None


def project(
    adata: Any,
    model: SparseVAE | str,
    *,
    layer: str | None = None,
    key: str = "sparsevae",
    key_added: str = "sparsevae",
    copy: bool = False,
) -> Any:
    """Write the factors of new cells under a fitted model into ``obsm``.

    Genes are found by their names, in whatever order; further genes are left out.

    Parameters
    ----------
    adata : AnnData or MuData
    model : SparseVAE, AnnData or MuData, str or Path
        A model fitted with names, an object that `sparse_vae` wrote into, or where a model or a run was
        saved.
    layer : str, optional
        Layer with raw counts, or "X"; by default the layer of the fit where the model remembers one, else X.
    key : str
        Where the model is in the ``uns`` of an object that was fitted.
    key_added : str
        The factors go to ``obsm["X_" + key_added]``, their names to ``uns[key_added]``.
    copy : bool
        Whether to write into a copy, and return it.

    Returns
    -------
    None, or the copy

    Raises
    ------
    DataError
        If genes of the fit are missing; the message names them.
    """
    check_kind(adata)
    _check_key("key_added", key_added)
    fitted, fitted_layer = _fitted(model, key)
    if not hasattr(fitted, "feature_names_in_"):
        raise ParameterError(
            "Expected a model that knows the names of its features; got one that was fitted without. Call "
            "model.set_feature_names(names) first."
        )
    target = (adata.to_memory() if adata.isbacked else adata.copy()) if copy else adata
    Z = fitted.codes(_features_of(fitted, target, layer or fitted_layer)).means()[:, fitted.active_factors_]
    write_factors(target, Z, key_added, {"factors": describe(fitted)["factors"], "projected": True})
    return target if copy else None


def report(
    adata: Any,
    path: str | Path,
    *,
    layer: str | None = None,
    key: str = "sparsevae",
    title: str = "",
) -> Path:
    """Write a page about the fit in an object: a card per factor, with the cells where it is strongest.

    Parameters
    ----------
    adata : AnnData or MuData
        That `sparse_vae` wrote into, with the cells of the fit.
    path : str or Path
        File of the page, which ends in ``.html``; files that are there are replaced.
    layer : str, optional
        Layer with raw counts, or "X"; by default that of the fit.
    key : str
        The ``key_added`` of the fit.
    title : str
        Title of the page.

    Returns
    -------
    Path
        Where the page is.
    """
    check_kind(adata)
    model, fitted_layer = _fitted(adata, key)
    batch_key = adata.uns[key]["params"].get("batch_key")
    codes = model.codes(_features_of(model, adata, layer or fitted_layer), **_groups(adata, batch_key))
    return model.report(path, codes, samples=[str(name) for name in adata.obs_names], title=title)


def _features_of(model: SparseVAE, adata: Any, layer: str | None) -> Matrix:
    """The features of a fit, found by their names and in its order."""
    cells = read_cells(adata, layer=layer, use_var=False)
    place = {name: j for j, name in enumerate(cells.names)}
    missing = [name for name in model.feature_names() if name not in place]
    if missing:
        raise DataError(
            f"Expected the {len(model.feature_names())} features of the fit in var_names; {len(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing: {list_names(missing)}. Use the same naming of "
            "genes, or fit again on those that both have."
        )
    return cells.X[:, [place[name] for name in model.feature_names()]]


def _likelihood(cells: Cells, wanted: str | Parameters) -> tuple[Any, str]:
    """What to fit, and a sentence on why where it was chosen here."""
    if isinstance(wanted, Mapping) and cells.views is not None and set(wanted) == set(cells.views):
        kinds = {str(view): str(kind) for view, kind in wanted.items()}
    elif wanted != "auto":
        return wanted, ""
    else:
        return _suggest(cells)
    columns: dict[str, list[int]] = {}
    for j, view in enumerate(cells.views or ()):
        columns.setdefault(kinds[view], []).append(j)
    return (next(iter(columns)) if len(columns) == 1 else columns), ""


def _suggest(cells: Cells) -> tuple[Any, str]:
    """A likelihood by the values, and a sentence on it."""
    if cells.views is not None:
        likelihood, words = suggest_by_view(cells.X, cells.views)
        return likelihood, f"The likelihood is {words}."
    likelihood, reason = suggest_likelihood(cells.X)
    return likelihood, f"The likelihood is {likelihood}, because {reason}."


def _groups(adata: Any, batch_key: str | None) -> JSON:
    if batch_key is None:
        return {}
    if batch_key not in adata.obs:
        raise DataError(
            f"Expected a column '{batch_key}' in obs, with the batch of each cell; there is "
            f"{list_names(list(adata.obs.columns)) or 'none'}. Name one of them."
        )
    missing = np.flatnonzero(adata.obs[batch_key].isna())
    if len(missing):
        raise DataError(
            f"Expected a batch for every cell in obs['{batch_key}']; {len(missing)} "
            f"{'has' if len(missing) == 1 else 'have'} none, the first is "
            f"{list_names([str(adata.obs_names[missing[0]])])}. Fill them in, or leave these cells out."
        )
    return {"groups": adata.obs[batch_key].astype(str).to_numpy()}


def _check_key(name: str, key: object) -> None:
    """Refuse a key that an H5AD file could not hold, or would take for a path."""
    if not isinstance(key, str) or not key or "/" in key:
        raise ParameterError(
            f"Expected {name} to be a name without '/'; got {key!r}. Pass for example 'sparsevae'."
        )


def _fitted(model: SparseVAE | str, key: str) -> tuple[SparseVAE, str | None]:
    if isinstance(model, SparseVAE):
        return model, None
    if isinstance(model, str | Path):
        path = Path(model)
        return SparseVAE.load(path / "model" if (path / "run.json").exists() else path), None
    check_kind(model)
    return load_model(model, key), model.uns[key]["params"].get("layer")
