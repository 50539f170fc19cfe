"""Tables in pieces of many rows: Parquet datasets by row groups, dask arrays by chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sparsevae.exceptions import DataError
from sparsevae.stored.base import StoredTable

__all__ = ["DaskTable", "ParquetTable"]


class _PiecesTable(StoredTable):
    """Pieces of consecutive rows, each read as a whole; the last one that was read is kept."""

    def __init__(
        self,
        where: str,
        lengths: list[int],
        n_features: int,
        dtype: DTypeLike,
        names: np.ndarray | None = None,
    ) -> None:
        self.begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shape = (int(self.begins[-1]), n_features)
        super().__init__(where, shape, dtype, chunk=max(lengths, default=1), feature_names=names)
        self._last: tuple[int, np.ndarray] | None = None

    def _piece(self, p: int) -> np.ndarray:
        """The rows of one piece; every kind of table reads them in its own way."""
        raise NotImplementedError

    def _read(self, begin: int, end: int) -> np.ndarray:
        first = int(np.searchsorted(self.begins, begin, "right")) - 1
        parts = []
        for p in range(first, len(self.begins) - 1):
            start, stop = int(self.begins[p]), int(self.begins[p + 1])
            if start >= end:
                break
            if self._last is None or self._last[0] != p:
                piece = np.asarray(self._piece(p)).astype(self.dtype, copy=False)
                if piece.shape != (stop - start, self.shape[1]):
                    raise ValueError(f"piece {p + 1} has the shape {piece.shape}")
                self._last = p, piece
            parts.append(self._last[1][max(begin - start, 0) : end - start])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class ParquetTable(_PiecesTable):
    """A Parquet file, or a folder of them in the order of their names, by row groups.

    Parameters
    ----------
    path : Path
    columns : list of str, optional
        To read; by default all columns that hold numbers, which must be all but an index.
    """

    def __init__(self, path: Path, columns: list[str] | None = None) -> None:
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise DataError(
                "Expected pyarrow, to read Parquet; it is not installed. Run: pip install pyarrow"
            ) from error
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise DataError(f"Expected Parquet files in {path}; there is none.")
        self._open, self.groups, lengths, schema = parquet.ParquetFile, [], [], None
        for file in files:
            try:
                opened = parquet.ParquetFile(file)
            except Exception as error:
                raise _damaged(file, error) from error
            if schema is not None and opened.schema_arrow.names != schema.names:
                raise DataError(f"Expected the columns of {files[0].name} in {file}; got others.")
            schema = opened.schema_arrow if schema is None else schema
            for g in range(opened.metadata.num_row_groups):
                if opened.metadata.row_group(g).num_rows:
                    self.groups.append((file, g))
                    lengths.append(opened.metadata.row_group(g).num_rows)
        assert schema is not None
        self.columns = _numeric_columns(schema, str(path)) if columns is None else list(columns)
        types = [np.dtype(schema.field(name).type.to_pandas_dtype()) for name in self.columns]
        dtype = np.result_type(*types, np.float32) if types else np.dtype(np.float32)
        super().__init__(str(path), lengths, len(self.columns), dtype, np.array(self.columns, dtype=object))

    @staticmethod
    def names_in(path: Path) -> list[str]:
        """Columns of a Parquet file, or of the first of a folder, without an index."""
        from pyarrow import parquet

        first = min(path.glob("*.parquet")) if path.is_dir() else path
        try:
            return _measured(parquet.read_schema(first))
        except Exception as error:
            raise _damaged(first, error) from error

    def _piece(self, p: int) -> np.ndarray:
        file, group = self.groups[p]
        with self._open(file) as opened:
            table = opened.read_row_group(group, columns=self.columns)
        values = np.empty((table.num_rows, len(self.columns)), dtype=self.dtype)
        for j, name in enumerate(self.columns):
            # Nulls become NaN, which whole numbers have no room for.
            values[:, j] = table.column(name).to_pandas().to_numpy(dtype=self.dtype, na_value=np.nan)
        return values


class DaskTable(_PiecesTable):
    """A dask array, computed chunk by chunk.

    Parameters
    ----------
    array : dask.array.Array
    """

    def __init__(self, array: Any) -> None:
        if any(np.isnan(size) for size in array.shape):
            raise DataError(
                "Expected a dask array of known shape; got one whose chunks have unknown sizes. Call "
                "X.compute_chunk_sizes() first."
            )
        if array.ndim != 2:
            raise DataError(f"Expected rows and columns in a dask array; got the shape {array.shape}.")
        self.array = array.rechunk({1: array.shape[1]})
        super().__init__("a dask array", list(self.array.chunks[0]), array.shape[1], array.dtype)

    def _piece(self, p: int) -> np.ndarray:
        piece = self.array.blocks[p].compute(scheduler="threads")
        return np.asarray(piece.toarray() if hasattr(piece, "toarray") else piece)


def _damaged(file: Path, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200]
    return DataError(f"Expected {file} to be a Parquet file; it is damaged, or something else ({reason}).")


def _measured(schema: Any) -> list[str]:
    """Columns of a Parquet schema without an index."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    index = {name for name in stored if isinstance(name, str)}
    return [name for name in schema.names if name not in index]


def _numeric_columns(schema: Any, where: str) -> list[str]:
    """Columns of a Parquet schema without an index; text is refused."""
    from pyarrow import types

    columns = _measured(schema)

    def holds_numbers(name: str) -> bool:
        kind = schema.field(name).type
        return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)

    wrong = [name for name in columns if not holds_numbers(name)]
    if wrong:
        raise DataError(
            f"Expected numbers in every column of {where}; got {schema.field(wrong[0]).type} in column "
            f"'{wrong[0]}'. Leave it out (columns=..., on the command line --drop '{wrong[0]}'), or encode "
            "it as numbers."
        )
    return columns
