"""Tables that stay on disk: rows by position and blocks of rows, from files, chunked arrays and mappings."""

from sparsevae.stored.base import StoredTable, is_stored
from sparsevae.stored.opening import STREAMED_BYTES, as_stored, open_rows

__all__ = ["STREAMED_BYTES", "StoredTable", "as_stored", "is_stored", "open_rows"]
