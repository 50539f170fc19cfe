"""Files whose tables stay on disk: which they are, and how they are opened."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from sparsevae.exceptions import DataError
from sparsevae.io.formats import ReadOptions, no_id_column
from sparsevae.io.probe import check_hdf5
from sparsevae.stored import STREAMED_BYTES, StoredTable, open_rows
from sparsevae.stored.chunked import ParquetTable
from sparsevae.stored.selection import SelectedTable

__all__ = ["fingerprint_parts", "holds_parts", "is_streamed", "open_streamed"]

_ENDINGS = (".npy", ".h5ad", ".parquet")  # of files that can be read in parts


def holds_parts(path: Path) -> bool:
    """Whether a folder is a table on disk: a Zarr group of anndata, Parquet files, or NPZ parts."""
    if not path.is_dir():
        return False
    return path.suffix.lower() == ".zarr" or any(next(path.glob(f"*{e}"), None) for e in (".parquet", ".npz"))


def is_streamed(path: Path, options: ReadOptions) -> bool:
    """Whether a table is read block by block: a folder of parts, or a file that is large in memory.

    A file that has to be transposed is read whole, whatever its size.
    """
    if options.transpose:
        return False
    if holds_parts(path):
        return True
    if path.suffix.lower() not in _ENDINGS or not path.is_file():
        return False
    # Numbers in a file are at most so much smaller than in memory: most need not be opened to know.
    if path.stat().st_size < STREAMED_BYTES // (1 if path.suffix.lower() == ".npy" else 16):
        return False
    if path.suffix.lower() == ".h5ad":
        check_hdf5(path)
    try:
        return _bytes_in_memory(open_streamed(path, options)) >= STREAMED_BYTES
    except DataError:
        return False  # its reader says what is wrong, in the same words as of small tables


def open_streamed(path: Path, options: ReadOptions) -> StoredTable:
    """The table in a file or folder, without the columns that are to be left out."""
    table = open_rows(path, layer=options.layer, columns=_parquet_columns(path, options))
    names = table.feature_names
    drop = options.columns_to_drop([] if names is None else names.tolist())
    if names is None or not np.isin(names, drop).any():
        return table
    return SelectedTable(table, np.flatnonzero(~np.isin(names, drop)))


def fingerprint_parts(path: Path) -> tuple[int, str]:
    """Bytes and checksum of all files of a folder, by name and content."""
    digest, size = hashlib.sha256(), 0
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        with file.open("rb") as content:
            own = hashlib.file_digest(content, "sha256").digest()
        size += file.stat().st_size
        digest.update(str(file.relative_to(path)).encode() + b"\0" + own)
    return size, digest.hexdigest()


def _bytes_in_memory(table: StoredTable) -> int:
    stored = getattr(table, "pointers", None)
    if table.is_sparse and stored is not None:
        return int(stored[-1]) * (4 + table.dtype.itemsize)
    return table.shape[0] * table.shape[1] * table.dtype.itemsize


def _parquet_columns(path: Path, options: ReadOptions) -> list[str] | None:
    """Columns of a Parquet table that hold measurements; None for all, and for other tables."""
    folder = path.is_dir() and next(path.glob("*.parquet"), None) is not None
    if not folder and path.suffix.lower() != ".parquet":
        return None
    names = ParquetTable.names_in(path)
    if options.id_column not in (None, "none") and options.id_column not in names:
        raise no_id_column(str(options.id_column), path)
    unwanted = {*options.columns_to_drop(names), *([options.id_column] if options.id_column else [])}
    kept = [name for name in names if name not in unwanted]
    return kept if len(kept) < len(names) else None
