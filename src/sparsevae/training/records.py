"""Records of epochs as columns: a history of thousands of small values as a few arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np

from sparsevae.aliases import State

__all__ = ["Record", "Records"]

Column = np.ndarray | list[object] | tuple[np.ndarray]
Record = State
"""What is known of an epoch: numbers, or arrays over replicates, by name."""


class Records(Sequence[Record]):
    """Records of epochs, held by column: a dictionary of an epoch is made when it is asked for.

    An epoch then takes some 200 bytes. Dictionaries of arrays that are views of tensors take kilobytes.

    Parameters
    ----------
    records : iterable of dict
        Numbers, text and arrays by name. They are copied.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._stretches: list[_Stretch] = []
        for record in records:
            self.append(record)

    def append(self, record: Record) -> None:
        """Copy a record behind the last one."""
        kind = _kind(record)
        if not self._stretches or self._stretches[-1].kind != kind:
            self._stretches.append(_Stretch(kind))
        self._stretches[-1].append(record)

    def __len__(self) -> int:
        return sum(stretch.length for stretch in self._stretches)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, slice):
            return [self[i] for i in range(len(self))[place]]
        i = range(len(self))[place]
        for stretch in self._stretches:
            if i < stretch.length:
                return stretch.record(i)
            i -= stretch.length
        raise AssertionError("unreachable: the position was checked")

    def packed(self) -> list[State]:
        """Copies of the columns, in stretches of records that are alike.

        Returns
        -------
        list of dict
            Of each stretch by name: an array with a first dimension more, one in a tuple if its items were no
            arrays but numpy's scalars, or a list.
        """
        return [stretch.packed() for stretch in self._stretches]

    def unpack_(self, stretches: Sequence[State]) -> Records:
        """Become the records that were packed; returns itself."""
        self._stretches = []
        for columns in stretches:
            first = next(iter(columns.values()))
            for i in range(len(first[0] if isinstance(first, tuple) else first)):
                self.append({name: _item(column, i) for name, column in columns.items()})
        return self


class _Stretch:
    """Records with the same names, types and shapes."""

    def __init__(self, kind: list[tuple[object, ...]]) -> None:
        self.kind, self.length = kind, 0
        self._columns: dict[str, Column] = {}

    def append(self, record: Record) -> None:
        for name, value in record.items():
            if not isinstance(value, np.ndarray | np.generic):
                column = self._columns.setdefault(name, [])
                assert isinstance(column, list)
                column.append(value)
                continue
            array = self._array(name)
            if array is None or len(array) == self.length:
                array = self._grown(array, value)
                self._columns[name] = (array,) if isinstance(value, np.generic) else array
            array[self.length] = value
        self.length += 1

    def record(self, i: int) -> Record:
        return {name: _item(column, i) for name, column in self._columns.items()}

    def packed(self) -> State:
        return {name: self._copied(column) for name, column in self._columns.items()}

    def _copied(self, column: Column) -> Column:
        if isinstance(column, tuple):
            return (column[0][: self.length].copy(),)
        return column[: self.length].copy()

    def _array(self, name: str) -> np.ndarray | None:
        column = self._columns.get(name)
        return column[0] if isinstance(column, tuple) else column  # type: ignore[return-value]

    def _grown(self, array: np.ndarray | None, value: np.ndarray | np.generic) -> np.ndarray:
        grown = np.empty((max(8, 2 * self.length), *value.shape), dtype=value.dtype)
        if array is not None:
            grown[: self.length] = array
        return grown


def _item(column: Column, i: int) -> object:
    if isinstance(column, tuple):
        return column[0][i]
    return column[i, ...].copy() if isinstance(column, np.ndarray) else column[i]


def _kind(record: Record) -> list[tuple[object, ...]]:
    return [
        (name, type(value), value.dtype, value.shape)
        if isinstance(value, np.ndarray)
        else (name, type(value))
        for name, value in record.items()
    ]
