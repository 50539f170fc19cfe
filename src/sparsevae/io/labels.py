"""One column of a table as text: the study, school or batch of each row."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsevae.io.formats import ReadOptions
from sparsevae.io.sides import as_labels
from sparsevae.io.table import read_raw

__all__ = ["read_labels"]


def read_labels(
    path: str | Path, column: str, *, header: bool | None = None, layer: str | None = None
) -> np.ndarray:
    """Read a column of a table that says what each row belongs to; it may hold text.

    Parameters
    ----------
    path : str or Path
        A file in which columns have names: not NPY, NPZ or MTX. Of H5AD, a column of ``obs``.
    column : str
    header, layer
        As for `read_table`.

    Returns
    -------
    ndarray of str of shape (n_samples,)

    Raises
    ------
    DataError
        If there is no such column, or a row has nothing in it.
    """
    path = Path(path)
    raw = read_raw(path, ReadOptions(header=header, id_column=column, layer=layer))
    return as_labels(raw, column, path)
