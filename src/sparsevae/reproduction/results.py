"""Rows of results in one CSV file: a line per metric of a run, whole runs only, no run twice.

Every change writes the file anew beside its place and renames it, under a lock: a process that is killed
leaves the rows as they were before or as they are after, and several processes may work in one folder.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pandas as pd

from sparsevae.comparison.measures import Value
from sparsevae.exceptions import DataError
from sparsevae.persistence import replacing
from sparsevae.persistence.locks import lock

__all__ = ["COLUMNS", "FAILED", "KEY", "Key", "Results", "read_value", "run_of"]

KEY = ("method", "recipe", "data_set", "seed", "split")
COLUMNS = (
    *("result", "scale", *KEY, "metric", "value", "note"),
    *("seconds", "cpu_seconds", "settings", "versions", "commit", "machine"),
)
FAILED = "failed"
"""The metric of the only row of a run that failed; its note has the reason."""

Row = Mapping[str, object]
Key = tuple[str, ...]


class Results:
    """The rows in a folder.

    Parameters
    ----------
    folder : path
        Made where it does not exist, at the first row.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.path = self.folder / "rows.csv"
        self._known = _Snapshot([], None)

    def rows(self) -> list[dict[str, str]]:
        """All rows as text, in the order in which runs ended."""
        return list(self._snapshot().rows)

    def _snapshot(self) -> _Snapshot:
        """What the file says, read again only where it has changed: thousands of runs ask for it."""
        known, version = self._known, _version(self.path)
        if known.version != version:
            # Returned by its own name: joblib's thread asks too, and may put an older one in its place.
            self._known = known = _Snapshot(self._read() if version else [], version)
        return known

    def _read(self) -> list[dict[str, str]]:
        with self.path.open(newline="", encoding="utf-8") as file:
            # Version 0.1 called the recipe a reading.
            header = tuple("recipe" if name == "reading" else name for name in next(csv.reader(file), ()))
            rows = list(csv.DictReader(file, header))
        damaged = [row for row in rows if None in row or None in row.values()]
        if header != COLUMNS or damaged:
            raise DataError(
                f"Expected rows of results with the columns {', '.join(COLUMNS)} in {self.path}; got a file "
                "that is damaged or of another kind. Move it away to begin anew."
            )
        return rows

    def frame(self) -> pd.DataFrame:
        """All rows, values as text."""
        return pd.DataFrame(self.rows(), columns=list(COLUMNS))

    def finished(self) -> dict[Key, tuple[str, set[str]]]:
        """Runs that ended well, each with the fingerprint of its settings and what was measured."""
        return self._snapshot().finished

    def add(self, rows: Sequence[Row], *, replace: bool = False) -> bool:
        """Add the rows of one run, in place of what another attempt at the same run has left.

        A failure takes the place of earlier failures only: good rows, of other settings perhaps, are kept.

        Parameters
        ----------
        rows : sequence of dict
            All of one run.
        replace : bool
            Whether rows of a run that ended well with the same settings make way too.

        Returns
        -------
        bool
            False if the rows that were there have stayed.
        """
        new = [{name: _text(row.get(name, "")) for name in COLUMNS} for row in rows]
        (key,) = {run_of(row) for row in new}
        failed = new[0]["metric"] == FAILED
        with self._locked():
            there = self.rows()
            same = [row for row in there if run_of(row) == key]
            good = {row["metric"] for row in same if row["settings"] == new[0]["settings"]} - {FAILED}
            if (
                good.issuperset({row["metric"] for row in new} - {FAILED})
                and good
                and (failed or not replace)
            ):
                return False
            kept = [row for row in there if run_of(row) != key or (failed and row["metric"] != FAILED)]
            self._write(kept + new)
        return True

    def about(self) -> dict[str, str]:
        """Descriptions of the data behind the rows, by source."""
        path = self.folder / "about.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def describe(
        self, sources: Mapping[str, str], *, replaced_runs: Mapping[str, Collection[Key]] | None = None
    ) -> None:
        """Record where the data came from.

        Parameters
        ----------
        sources : dict
            From source to description.
        replaced_runs : dict, optional
            From source to the runs whose rows are discarded if its data have changed.

        Raises
        ------
        DataError
            If there are rows of other data, which no run replaces: a mean would mix both.
        """
        replaced_runs = replaced_runs or {}
        with self._locked():
            before = self.about()
            others = [name for name, text in sources.items() if before.get(name, text) != text]
            if not replaced_runs.keys() >= set(others) and self.path.exists():
                raise DataError(
                    f"Expected {', '.join(others)} as described in {self.folder / 'about.json'}, which the "
                    "rows beside it are of; got other data. Choose another folder, or do all runs again."
                )
            gone = {key for name in others for key in replaced_runs.get(name, ())}
            if gone:
                self._write([row for row in self.rows() if run_of(row) not in gone])
            if (known := {**before, **sources}) != before:
                self._replace("about.json", json.dumps(known, indent=2, ensure_ascii=False) + "\n")

    def _write(self, rows: list[dict[str, str]]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self._replace(self.path.name, text.getvalue())
        self._known = _Snapshot(rows, _version(self.path))

    def _replace(self, name: str, text: str) -> None:
        with replacing(self.folder / name) as partial:
            partial.write_text(text, encoding="utf-8", newline="")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("a+b") as file:
            lock(file)
            # Only a process that was killed while it held the lock can have left these.
            for left in [
                *self.folder.glob(".rows.*.partial.csv"),
                *self.folder.glob(".about.*.partial.json"),
            ]:
                left.unlink(missing_ok=True)
            yield  # the system lets go of the lock when the file is closed, or the process ends


class _Snapshot:
    """Rows at one version of the file; whoever changes them makes new ones."""

    def __init__(self, rows: list[dict[str, str]], version: tuple[int, ...] | None) -> None:
        self.rows, self.version = rows, version

    @cached_property
    def finished(self) -> dict[Key, tuple[str, set[str]]]:
        found: dict[Key, tuple[str, set[str]]] = {}
        for row in self.rows:
            if row["metric"] != FAILED:
                found.setdefault(run_of(row), (row["settings"], set()))[1].add(row["metric"])
        return found


def _version(path: Path) -> tuple[int, ...] | None:
    """What changes whenever the file is replaced; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_value(text: str) -> Value:
    """A value as `Results.add` was given it: a number, a list, or None.

    Parameters
    ----------
    text : str
    """
    return json.loads(text) if text else None


def run_of(row: Mapping[str, str]) -> Key:
    """The run that a row is of: its method, recipe, data set, seed and split."""
    return tuple(row[name] for name in KEY)


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return " ".join(value.split())
    return json.dumps(value)
