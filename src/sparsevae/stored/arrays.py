"""Dense tables on disk: NPY files, mapped arrays, and anything with a shape and slices of rows."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sparsevae.aliases import State
from sparsevae.exceptions import DataError
from sparsevae.stored.base import Rows, StoredTable

__all__ = ["FileTable", "SlicedTable", "map_position", "open_npy"]


class FileTable(StoredTable):
    """Rows of equal length, one after the other in a file.

    They are read, not mapped: pages of a mapping count as memory of the process, and one that meets
    the end of a file that was cut off kills it.

    Parameters
    ----------
    path : Path
    shape : (int, int)
    dtype : dtype
    offset : int
        Bytes before the first row.
    stride : int, optional
        Bytes from a row to the next; by default rows have no gaps between them.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: DTypeLike, offset: int, stride: int | None = None
    ) -> None:
        super().__init__(str(path), shape, dtype)
        self.path, self.offset, self._stored = path, offset, np.dtype(dtype)
        self.stride = self.shape[1] * self._stored.itemsize if stride is None else stride
        self._file: int | None = None
        wanted, size = offset + self.shape[0] * self.stride, path.stat().st_size
        if stride is None and size < wanted:
            raise DataError(
                f"Expected {wanted} bytes in {path}, by its header; got {size}: it is cut off. Copy it "
                "again, or make it again."
            )

    def _read(self, begin: int, end: int) -> np.ndarray:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        width = self.shape[1] * self._stored.itemsize
        wanted = (end - begin - 1) * self.stride + width
        parts, at = [], self.offset + begin * self.stride
        while wanted > 0:
            part = _read_at(self._file, wanted, at)
            if not part:
                raise EOFError("the file ends before")
            parts.append(part)
            wanted, at = wanted - len(part), at + len(part)
        raw = parts[0] if len(parts) == 1 else b"".join(parts)
        strides = (self.stride, self._stored.itemsize)
        return np.ndarray((end - begin, self.shape[1]), self._stored, raw, strides=strides)

    def __getstate__(self) -> State:
        return self.__dict__ | {"_file": None}

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            os.close(self._file)  # type: ignore[arg-type]


class SlicedTable(StoredTable):
    """An object with ``shape``, ``dtype`` and slices of rows: arrays of h5py and zarr, and others.

    Parameters
    ----------
    array : object
    where : str
    chunk : int
        Rows that are stored together.
    """

    def __init__(self, array: Any, where: str, chunk: int = 1) -> None:
        super().__init__(where, tuple(array.shape), array.dtype, chunk=chunk)
        self.array = array

    def _read(self, begin: int, end: int) -> Rows:
        part = self.array[begin:end]
        return part.toarray() if hasattr(part, "toarray") else part


def _read_at(file: int, n_bytes: int, at: int) -> bytes:
    """Bytes from a place in an open file; not all systems have a call for that."""
    if hasattr(os, "pread"):
        return os.pread(file, n_bytes, at)
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, n_bytes)


def open_npy(path: Path) -> StoredTable:
    """A file that `numpy.save` wrote."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = read(file)
        except ValueError as error:
            raise DataError(
                f"Expected {path} to be an array saved by numpy; it is damaged, or something else ({error})."
            ) from error
        offset = file.tell()
    if by_columns and len(shape) == 2 and min(shape) > 1:
        raise DataError(
            f"Expected rows one after the other in {path}; got an array in Fortran order, whose rows are "
            "spread over the file. Save it again with numpy.save(path, numpy.ascontiguousarray(X))."
        )
    return FileTable(path, shape, dtype, offset)


def map_position(X: np.memmap) -> FileTable | None:
    """The rows of a mapped array in its file; None where they do not lie there one after the other."""
    name, mapping = getattr(X, "filename", None), getattr(X, "_mmap", None)
    if name is None or mapping is None or X.mode == "c" or X.ndim != 2 or not os.path.exists(name):
        return None
    if X.strides[1] != X.itemsize or X.strides[0] < X.shape[1] * X.itemsize:
        return None
    begin = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY  # mappings begin at the start of a page
    first = np.frombuffer(mapping, dtype=np.uint8).ctypes.data
    if not 0 <= X.ctypes.data - first <= len(mapping):
        return None
    if X.mode != "r":
        X.flush()
    stride = X.strides[0] if X.strides[0] != X.shape[1] * X.itemsize else None
    return FileTable(Path(name), X.shape, X.dtype, begin + X.ctypes.data - first, stride)
