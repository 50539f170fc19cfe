"""Sparse tables on disk: compressed rows in groups of HDF5 and Zarr, and folders of NPZ parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from sparsevae.exceptions import DataError
from sparsevae.stored.base import StoredTable

__all__ = ["GroupTable", "PartsTable"]


class GroupTable(StoredTable):
    """Compressed rows as anndata writes them: arrays ``data``, ``indices`` and ``indptr`` in a group.

    The pointers of the rows, 8 bytes a row, are in memory.

    Parameters
    ----------
    group : group of h5py or zarr
    where : str
    """

    def __init__(self, group: Any, where: str) -> None:
        kind = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "csr_matrix")))
        if not kind.startswith("csr"):
            raise DataError(
                f"Expected rows one after the other (CSR) in {where}; got {kind}. Convert it once: "
                "adata.X = adata.X.tocsr(), and write the file again."
            )
        shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
        if shape is None:
            raise DataError(f"Expected a sparse matrix with a shape in {where}; got none. Write it again.")
        self.pointers = np.asarray(group["indptr"][:]).astype(np.int64, copy=False)
        self.data, self.indices = group["data"], group["indices"]
        n_stored = min(self.data.shape[0], self.indices.shape[0])
        pointers = self.pointers
        rising = len(pointers) == int(shape[0]) + 1 and pointers[0] == 0 and pointers[-1] <= n_stored
        if not (rising and all(bool((np.diff(part) >= 0).all()) for part in _parts(pointers))):
            raise DataError(
                f"Expected pointers of {int(shape[0])} rows within the {n_stored} values of {where}; got "
                "others: it is damaged, or cut off. Write it again."
            )
        per_row = max(1.0, float(pointers[-1]) / max(1, int(shape[0])))
        together = (getattr(self.data, "chunks", None) or (1,))[0]
        chunk = max(1, int(together / per_row))
        super().__init__(where, tuple(shape), self.data.dtype, is_sparse=True, chunk=chunk)

    def _read(self, begin: int, end: int) -> sparse.csr_matrix:
        pointers = self.pointers[begin : end + 1]
        first, last = int(pointers[0]), int(pointers[-1])
        values, columns = np.asarray(self.data[first:last]), np.asarray(self.indices[first:last])
        shape = (end - begin, self.shape[1])
        return checked_rows(values, columns, pointers - first, shape, self.where)


class PartsTable(StoredTable):
    """A folder of sparse matrices that `scipy.sparse.save_npz` wrote, in the order of their names.

    Parts are read whole: they should be small beside the memory. The last one that was read is kept.

    Parameters
    ----------
    paths : sequence of Path
    where : str
    """

    def __init__(self, paths: Sequence[Path], where: str) -> None:
        shapes, types = zip(*(_look(path) for path in paths), strict=True)
        widths = {shape[1] for shape in shapes}
        if len(widths) > 1:
            raise DataError(
                f"Expected as many columns in every part of {where}; got {sorted(widths)}. Write the parts "
                "again with the same columns."
            )
        lengths = [shape[0] for shape in shapes]
        self.paths, self.begins = list(paths), np.concatenate([[0], np.cumsum(lengths)])
        shape = (int(self.begins[-1]), shapes[0][1])
        super().__init__(where, shape, np.result_type(*types), is_sparse=True, chunk=max(lengths))
        self._last: tuple[int, sparse.csr_matrix] | None = None

    def _read(self, begin: int, end: int) -> sparse.csr_matrix:
        first = int(np.searchsorted(self.begins, begin, "right")) - 1
        rows = []
        for p in range(first, len(self.paths)):
            start = int(self.begins[p])
            if start >= end:
                break
            rows.append(self._part(p)[max(begin - start, 0) : end - start])
        return sparse.vstack(rows, format="csr")

    def _part(self, p: int) -> sparse.csr_matrix:
        if self._last is None or self._last[0] != p:
            found = sparse.load_npz(self.paths[p]).tocsr()
            shape = (int(self.begins[p + 1] - self.begins[p]), self.shape[1])
            where = str(self.paths[p])
            self._last = p, checked_rows(found.data, found.indices, found.indptr, shape, where)
        return self._last[1]


def checked_rows(
    values: np.ndarray, columns: np.ndarray, pointers: np.ndarray, shape: tuple[int, int], where: str
) -> sparse.csr_matrix:
    """A CSR matrix in canonical form; scipy believes indices, and one out of bounds reads foreign memory."""
    sound = len(values) == len(columns) == pointers[-1] and len(pointers) == shape[0] + 1
    if not sound or (len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < shape[1]):
        raise DataError(
            f"Expected columns within the {shape[1]} of {where}, one for each value; got others: it is "
            "damaged, or cut off. Write it again."
        )
    rows = sparse.csr_matrix((values, columns, pointers), shape=shape)
    rows.sum_duplicates()
    return rows


def _look(path: Path) -> tuple[tuple[int, int], np.dtype]:
    """Shape and type of a part, without its values."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            kind = archive["format"].item()
            shape = tuple(int(n) for n in archive["shape"])
            with archive.zip.open("data.npy") as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0
                dtype = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(file)[2]
    except Exception as error:  # a zip file that is damaged, or something else
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(
            f"Expected {path} to be a sparse matrix saved by scipy.sparse.save_npz; it is damaged, or "
            f"something else ({reason})."
        ) from error
    if kind not in (b"csr", "csr"):
        raise DataError(f"Expected compressed rows (CSR) in {path}; got {kind!r}. Save X.tocsr() instead.")
    return (shape[0], shape[1]), np.dtype(dtype)


def _parts(values: np.ndarray, size: int = 1 << 20) -> list[np.ndarray]:
    """Overlapping parts, so that differences of large arrays need little memory."""
    return [values[begin : begin + size + 1] for begin in range(0, len(values), size)]
