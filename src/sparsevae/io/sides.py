"""Columns of a table that describe its rows and are no features: groups, weights, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from sparsevae.exceptions import DataError
from sparsevae.io.formats import RawTable, ReadOptions
from sparsevae.io.layout import MISSING

__all__ = ["as_labels", "describe_sides", "read_sides"]

_WORDS = {"groups": "group", "sample_weight": "weight", "exposure": "size"}


def read_sides(read: Callable[[str], RawTable], options: ReadOptions, path: Path) -> dict[str, np.ndarray]:
    """Groups as text, weights and sizes as numbers, by the arguments of ``fit`` that they are for.

    Parameters
    ----------
    read : callable
        Reads the file with the column of this name as names of the rows.
    options : ReadOptions
        Where it is not strict, columns that are not there are left out.
    path : Path
        The file.
    """
    if options.side_columns and options.transpose:
        raise DataError(
            f"Expected {path} to have a row per sample, so that a column may describe the rows; it has a row "
            "per feature. Turn the table round in the file."
        )
    sides = {}
    for argument, column in options.side_columns.items():
        try:
            labels = as_labels(read(column), column, path)
        except DataError:
            if options.strict:
                raise
            continue
        sides[argument] = labels if argument == "groups" else _numbers(labels, column, path)
    return sides


def as_labels(raw: RawTable, column: str, path: Path) -> np.ndarray:
    """The names of the rows of a file, of which each has one: (n_samples,)."""
    if raw.sample_names is None:
        raise DataError(
            f"Expected a column '{column}' in {path}; its columns have no names. Save the table as CSV."
        )
    labels = np.array([str(label).strip() for label in raw.sample_names], dtype=object)
    empty = [i for i, label in enumerate(labels) if label.lower() in MISSING]
    if empty:
        where = f"row {empty[0] + 1}" if raw.lines is None else f"line {raw.lines[empty[0]]}"
        raise DataError(
            f"Expected something in column '{column}' in every row of {path}; {where} has nothing there. "
            "Leave such rows out."
        )
    return labels


def describe_sides(sides: Mapping[str, np.ndarray], options: ReadOptions) -> tuple[str, ...]:
    """A sentence on each column that describes the rows."""
    columns = options.side_columns
    return tuple(
        f"Column '{columns[argument]}' says the {_WORDS[argument]} of each row"
        + (f" ({len(np.unique(values.astype(str)))} different ones)." if argument == "groups" else ".")
        for argument, values in sides.items()
    )


def _numbers(labels: np.ndarray, column: str, path: Path) -> np.ndarray:
    try:
        return labels.astype(np.float64)
    except ValueError:
        wrong = next(i for i, label in enumerate(labels) if not _is_number(label))
        raise DataError(
            f"Expected numbers in column '{column}' of {path}; row {wrong + 1} has {labels[wrong]!r}. Mend "
            "it, or name another column."
        ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
