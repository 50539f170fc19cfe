"""The files of a run: which they are, how they are written, and whether a directory holds nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import pandas as pd

from sparsevae.exceptions import DataError
from sparsevae.io.spreadsheet import neutralise_frame
from sparsevae.io.table import list_names
from sparsevae.persistence.place import MARKS
from sparsevae.runs.record import read_run_record

__all__ = ["FIT_FILES", "STABILITY_FILES", "check_place", "estimate_size", "write_blocks", "write_csv"]

FIT_FILES = (
    "run.json",
    "model",
    "loadings.csv",
    "effects.csv",
    "factors.csv",
    "history.csv",
    "evidence.json",
    "log.txt",
)
"""What a run holds after the fit."""

STABILITY_FILES = ("stability.json", "stability.csv", "selection.csv")
"""What refits add to it."""

_MODEL_FILES = {"model.json", "model.safetensors"}
# A report may be written into the run under any name; its page comes with files of these endings.
_REPORT_ENDINGS = (".json", ".factors.csv", ".features.csv", ".links.csv", ".samples.csv")

_DIGITS = "%.7g"  # what a float32 holds
_OTHER_BYTES = 1_000_000  # the history, the evidence and the log of a usual fit


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a place for a run that holds something, unless it is a run alone and ``force`` is true."""
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise DataError(f"Expected a place for the run; {above} is a file. Choose another name.")
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise DataError(f"Expected a new directory for the run; {path} is a file. Choose another name.")
    if not any(path.iterdir()):
        return
    if not (path / "run.json").exists():
        raise DataError(
            f"Expected a new directory for the run; {path} holds something else than a run. Choose another "
            "name."
        )
    if not force:
        raise DataError(
            f"Expected a new directory for the run; {path} already holds a run. Add --force (in Python "
            "force=True) to replace it."
        )
    try:
        read_run_record(path)
    except DataError as error:
        raise DataError(
            f"Expected a run to replace; {path} does not open as one. Choose another name, or remove it "
            f"first. ({error})"
        ) from error
    foreign = _foreign_entries(path)
    if foreign:
        raise DataError(
            f"Expected only the files of a run in {path}, to replace it; got {list_names(foreign)} too. Move "
            f"{'it' if len(foreign) == 1 else 'them'} elsewhere, or choose another name."
        )


def estimate_size(n_samples: int, n_features: int, n_factors: int, hidden_sizes: Sequence[int]) -> int:
    """About how many bytes a run takes on the disk, rather more than less."""
    widths = (n_features, *hidden_sizes, n_factors)
    weights = 2 * sum(below * above for below, above in pairwise(widths)) + 4 * n_features * n_factors
    texts = 16 * n_factors * (n_samples + 2 * n_features)
    return 4 * weights + texts + _OTHER_BYTES


def write_csv(
    frame: pd.DataFrame,
    target: Path | TextIO,
    *,
    index: bool = True,
    separator: str = ",",
    raw_names: bool = False,
) -> None:
    """Write a data frame as text, with as many digits as the fit has.

    Parameters
    ----------
    frame : DataFrame
    target : Path or open file
    index : bool
    separator : str
    raw_names : bool
        Whether text is written as it is. By default a text that a spreadsheet would take for a formula gets
        an apostrophe in front, which `read_table` takes away again.
    """
    frame = frame if raw_names else neutralise_frame(frame)
    frame.to_csv(target, sep=separator, index=index, float_format=_DIGITS, lineterminator="\n")


def write_blocks(
    blocks: Iterable[pd.DataFrame], target: Path | TextIO, *, separator: str = ",", raw_names: bool = False
) -> None:
    """Write data frames with the same columns one after the other, as `write_csv` does one."""
    with nullcontext(target) if not isinstance(target, Path) else target.open("w", encoding="utf-8") as file:
        for b, frame in enumerate(blocks):
            frame = frame if raw_names else neutralise_frame(frame)
            frame.to_csv(file, sep=separator, header=not b, float_format=_DIGITS, lineterminator="\n")


def _foreign_entries(path: Path) -> list[str]:
    """What lies in a run and was not written by fit, stability or report."""
    entries = {entry.name: entry for entry in path.iterdir()}
    ours = {*FIT_FILES, *STABILITY_FILES, *MARKS}
    for name in entries:
        stem, dot, ending = name.rpartition(".")
        report = {name, *(stem + other for other in _REPORT_ENDINGS)}
        if f"{dot}{ending}".lower() in (".html", ".htm") and report <= entries.keys():
            ours |= report
    foreign = [
        name
        for name, entry in entries.items()
        if name not in ours or entry.is_symlink() or entry.is_dir() != (name == "model")
    ]
    if (path / "model").is_dir():
        inside = {entry.name for entry in (path / "model").iterdir()}
        foreign += [f"model/{name}" for name in inside - _MODEL_FILES]
    return sorted(foreign)
