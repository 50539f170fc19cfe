"""Some columns of a table on disk."""

from __future__ import annotations

import numpy as np

from sparsevae.stored.base import Rows, StoredTable

__all__ = ["SelectedTable"]


class SelectedTable(StoredTable):
    """Some columns of a table on disk.

    Parameters
    ----------
    table : StoredTable
    columns : integer array
    """

    def __init__(self, table: StoredTable, columns: np.ndarray) -> None:
        names = None if table.feature_names is None else table.feature_names[columns]
        super().__init__(
            table.where,
            (table.shape[0], len(columns)),
            table.dtype,
            is_sparse=table.is_sparse,
            chunk=table.chunk,
            feature_names=names,
        )
        self.table, self.columns = table, columns

    def _read(self, begin: int, end: int) -> Rows:
        return self.table.slice(begin, end)[:, self.columns]
