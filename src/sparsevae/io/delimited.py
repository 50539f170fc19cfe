"""CSV and TSV: one reader that looks at the first lines and goes on from there, cell by cell."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np

from sparsevae.exceptions import DataError
from sparsevae.io.formats import Cell, RawTable, ReadOptions, how_to_drop, not_utf8, open_text
from sparsevae.io.layout import LOGICAL, LOOK, Layout, find_layout, find_separator, read_number
from sparsevae.io.spreadsheet import restore_text

__all__ = ["read_delimited"]

NumberedRow = tuple[int, list[str]]


def read_delimited(path: Path, options: ReadOptions) -> RawTable:
    """Read a CSV or TSV file; guess from its first lines what the file does not say.

    Empty cells and those that say NA are NaN. Text is NaN too, with its place in ``text``.
    """
    try:
        with open_text(path) as file:
            return _read(file, path, options)
    except UnicodeDecodeError as error:
        raise not_utf8(path) from error


def _read(file: Iterable[str], path: Path, options: ReadOptions) -> RawTable:
    lines = iter(file)
    beginning = list(islice(lines, LOOK))
    separator = find_separator(beginning, path)
    careful = _Careful(chain(beginning, lines))
    reader = csv.reader(careful, delimiter=separator, skipinitialspace=True, strict=True)
    rows = _rows(reader, path)
    look = list(islice(rows, LOOK))
    if not look:
        raise DataError(f"Expected a table in {path}; the file is empty.")
    layout = find_layout([row for _, row in look], separator, options, path)
    numbers = _Numbers(layout, path)
    for line, row in look[1:] if layout.header else look:
        numbers.add(line, row, careful=True)
    for line, row in rows:
        numbers.add(line, row, careful=careful.since_last())
    return numbers.table()


def _rows(reader: Iterator[list[str]], path: Path) -> Iterator[NumberedRow]:
    """Rows with the numbers of their lines; blank lines are no rows, except inside of a single column."""
    blank: list[int] = []
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            number = getattr(reader, "line_num", 0)
            raise DataError(
                f"Expected fields with closed quotes in {path}; line {number} is not such a one ({error})."
            ) from error
        if row is None:
            return
        number = getattr(reader, "line_num", 0)
        if not row or (len(row) == 1 and not row[0].strip()):
            blank.append(number)
            continue
        if len(row) == 1 and blank and blank[0] > 1:
            yield from ((line, [""]) for line in blank)
        blank = []
        yield number, row


class _Careful:
    """Lines, and whether any since the last question has signs that `float` takes and a table must not."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = iter(lines)
        self.seen = False

    def __iter__(self) -> _Careful:
        return self

    def __next__(self) -> str:
        line = next(self.lines)
        if "_" in line or not line.isascii():
            self.seen = True
        return line

    def since_last(self) -> bool:
        seen, self.seen = self.seen, False
        return seen


@dataclass
class _Numbers:
    """The cells read so far, row after row."""

    layout: Layout
    path: Path
    values: array[float] = field(default_factory=lambda: array("d"))
    lines: array[int] = field(default_factory=lambda: array("q"))
    samples: list[str] = field(default_factory=list)
    text: dict[int, Cell] = field(default_factory=dict)
    logical: dict[int, Cell] = field(default_factory=dict)

    def add(self, line: int, row: list[str], *, careful: bool) -> None:
        """Take one more row.

        Parameters
        ----------
        line : int
            Its number in the file.
        row : list of str
        careful : bool
            Whether `float` alone might take text for a number.
        """
        width = len(self.layout.names)
        if len(row) != width:
            raise DataError(
                f"Expected as many fields in every line of {self.path}; got {width} before and {len(row)} in "
                f"line {line}. Look for a separator that is missing or too many, or a text that needs quotes."
            )
        if self.layout.id_position is not None:
            self.samples.append(row.pop(self.layout.id_position))
        begin = len(self.values)
        try:
            if careful or self.layout.decimal != ".":
                raise ValueError
            self.values.extend(map(float, row))
        except ValueError:
            del self.values[begin:]
            self.values.extend(self._slowly(row))
        self.lines.append(line)

    def _slowly(self, row: list[str]) -> Iterator[float]:
        for j, cell in enumerate(row):
            number = read_number(cell, self.layout.decimal)
            if number is None:
                self.text.setdefault(j, Cell(len(self.lines), cell))
                number = np.nan
            elif cell.strip().lower() in LOGICAL:
                self.logical.setdefault(j, Cell(len(self.lines), cell))
            yield number

    def table(self) -> RawTable:
        """What was read, once all rows are in."""
        layout, names = self.layout, [restore_text(name) for name in self.layout.names]
        id_name = None if layout.id_position is None else names.pop(layout.id_position)
        X = np.frombuffer(self.values, dtype=np.float64) if len(self.values) else np.empty(0)
        X = X.reshape(len(self.lines), len(names))
        for j, cell in self.logical.items():  # true and false beside 0 and 1, but not beside 2.5
            if not (np.isin(X[:, j], (0.0, 1.0)) | np.isnan(X[:, j])).all():
                self.text.setdefault(j, cell)
        shown = id_name if layout.header else None
        samples = None
        if id_name is not None:
            samples = np.array([restore_text(name) for name in self.samples], dtype=object)
            if layout.id_must_differ:
                _check_differ(self.samples, shown, self.path)
        return RawTable(
            X,
            names if layout.header else None,
            samples,
            shown or "sample",
            layout.notes,
            self.text,
            np.array(self.lines, dtype=np.int64),
        )


def _check_differ(samples: list[str], name: str | None, path: Path) -> None:
    """Refuse sample names that were guessed and occur twice."""
    seen: set[str] = set()
    repeated = next((value for value in samples if value in seen or seen.add(value)), None)  # type: ignore[func-returns-value]
    if repeated is None:
        return
    remedy = "Give the columns names and leave this one out."
    if name is not None:
        remedy = (
            f"Leave it out ({how_to_drop([name])}), or label the rows with it (id_column='{name}', "
            f"--id-column '{name}'), or take it for a feature (id_column='none')."
        )
    if read_number(repeated) is None:
        raise DataError(
            f"Expected numbers in the first column of {path}, or a different name in every row; got text "
            f"such as '{repeated}' more than once. {remedy}"
        )
    raise DataError(
        f"Expected a different name in every row of the first column of {path}, by its heading; got "
        f"'{repeated}' more than once. {remedy}"
    )
