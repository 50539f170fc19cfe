"""Arrays that are written row by row, without being in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from sparsevae.persistence.replacement import replacing

__all__ = ["writing_npy"]


@contextmanager
def writing_npy(
    path: Path, shape: tuple[int, int], dtype: DTypeLike
) -> Iterator[Callable[[np.ndarray], None]]:
    """An NPY file that gets its rows block after block, and its name when it is complete.

    It is written, not mapped: pages of a mapping count as memory of the process, and one that finds no room
    on the disk kills it.

    Parameters
    ----------
    path : Path
        A file that is there is replaced.
    shape : (int, int)
    dtype : dtype

    Yields
    ------
    callable
        Appends rows.
    """
    with replacing(path) as partial, partial.open("wb") as file:
        header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)

        def append(rows: np.ndarray) -> None:
            file.write(np.ascontiguousarray(rows, dtype=dtype).data)

        yield append
