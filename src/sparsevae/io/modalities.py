"""MuData: several tables of the same rows side by side, each a view of the features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError
from sparsevae.io.formats import RawTable, ReadOptions, no_id_column
from sparsevae.io.probe import check_hdf5

__all__ = ["check_same_rows", "join_names", "read_h5mu", "side_by_side"]


def read_h5mu(path: Path, options: ReadOptions) -> RawTable:
    """A MuData file: X of every modality, or the layer where a modality has it; modalities are views."""
    try:
        import mudata
    except ImportError as error:
        raise DataError("Expected mudata, to read H5MU; it is not installed: pip install mudata.") from error
    check_hdf5(path, "an H5MU file")
    cells = mudata.read_h5mu(path)
    if not cells.mod:
        raise DataError(f"Expected modalities in {path}; there are none.")
    check_same_rows(cells)
    layers = sorted({str(name) for part in cells.mod.values() for name in part.layers if name is not None})
    if options.layer is not None and options.layer not in layers:
        there = ", ".join(layers) or "none"
        raise DataError(
            f"Expected a layer '{options.layer}' in a modality of {path}; there is {there}. Name another "
            "(layer=..., on the command line --layer NAME)."
        )
    tables, names, views, read = [], [], [], []
    for view, part in cells.mod.items():
        in_layer = options.layer is not None and options.layer in part.layers
        X = part.layers[options.layer] if in_layer else part.X
        if X is None:
            raise DataError(
                f"Expected modality '{view}' of {path} to have a matrix X; it has none. Name one of its "
                "layers (layer=..., on the command line --layer NAME)."
            )
        tables.append(X)
        names += join_names(str(view), part.var_names)
        views += [str(view)] * part.n_vars
        read.append(f"{view} {part.n_vars}{f' (layer {options.layer})' if in_layer else ''}")
    notes = [f"Modalities and their features: {', '.join(read)}."]
    if options.layer is None and layers:
        notes.append(f"Read X of each; there are also the layers {', '.join(layers)}.")
    labels, wanted = cells.obs_names.to_series(), options.id_column
    if wanted not in (None, "none", labels.name):
        columns = [cells.obs, *(part.obs for part in cells.mod.values())]
        found = next((frame[wanted] for frame in columns if wanted in frame), None)
        if found is None:
            raise no_id_column(str(wanted), path)
        labels = found
    return RawTable(
        side_by_side(tables),
        names,
        labels.astype(str).to_numpy(),
        "cell",
        tuple(notes),
        views=views,
    )


def check_same_rows(cells: Any) -> None:
    """Refuse a MuData object whose modalities do not have the same cells in the same order."""
    for view, part in cells.mod.items():
        if list(part.obs_names) != list(cells.obs_names):
            raise DataError(
                f"Expected the same cells in every modality; '{view}' has {part.n_obs} of {cells.n_obs}, or "
                "in another order. Take those that all have: muon.pp.intersect_obs(mdata)."
            )


def join_names(view: str, names: Sequence[object]) -> list[str]:
    """Names of the features of a modality, as MuData writes them where names of several meet."""
    return [f"{view}:{name}" for name in names]


def side_by_side(tables: Sequence[Matrix]) -> Matrix:
    """Tables of the same rows as one; sparse if one of them is."""
    if any(sparse.issparse(table) for table in tables):
        return sparse.hstack([sparse.csr_matrix(table) for table in tables], format="csr")
    return np.hstack([np.asarray(table) for table in tables])
