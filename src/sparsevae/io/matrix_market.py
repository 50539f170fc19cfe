"""Matrix Market: sparse matrices in text, checked line by line before they are read."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from scipy.io import mminfo, mmread

from sparsevae.exceptions import DataError
from sparsevae.io.formats import RawTable, ReadOptions, open_bytes
from sparsevae.io.memory import check_room

__all__ = ["read_matrix_market"]

_WHOLE = rb"[ \t]*+\+?[0-9]++"
_REAL = rb"[ \t]*+[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++|nan|inf)(?:[eEdD][+-]?[0-9]++)?"
_END = rb"(?:[ \t]*+\r?\n|$)"  # without blanks at the very end: scipy crashes on them
_LINES_AT_ONCE = 20_000


def read_matrix_market(path: Path, options: ReadOptions) -> RawTable:
    """A sparse matrix in text, without names."""
    n_rows, n_columns, n_entries, layout, field, _ = mminfo(path)
    n_cells = n_rows * n_columns if layout == "array" else 3 * n_entries + n_rows + n_columns
    check_room(8 * n_cells, path)
    _check_lines(path, layout, field)
    return RawTable(mmread(path))


def _check_lines(path: Path, layout: str, field: str) -> None:
    """Refuse a line that is no entry: scipy leaves out what is too much, and crashes on control signs."""
    n_values = {"pattern": 0, "complex": 2}.get(field, 1)
    numbers = _REAL * n_values
    if layout != "array":
        numbers = _WHOLE + rb"[ \t]" + _WHOLE + (rb"[ \t]" + _REAL) * n_values
    entries = re.compile(rb"(?>(?:" + numbers + rb")?" + _END + rb")*+")
    number = 1
    with open_bytes(path) as file:
        for line in file:
            if number > 1 and line.strip() and not line.startswith(b"%"):
                break  # the sizes
            number += 1
        while lines := list(islice(file, _LINES_AT_ONCE)):
            if not entries.fullmatch(b"".join(lines)):
                wrong = next(i for i, line in enumerate(lines) if not entries.fullmatch(line))
                raise DataError(
                    f"Expected an entry of the matrix in every line of {path}; line {number + 1 + wrong} is "
                    "something else: the file is damaged."
                )
            number += len(lines)
