"""Tables from files, checked, and a suggestion of the likelihood that suits their values."""

from sparsevae.io.formats import ReadOptions
from sparsevae.io.labels import read_labels
from sparsevae.io.suggestion import suggest_likelihood
from sparsevae.io.table import TableFile, read_table
from sparsevae.io.text import TextOptions

__all__ = ["ReadOptions", "TableFile", "TextOptions", "read_labels", "read_table", "suggest_likelihood"]
