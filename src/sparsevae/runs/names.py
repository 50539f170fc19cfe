"""New names for the factors of a run, in every file that names them."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from sparsevae.aliases import JSON
from sparsevae.estimators import SparseVAE
from sparsevae.io.record import to_json
from sparsevae.io.spreadsheet import changed_names, neutralise_text
from sparsevae.persistence import replacing_directory
from sparsevae.persistence.place import MARKS

__all__ = ["rename_factors"]

Names = Mapping[str, str]
"""From the names in the files to the new ones."""


def rename_factors(path: Path, names: Names, model: SparseVAE) -> None:
    """Write a run again with other names of its factors: all of its files, or none.

    Parameters
    ----------
    path : Path
        The run.
    names : mapping from str to str
        New names by old ones.
    model : SparseVAE
        With the new names.
    """
    with replacing_directory(path) as folder:
        # A mark that a crash has left in the run must not take the place of this folder's own.
        marks = shutil.ignore_patterns(*MARKS)
        shutil.copytree(path, folder, dirs_exist_ok=True, symlinks=True, ignore=marks)
        written = _as_written(names, json.loads((path / "run.json").read_text("utf-8")))
        for file, rename in _IN_JSON.items():
            if (folder / file).is_file():
                content = json.loads((folder / file).read_text("utf-8"))
                rename(content, names)
                text = to_json(content, compact=file != "run.json") + "\n"
                (folder / file).write_text(text, "utf-8")
        for file in ("loadings.csv", "effects.csv", "factors.csv", "selection.csv"):
            if (folder / file).is_file():
                _rename_header(folder / file, written)
        if (folder / "stability.csv").is_file():
            _rename_first_fields(folder / "stability.csv", written)
        model.save(folder / "model")


def _as_written(names: Names, record: JSON) -> Names:
    """The names as the CSV files of a run have them: none that a spreadsheet would run, unless asked for."""
    if record.get("raw_names", False):
        return names
    return {neutralise_text(old): neutralise_text(new) for old, new in names.items()}


def _in_record(record: JSON, names: Names) -> None:
    if not record.get("raw_names", False):
        record["renamed"] = {**record.get("renamed", {}), **changed_names(names.values())}
    for factor in record["result"]["factors"]:
        factor["name"] = names.get(factor["name"], factor["name"])


def _in_evidence(evidence: JSON, names: Names) -> None:
    for row in evidence["certificate"]["table"]:
        for key in ("factor", "nearest_factor"):
            row[key] = names.get(row[key], row[key])
    for part in ("ablation", "curves", "samples"):
        evidence[part] = _renamed(evidence[part], names)
    words = evidence.get("words", {})
    for part in ("features", "high", "coherence"):
        if part in words:
            words[part] = _renamed(words[part], names)


def _in_stability(stability: JSON, names: Names) -> None:
    stability["reproducibility"] = _renamed(stability["reproducibility"], names)
    for match in stability["matches"]:
        match["factor"] = names.get(match["factor"], match["factor"])


def _renamed(by_factor: JSON, names: Names) -> JSON:
    return {names.get(name, name): value for name, value in by_factor.items()}


_IN_JSON: dict[str, Callable[[JSON, Names], None]] = {
    "run.json": _in_record,
    "evidence.json": _in_evidence,
    "stability.json": _in_stability,
}


def _rename_header(path: Path, names: Names) -> None:
    """Only the first line changes: numbers stay as they were written."""
    header, rest = path.read_text("utf-8").split("\n", 1)
    first, *factors = next(csv.reader([header]))
    path.write_text(f"{_line([first, *(names.get(name, name) for name in factors)])}{rest}", "utf-8")


def _rename_first_fields(path: Path, names: Names) -> None:
    rows = list(csv.reader(path.read_text("utf-8").splitlines()))
    lines = [_line([names.get(first, first), *values]) for first, *values in rows]
    path.write_text("".join(lines), "utf-8")


def _line(fields: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue()
