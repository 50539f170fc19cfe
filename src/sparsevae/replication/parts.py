"""Rows of a table in parts: random halves of them, or a part per study."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sparsevae.exceptions import DataError
from sparsevae.identifiability.jobs import Table
from sparsevae.metrics.replication import halves
from sparsevae.validation import shown

__all__ = ["Part", "Parts", "by_study", "halve_rows", "split_off"]

_LEAST_ROWS = 10  # of a part; fewer say nothing about factors
_MOST_STUDIES = 20
_APART = 10_000  # splits of one random_state, before those of the next begin


class Part(NamedTuple):
    """Rows that are fitted by themselves, and the seed of their fit."""

    rows: np.ndarray
    seed: int


class Parts(NamedTuple):
    """Parts by name, and which of them are compared.

    Attributes
    ----------
    rows : dict from str to Part
    splits : list of (name of the split, part, part)
    studies : tuple of str
        Empty for random halves.
    """

    rows: dict[str, Part]
    splits: list[tuple[str, str, str]]
    studies: tuple[str, ...] = ()


def halve_rows(n_samples: int, n_splits: int, seed: int) -> Parts:
    """Random halves of the rows, several times."""
    if n_samples < 2 * _LEAST_ROWS:
        raise DataError(
            f"Expected at least {2 * _LEAST_ROWS} rows, to fit halves of them; got {n_samples}. Collect more "
            "rows."
        )
    rows: dict[str, Part] = {}
    splits = []
    for split in range(n_splits):
        names = [f"half {split + 1}{letter}" for letter in "ab"]
        both = halves(n_samples, _APART * seed + split)
        rows |= {
            name: Part(half, (seed + at) % (2**31 - 1))
            for at, (name, half) in enumerate(zip(names, both, strict=True))
        }
        splits.append((str(split + 1), names[0], names[1]))
    return Parts(rows, splits)


def by_study(labels: np.ndarray, seed: int) -> Parts:
    """A part per study, in the order in which they occur; each two of them are compared."""
    studies = list(dict.fromkeys(labels.tolist()))
    if len(studies) < 2:
        raise DataError(
            f"Expected at least two studies in by; every row has {studies[0]!r}. Leave by out: halves of the "
            "rows are then compared."
        )
    if len(studies) > _MOST_STUDIES:
        raise DataError(
            f"Expected at most {_MOST_STUDIES} studies in by; got {len(studies)} different values. Name a "
            "column with a few values."
        )
    rows = {
        study: Part(np.flatnonzero(labels == study), (seed + at) % (2**31 - 1))
        for at, study in enumerate(studies)
    }
    small = [study for study, part in rows.items() if len(part.rows) < _LEAST_ROWS]
    if small:
        raise DataError(
            f"Expected at least {_LEAST_ROWS} rows of each study; got {len(rows[small[0]].rows)} of "
            f"{small[0]!r}. Leave such rows out."
        )
    splits = [(f"{a}, {b}", a, b) for a, b in combinations(studies, 2)]
    return Parts(rows, splits, tuple(studies))


def split_off(
    table: Any, by: Sequence[object] | np.ndarray | pd.Series | str | None
) -> tuple[Table, np.ndarray | None]:
    """The table without the column of the studies, and the study of each row as text.

    Parameters
    ----------
    table : data frame, ndarray or CSR matrix of shape (n_samples, n_features)
    by : sequence of length n_samples, the name of a column, or None
    """
    if by is None:
        return table, None
    if isinstance(by, str):
        columns = list(getattr(table, "columns", ()))
        if by not in columns:
            there = f"there is {shown(columns)}" if columns else "the table has no named columns"
            raise DataError(f"Expected a column {by!r} for by; {there}. Name one, or pass a study per row.")
        column = table[by]
        table, by = table.drop(columns=by) if hasattr(table, "iloc") else table.drop(by), column
    values = pd.Series(np.asarray(by, dtype=object).ravel())
    if len(values) != table.shape[0]:
        raise DataError(
            f"Expected a study for each of {table.shape[0]} rows in by; got {len(values)}. Pass as many as "
            "rows."
        )
    if values.isna().any():
        raise DataError(
            f"Expected a study in every row of by; row {int(values.isna().to_numpy().argmax()) + 1} has "
            "none. Leave such rows out."
        )
    return table, values.astype(str).to_numpy(dtype=object)
