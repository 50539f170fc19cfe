"""Records of epochs as columns: a history of thousands of small values as a few arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from sparsevae.aliases import State

__all__ = ["Record", "pack_records", "unpack_records"]

Column = np.ndarray | list[object] | tuple[np.ndarray]
Record = State
"""What is known of an epoch: numbers, or arrays over replicates, by name."""


def pack_records(records: Sequence[Record]) -> list[State]:
    """Records by column, in stretches that are alike: arrays of one type and shape are one array.

    Parameters
    ----------
    records : sequence of dict
        Numbers, text and arrays by name.

    Returns
    -------
    list of dict
        Of each stretch by name: an array with a first dimension more, one in a tuple if its items were no
        arrays but numpy's scalars, or a list.
    """

    def column(stretch: list[Record], name: str) -> object:
        values = [record[name] for record in stretch]
        if isinstance(values[0], np.generic):
            return (np.array(values),)
        return np.stack(values) if isinstance(values[0], np.ndarray) else values

    stretches = (list(stretch) for _, stretch in groupby(records, _kind))
    return [{name: column(stretch, name) for name in stretch[0]} for stretch in stretches]


def unpack_records(stretches: Sequence[State]) -> list[Record]:
    """The records that `pack_records` was given."""

    def value(column: Column, i: int) -> object:
        if isinstance(column, tuple):
            return column[0][i]
        return column[i, ...].copy() if isinstance(column, np.ndarray) else column[i]

    def length(column: Column) -> int:
        return len(column[0] if isinstance(column, tuple) else column)

    return [
        {name: value(column, i) for name, column in stretch.items()}
        for stretch in stretches
        for i in range(length(next(iter(stretch.values()))))
    ]


def _kind(record: Record) -> list[tuple[object, ...]]:
    return [
        (name, value.dtype, value.shape) if isinstance(value, np.ndarray) else (name, type(value))
        for name, value in record.items()
    ]
