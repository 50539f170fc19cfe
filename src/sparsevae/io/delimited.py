"""CSV and TSV: a look at the first lines for separator, header and sample names, then the whole file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pandas as pd

from sparsevae.exceptions import DataError
from sparsevae.io.formats import (
    ID_NAMES,
    RawTable,
    ReadOptions,
    how_to_drop,
    no_id_column,
    not_utf8,
    open_text,
)

__all__ = ["read_delimited"]

_LOOK = 100  # lines that decide
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-nan", "#n/a", "<na>"))
_LOGICAL = frozenset(("true", "false"))
_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon"}


def read_delimited(path: Path, options: ReadOptions) -> RawTable:
    """Read a CSV or TSV file; guess from its first lines what the file does not say."""
    try:
        layout = _look_at(path, options)
        frame = _read(path, layout)
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise DataError(f"Expected as many fields in every line of {path}; {str(error).strip()}.") from error
    names = list(layout.names)
    if layout.id_position is None:
        return RawTable(frame, names if layout.header else None, assumptions=layout.notes)
    samples, id_name = frame.iloc[:, layout.id_position], names.pop(layout.id_position)
    if layout.id_must_differ and not samples.is_unique:
        repeated = samples[samples.duplicated()].iloc[0]
        remedy = "Give the columns names and leave this one out."
        if layout.header:
            remedy = (
                f"Leave it out ({how_to_drop([id_name])}), or label the rows with it (id_column='{id_name}', "
                f"--id-column '{id_name}')."
            )
        raise DataError(
            f"Expected numbers in the first column of {path}, or a different name in every row; got text "
            f"such as '{repeated}' more than once. {remedy}"
        )
    frame = frame.drop(columns=frame.columns[layout.id_position])
    id_name = id_name if layout.header and id_name else "sample"
    return RawTable(frame, names if layout.header else None, samples.to_numpy(), id_name, layout.notes)


@dataclass(frozen=True)
class _Layout:
    separator: str
    decimal: str
    header: bool
    names: tuple[str, ...]
    id_position: int | None
    id_must_differ: bool
    notes: tuple[str, ...]


def _look_at(path: Path, options: ReadOptions) -> _Layout:
    with open_text(path) as file:
        lines = [line for line in islice(file, _LOOK) if line.strip()]
    if not lines:
        raise DataError(f"Expected a table in {path}; the file is empty.")
    notes = []
    separator = _separator(path, lines[0])
    if separator != ("\t" if ".tsv" in path.name.lower() else ","):
        notes.append(f"Fields are separated by a {_SEPARATORS[separator]}.")
    rows = list(csv.reader(lines, delimiter=separator))
    decimal = "," if separator == ";" and _has_decimal_commas(rows) else "."
    if decimal == ",":
        notes.append("Numbers have a decimal comma.")
    first, rest = rows[0], rows[1:]
    # R's write.table gives the row names no heading: the first line is one field short.
    unnamed_ids = bool(rest) and len(first) == len(rest[0]) - 1
    header, why = _has_header(first, options.header, decimal)
    if header and unnamed_ids:
        first = ["", *first]
    names = tuple(name.strip() for name in first) if header else tuple(f"x{j}" for j in range(len(first)))
    if options.header is None:
        notes.append(f"The first line {'holds the names' if header else 'holds data, not names'}: {why}.")
    samples = rest if header else rows
    position, reason, must_differ = _id_column(names, samples, header, options, decimal, path)
    if position is not None:
        label = f"column '{names[position]}'" if header and names[position] else "the first column"
        notes.append(f"Sample names are in {label}: {reason}.")
    return _Layout(separator, decimal, header, names, position, must_differ, tuple(notes))


def _read(path: Path, layout: _Layout) -> pd.DataFrame:
    # Names come later: pandas would rename those that occur twice.
    return pd.read_csv(
        path,
        sep=layout.separator,
        decimal=layout.decimal,
        header=None,
        names=range(len(layout.names)),
        index_col=False,
        skiprows=1 if layout.header else 0,
        encoding="utf-8-sig",
        converters={} if layout.id_position is None else {layout.id_position: str},
        skipinitialspace=True,
        low_memory=False,
    )


def _separator(path: Path, line: str) -> str:
    expected = "\t" if ".tsv" in path.name.lower() else ","
    # The expected one wins a tie; a file of one column has none of them.
    return max([expected, *_SEPARATORS], key=line.count)


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    cells = [cell for row in rows[1:] for cell in row if not _is_number(cell, ".")]
    return any(_is_number(cell, ",") for cell in cells)


def _has_header(first: Sequence[str], given: bool | None, decimal: str) -> tuple[bool, str]:
    if given is not None:
        return given, "as asked"
    cells = first[1:] or first
    words = [cell for cell in cells if not _is_number(cell, decimal)]
    if words:
        return True, f"it has words such as '{words[0].strip()}'"
    if _counts_columns(first) or _counts_columns(cells):
        return True, "it counts the columns"
    if first[0].strip() == "" and len(first) > 1:
        return True, "its first field is empty"
    return False, "every field of it is a number"


def _counts_columns(cells: Sequence[str]) -> bool:
    # In a narrow table 1, 2, 3 may well be the answers of the first person.
    texts = [cell.strip() for cell in cells]
    return len(texts) >= 6 and any(texts == [str(start + j) for j in range(len(texts))] for start in (0, 1))


def _id_column(
    names: Sequence[str],
    rows: list[list[str]],
    header: bool,
    options: ReadOptions,
    decimal: str,
    path: Path,
) -> tuple[int | None, str, bool]:
    """Position of the sample names, why they are thought to be there, and whether they must differ."""
    wanted = options.id_column
    if wanted == "none":
        return None, "", False
    if wanted is not None:
        if wanted not in names:
            raise no_id_column(wanted, path)
        return names.index(wanted), "as asked", False
    if len(names) < 2 or (header and names[0] in options.columns_to_drop(names)):
        return None, "", False
    values = [row[0].strip() for row in rows if row]
    differ = len(set(values)) == len(values)
    if header and names[0] == "":
        return 0, "it has no heading", False
    if any(not _is_number(value, decimal) for value in values):
        return 0, "it holds text", True
    if header and names[0].lower() in ID_NAMES and differ:
        return 0, "of its heading", False
    return None, "", False


def _is_number(cell: str, decimal: str) -> bool:
    cell = cell.strip()
    if cell.lower() in _MISSING or cell.lower() in _LOGICAL:
        return True
    try:
        float(cell if decimal == "." else cell.replace(",", "."))
    except ValueError:
        return False
    return True
