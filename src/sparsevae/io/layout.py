"""The layout of a text table, from its first lines: separator, decimal sign, header and sample names."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparsevae.exceptions import DataError
from sparsevae.io.formats import ID_NAMES, ReadOptions, no_id_column

__all__ = ["LOGICAL", "LOOK", "MISSING", "Layout", "find_layout", "find_separator", "read_number"]

LOOK = 100
"""Lines that decide."""

# fmt: off
MISSING = frozenset((
    "", "na", "n/a", "nan", "-nan", "null", "none", "#n/a", "#na", "#n/a n/a", "<na>",
    "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan",
))
# fmt: on
"""Cells that stand for no value, in small letters."""

LOGICAL = {"true": 1.0, "false": 0.0}

_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon"}
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity)", re.ASCII | re.IGNORECASE)
_FOR_PEOPLE = {ord(sign): None for sign in "%‰$€£¥,' \u00a0\u2009\u202f\u2019"} | {0x2212: "-"}
_SAY_WHICH = "Say which it is: header=True or header=False, on the command line --header or --no-header."

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Layout:
    """What the first lines of a text table say about all of them.

    Attributes
    ----------
    decimal : str
        The decimal sign, point or comma.
    header : bool
        Whether the first line holds names.
    names : tuple of str
        A name per field of a row; x0, x1, ... without a header.
    id_position : int, optional
        Field with the names of the samples.
    id_must_differ : bool
        Whether that field was guessed, and is to be believed only if no two rows have the same.
    notes : tuple of str
        What was assumed, one sentence each.
    """

    decimal: str
    header: bool
    names: tuple[str, ...]
    id_position: int | None
    id_must_differ: bool
    notes: tuple[str, ...]


def find_separator(lines: Sequence[str], path: Path) -> str:
    """The separator that cuts these lines into equally many fields, most of them numbers."""
    expected = "\t" if ".tsv" in path.name.lower() else ","
    candidates = [expected, *(sign for sign in _SEPARATORS if sign != expected)]
    return max(candidates, key=lambda sign: _score(lines, sign))  # the expected one wins a tie


def find_layout(rows: Rows, separator: str, options: ReadOptions, path: Path) -> Layout:
    """Look at the first rows of a text table.

    Parameters
    ----------
    rows : sequence of sequence of str
        The fields of the first lines, without blank lines; at least one.
    separator : str
    options : ReadOptions
        What the caller knows is not guessed.
    path : Path
        For the messages.

    Raises
    ------
    DataError
        If names and fields differ in number, or it is not clear what the first line holds.
    """
    notes = []
    if separator != ("\t" if ".tsv" in path.name.lower() else ","):
        notes.append(f"Fields are separated by a {_SEPARATORS[separator]}.")
    decimal = "," if separator == ";" and _has_decimal_commas(rows) else "."
    if decimal == ",":
        notes.append("Numbers have a decimal comma.")
    first, body = list(rows[0]), rows[1:]
    # R's write.table gives the row names no heading: the first line is one field short.
    surplus = len(body[0]) - len(first) if body else 0
    header, why = _has_header(first, body, int(surplus == 1), options.header, decimal, path)
    if header:
        if surplus:
            _check_row_names(first, body, surplus, decimal, path)
            first = ["", *first]
        names = tuple(name.strip() for name in first)
    else:
        names = tuple(f"x{j}" for j in range(len(first)))
    if options.header is None:
        notes.append(f"The first line {'holds the names' if header else 'holds data, not names'}: {why}.")
    samples = body if header else rows
    position, reason, must_differ = _id_column(names, samples, header, options, decimal, path)
    if position is not None:
        label = f"column '{names[position]}'" if header and names[position] else "the first column"
        notes.append(f"Sample names are in {label}: {reason}.")
    return Layout(decimal, header, names, position, must_differ, tuple(notes))


def read_number(cell: str, decimal: str = ".") -> float | None:
    """The number in a cell, NaN if it is empty or says that there is none, None if it is text.

    Stricter than `float`, which takes ``1_000`` and digits of every script.
    """
    text = cell.strip().lower()
    if text in MISSING:
        return float("nan")
    if text in LOGICAL:
        return LOGICAL[text]
    if decimal == ",":
        if "." in text:
            return None
        text = text.replace(",", ".")
    return float(text) if _NUMBER.fullmatch(text) else None


def _score(lines: Sequence[str], separator: str) -> tuple[bool, float, int]:
    """Whether rows of several fields are of one length, how many cells are numbers, and how many fields."""
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return False, 0.0, 0
    rows = [row for row in rows if row]
    if not rows:
        return False, 0.0, 0
    body = rows[1:] or rows
    decimal = "," if separator == ";" and _has_decimal_commas(rows) else "."
    cells = [cell for row in body for cell in row]
    share = sum(_is_number(cell, decimal) for cell in cells) / len(cells)
    even = len({len(row) for row in body}) == 1 and 0 <= len(body[0]) - len(rows[0]) <= 1
    return even and len(rows[0]) > 1, round(share, 1), len(rows[0])


def _has_decimal_commas(rows: Rows) -> bool:
    cells = [cell for row in rows[1:] or rows for cell in row if not _is_number(cell, ".")]
    return any(_is_number(cell, ",") for cell in cells)


def _has_header(
    first: Sequence[str], body: Rows, shift: int, given: bool | None, decimal: str, path: Path
) -> tuple[bool, str]:
    """Whether the first line holds names, and why; refused if it may be either.

    A word speaks for names where the column below holds numbers, and a number speaks against them.
    """
    if given is not None:
        return given, "as asked"
    words = [j for j, cell in enumerate(first) if not _is_number(cell, decimal)]
    numeric = [_mostly_numbers(body, j + shift, decimal) for j in range(len(first))]
    others = [j for j in range(len(first)) if j not in words]
    speaking = [j for j in words if numeric[j]]
    against = [j for j in others if numeric[j] and first[j].strip()]
    if words and (not body or len(speaking) >= max(len(against), 1) or not others or shift):
        return True, f"it has words such as '{first[words[-1]].strip()}'"
    if _counts_columns(first) or _counts_columns(first[1:]):
        return True, "it counts the columns"
    if words and words[0] == 0 and first[0].strip().lower() in ID_NAMES:
        return True, f"it begins with '{first[0].strip()}'"
    if speaking:
        word = first[speaking[0]].strip()
        raise DataError(
            f"Expected names or numbers in the first line of {path}; got '{word}' in field {speaking[0] + 1}"
            f" among {len(others)} numbers, above a column of numbers. {_SAY_WHICH}"
        )
    if not first[0].strip() and len(first) > 1:
        if body and numeric[0] and not _may_be_row_names([row[0] for row in body if row], decimal):
            raise DataError(
                f"Expected names or numbers in the first line of {path}; its first field is empty, above a "
                f"column of numbers. {_SAY_WHICH}"
            )
        return True, "its first field is empty"
    if words:
        return False, "its numbers are above columns of numbers"
    return False, "every field of it is a number"


def _mostly_numbers(body: Rows, position: int, decimal: str) -> bool:
    cells = [row[position] for row in body if position < len(row)]
    return 2 * sum(_is_number(cell, decimal) for cell in cells) > len(cells)


def _counts_columns(cells: Sequence[str]) -> bool:
    # In a narrow table 1, 2, 3 may well be the answers of the first person.
    texts = [cell.strip() for cell in cells]
    return len(texts) >= 6 and any(texts == [str(start + j) for j in range(len(texts))] for start in (0, 1))


def _check_row_names(first: Sequence[str], body: Rows, surplus: int, decimal: str, path: Path) -> None:
    """Refuse rows with other fields than there are names, unless the first one can be R's row names."""
    got = f"{len(first)} names in the first line and {len(body[0])} fields in the next"
    if surplus != 1:
        raise DataError(
            f"Expected as many names as fields in every line of {path}; got {got}. Name every column, or "
            "remove what has no name."
        )
    if not any(row[-1].strip() for row in body if row):
        raise DataError(
            f"Expected as many names as fields in every line of {path}; got {got}, the last of them empty. "
            "Remove the separator at the end of each line."
        )
    if not _may_be_row_names([row[0] for row in body if row], decimal):
        raise DataError(
            f"Expected as many names as fields in every line of {path}; got {got}, and the first field is "
            f"no name of a row: '{body[0][0].strip()}'. Name every column."
        )


def _may_be_row_names(values: Sequence[str], decimal: str) -> bool:
    """Whether values differ and are words, or whole numbers."""
    numbers = [read_number(value, decimal) for value in values]
    whole = all(number is None or number == number // 1 for number in numbers)
    return whole and len(set(values)) == len(values)


def _id_column(
    names: Sequence[str],
    rows: Rows,
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
    if header and names[0] == "":
        return 0, "it has no heading", False
    n_words = sum(not _is_number(value, decimal) for value in values)
    written = [value for value in values if _is_written_number(value, decimal)]
    if 2 * len(written) > len(values) and not (header and names[0].lower() in ID_NAMES):
        raise DataError(
            f"Expected numbers or names in the first column of {path}; got '{written[0]}', a number with a "
            "sign or a separator in it. Write plain numbers, or label the rows with it "
            f"(id_column='{names[0]}', --id-column '{names[0]}')."
        )
    if 2 * n_words > len(values):  # a few words among numbers are typing errors, and refused as such
        return 0, "it holds text", True
    if header and names[0].lower() in ID_NAMES and not n_words and len(set(values)) == len(values):
        return 0, "its heading says so", True
    return None, "", False


def _is_written_number(cell: str, decimal: str) -> bool:
    """Whether a cell is a number only for people: 12 %, € 1,200 or −3 with a typographic sign."""
    plain = cell.translate(_FOR_PEOPLE)
    return not _is_number(cell, decimal) and bool(_NUMBER.fullmatch(plain))


def _is_number(cell: str, decimal: str) -> bool:
    return read_number(cell, decimal) is not None
