"""From a path or an object to a table whose rows are read when they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.stored.arrays import SlicedTable, map_position, open_npy
from sparsevae.stored.base import StoredTable, is_stored
from sparsevae.stored.chunked import DaskTable, ParquetTable
from sparsevae.stored.compressed import GroupTable, PartsTable

__all__ = ["STREAMED_BYTES", "as_stored", "open_rows"]

STREAMED_BYTES = 512 << 20
"""Size in memory from which on mapped arrays, and files on the command line, are read block by block."""

_LAZY = ("h5py", "zarr", "dask", "anndata")  # libraries whose arrays would be read whole by numpy
_COPIED = "joblib_memmapping_folder"  # where joblib puts arrays that the caller has in memory


def open_rows(source: object, *, layer: str | None = None, columns: list[str] | None = None) -> StoredTable:
    """A table whose rows stay on disk, for `fit`, `transform` and `score`; of any size.

    Parameters
    ----------
    source : str, Path or object
        A path: ``.npy``; ``.h5ad`` and ``.zarr`` as anndata writes them; a ``.parquet`` file, or a folder of
        them; a folder of ``.npz`` parts that `scipy.sparse.save_npz` wrote. Or an object: a mapped array, a
        dataset or group of h5py or zarr, a backed ``adata.X``, a dask array, or anything with ``shape``,
        ``dtype`` and slices of rows.
    layer : str, optional
        Of an ``.h5ad`` or ``.zarr``, in place of X.
    columns : list of str, optional
        Of a Parquet file; by default all.

    Returns
    -------
    StoredTable
        With ``shape``, ``rows(index)`` and ``blocks()``.

    Examples
    --------
    >>> import sparsevae
    >>> model = sparsevae.SparseVAE().fit(sparsevae.open_rows("cells.h5ad"))  # doctest: +SKIP
    """
    if isinstance(source, StoredTable):
        return source
    if isinstance(source, str | Path):
        return _open_path(Path(source), layer, columns)
    if isinstance(source, np.memmap):
        return map_position(source) or SlicedTable(source, "a mapped array")
    found = _open_lazy(source)
    if found is not None:
        return found
    if hasattr(source, "shape") and hasattr(source, "dtype") and hasattr(source, "__getitem__"):
        return SlicedTable(source, f"an object of type {type(source).__name__}")
    raise ParameterError(
        f"Expected a path, or an object with shape, dtype and slices of rows; got {type(source).__name__}."
    )


def as_stored(X: Any) -> StoredTable | None:
    """A table that is to stay on disk, or None for one that is in memory, or fits into it.

    Mapped arrays stay on disk from `STREAMED_BYTES` on, arrays of h5py, zarr, dask and backed AnnData always.
    """
    if is_stored(X):
        return X
    if isinstance(X, np.memmap):
        copied = _COPIED in str(getattr(X, "filename", ""))
        return None if copied or X.nbytes < STREAMED_BYTES or X.ndim != 2 else open_rows(X)
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return None
    found = _open_lazy(X)
    if found is not None:
        return found
    # numpy can make an array of most objects; what has slices only cannot be in memory.
    plain = hasattr(X, "__array__") or hasattr(X, "columns")
    plain = plain or not isinstance(getattr(X, "shape", None), tuple)
    return None if plain or not hasattr(X, "dtype") or not hasattr(X, "__getitem__") else open_rows(X)


def _open_lazy(X: Any) -> StoredTable | None:
    """An array of one of the libraries that read when asked; they are not imported."""
    kind = type(X)
    library = kind.__module__.split(".")[0]
    if library not in _LAZY:
        return None
    if library == "dask":
        return DaskTable(X) if kind.__name__ == "Array" else None
    if library == "anndata":
        return GroupTable(X.group, _place(X.group)) if kind.__name__.endswith("Dataset") else None
    if hasattr(X, "attrs") and not hasattr(X, "shape"):
        return GroupTable(X, _place(X))
    if not hasattr(X, "shape"):
        return None
    return SlicedTable(X, _place(X), (getattr(X, "chunks", None) or (1,))[0])


def _place(item: Any) -> str:
    """File and name of a dataset or group of h5py or zarr."""
    file = getattr(getattr(item, "file", None), "filename", None) or getattr(item, "store", "")
    return f"{getattr(item, 'name', '') or 'the root'} of {file}"


def _open_path(path: Path, layer: str | None, columns: list[str] | None) -> StoredTable:
    if not path.exists():
        raise DataError(f"Expected a table at {path}; there is no such file.")
    ending = path.suffix.lower()
    if ending in (".h5ad", ".zarr"):
        return _open_anndata(path, layer)
    if ending == ".npy":
        return open_npy(path)
    if ending == ".parquet" or (path.is_dir() and any(path.glob("*.parquet"))):
        return ParquetTable(path, columns)
    parts = sorted(path.glob("*.npz")) if path.is_dir() else []
    if parts:
        return PartsTable(parts, str(path))
    raise DataError(
        f"Expected .npy, .h5ad, .zarr, .parquet, or a folder of .parquet or .npz parts; got {path.name}. "
        "Other tables are read by sparsevae.read_table."
    )


def _open_anndata(path: Path, layer: str | None) -> StoredTable:
    """X or a layer of a file that anndata wrote, with the names of its features."""
    try:
        import h5py
        import zarr
    except ImportError as error:
        raise DataError(
            f"Expected anndata, to read {path.name}; it is not installed. Run: pip install anndata"
        ) from error
    try:
        root: Any = h5py.File(path, "r") if path.is_file() else zarr.open_group(path, mode="r")
        place = "X" if layer is None else f"layers/{layer}"
        if place not in root:
            there = ", ".join(root["layers"]) if "layers" in root else ""
            raise DataError(f"Expected {place} in {path}; there is none. Its layers: {there or 'none'}.")
        found, names = root[place], root["var"][root["var"].attrs["_index"]]
        if hasattr(found, "shape") and not hasattr(found, "keys"):
            table: StoredTable = SlicedTable(found, str(path), (found.chunks or (1,))[0])
        else:
            table = GroupTable(found, str(path))
        labels = names.asstr()[:] if hasattr(names, "asstr") else names[:]
    except DataError:
        raise
    except Exception as error:  # h5py and zarr raise what they like
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(
            f"Expected {path} to be written by anndata; it cannot be read as such: it is damaged, or "
            f"something else ({reason})."
        ) from error
    table.feature_names = np.asarray(labels, dtype=object).astype(str)
    return table
