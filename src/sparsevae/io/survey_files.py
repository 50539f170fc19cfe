"""SPSS, Stata and Excel files: answers as numbers, questions as names."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from sparsevae.exceptions import DataError
from sparsevae.io.formats import ID_NAMES, RawTable, ReadOptions, no_id_column

__all__ = ["read_dta", "read_sav", "read_xlsx"]

_ENCRYPTED = b"\xd0\xcf\x11\xe0"  # how an encrypted workbook, and one of Excel before 2007, begins

_LETTERS = 5  # columns named in a sentence


def read_sav(path: Path, options: ReadOptions) -> RawTable:
    """An SPSS file; questions (variable labels) are names, values declared missing are missing."""
    return _read_labelled(path, options, "SPSS", lambda pyreadstat: pyreadstat.read_sav)


def read_dta(path: Path, options: ReadOptions) -> RawTable:
    """A Stata file; variable labels are names."""
    return _read_labelled(path, options, "Stata", lambda pyreadstat: pyreadstat.read_dta)


def read_xlsx(path: Path, options: ReadOptions) -> RawTable:
    """A sheet of an Excel workbook: the first, or the one that ``layer`` names."""
    with path.open("rb") as file:
        if file.read(4) == _ENCRYPTED:
            raise DataError(
                f"Expected a workbook that can be opened in {path}; it is encrypted, or of Excel before "
                "2007. "
                "Take its password away and save it as .xlsx."
            )
    try:
        import openpyxl
    except ImportError as error:
        raise _absent("openpyxl", "Excel") from error
    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            sheet = sheets[0] if options.layer is None else options.layer
            if sheet not in sheets:
                raise DataError(
                    f"Expected a sheet '{sheet}' in {path}; there is {', '.join(sheets)}. Name one of them "
                    "(layer=..., on the command line --layer NAME)."
                )
            cells = book.parse(sheet, header=None)
            # The first row by itself: "NA" may be a name, and a number above decimals stays whole.
            top = book.parse(sheet, header=None, nrows=1, dtype=object, keep_default_na=False, na_values=[""])
    except (zipfile.BadZipFile, KeyError, OSError, openpyxl.utils.exceptions.InvalidFileException) as error:
        raise DataError(f"Expected {path} to be an Excel workbook; it is damaged ({error}).") from error
    if cells.empty:
        raise DataError(
            f"Expected a table in sheet '{sheet}' of {path}; it is empty. Name another (--layer)."
        )
    notes = [f"Read sheet '{sheet}'; the workbook has {', '.join(sheets)}."] if len(sheets) > 1 else []
    first = top.to_numpy().ravel().tolist()
    header = options.header
    if header is None:
        header = any(isinstance(value, str) for value in cells.iloc[0])
        notes.append(f"The first row {'holds the names' if header else 'holds data, not names'}.")
    if not header:
        return _with_labels(cells, [str(j) for j in range(cells.shape[1])], None, options, path, notes)
    frame = cells.iloc[1:].reset_index(drop=True).infer_objects()
    names = ["" if pd.isna(name) else str(_plain(name)).strip() for name in first]
    names += [""] * (frame.shape[1] - len(names))
    blank = [j for j, name in enumerate(names) if not name and frame.iloc[:, j].isna().all()]
    if blank:
        notes.append(f"Left out what has neither a name nor a value: {_letters(blank)}.")
    unnamed = [j for j, name in enumerate(names) if not name and j not in blank]
    if unnamed == [0] and options.id_column is None and len(names) > len(blank) + 1:
        notes.append("Sample names are in the first column: it has no heading.")
        options = replace(options, id_column="")
    elif unnamed:
        raise DataError(
            f"Expected a name in the first row of all columns of sheet '{sheet}' in {path}; there is none in "
            f"{_letters(unnamed)}. Write one, or delete what is above the row of names."
        )
    kept = [j for j in range(len(names)) if j not in blank]
    names = [names[j] for j in kept]
    return _with_labels(frame.iloc[:, kept], names, names, options, path, notes)


def _read_labelled(
    path: Path, options: ReadOptions, kind: str, reader: Callable[[Any], Callable[..., Any]]
) -> RawTable:
    try:
        import pyreadstat
    except ImportError as error:
        raise _absent("pyreadstat", kind) from error
    try:
        frame, meta = reader(pyreadstat)(str(path))
    except (pyreadstat.ReadstatError, UnicodeDecodeError, OSError, ValueError) as error:
        raise DataError(f"Expected {path} to be a file of {kind}; it cannot be read ({error}).") from error
    variables = [str(name) for name in frame.columns]
    labels = [str(meta.column_names_to_labels.get(name) or "").strip() or name for name in meta.column_names]
    if options.header:
        return _with_labels(frame, variables, variables, options, path, [])
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        owners = [name for name, label in zip(variables, labels, strict=True) if label == twice[0]]
        raise DataError(
            f"Expected a different label for every variable of {path}; {', '.join(owners[:4])} are all "
            "called "
            f"'{twice[0]}'. Take the variables' names instead (header=True, on the command line --header)."
        )
    labelled = sum(label != name for label, name in zip(labels, variables, strict=True))
    notes = [
        f"{labelled} of {len(labels)} variables are named by their labels (--header for variables' names)."
    ]
    return _with_labels(frame, variables, labels, options, path, notes if labelled else [])


def _with_labels(
    frame: pd.DataFrame,
    variables: list[str],
    names: list[str] | None,
    options: ReadOptions,
    path: Path,
    notes: list[str],
) -> RawTable:
    """The table without the column that names its rows; that column may be asked for by either name."""
    wanted, shown = options.id_column, variables if names is None else names
    position = None
    if wanted is not None and wanted != "none":
        found = [j for j in range(len(variables)) if wanted in (variables[j], shown[j])]
        if not found:
            raise no_id_column(wanted, path)
        position = found[0]
    elif wanted is None and frame.shape[1] > 1 and _names_rows(frame.iloc[:, 0], variables[0]):
        position = 0
        notes = [*notes, f"Sample names are in column '{shown[0]}'."]
    if position is None:
        return RawTable(frame, names, assumptions=tuple(notes))
    samples = frame.iloc[:, position].map(_plain).astype(str).to_numpy()
    kept = [j for j in range(frame.shape[1]) if j != position]
    features = None if names is None else [names[j] for j in kept]
    return RawTable(frame.iloc[:, kept], features, samples, shown[position], tuple(notes))


def _letters(columns: list[int]) -> str:
    """Columns as a spreadsheet calls them."""
    from openpyxl.utils import get_column_letter

    more = f" and {len(columns) - _LETTERS} more" if len(columns) > _LETTERS else ""
    word = "column" if len(columns) == 1 else "columns"
    return f"{word} {', '.join(get_column_letter(j + 1) for j in columns[:_LETTERS])}{more}"


def _names_rows(column: pd.Series, name: str) -> bool:
    text = not pd.api.types.is_numeric_dtype(column)
    return column.is_unique and bool(column.notna().all()) and (text or name.lower() in ID_NAMES)


def _plain(value: object) -> object:
    """Numbers of people are whole, though files store them with a decimal point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _absent(package: str, kind: str) -> DataError:
    return DataError(
        f"Expected {package}, to read files of {kind}; it is not installed. Run: pip install {package}"
    )
