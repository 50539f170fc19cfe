"""Runs whose fit was cut off: where their checkpoints are, and whether a command may go on or begin anew."""

from __future__ import annotations

from pathlib import Path

from sparsevae.exceptions import DataError
from sparsevae.persistence import has_writer, last_checkpoint, short_name
from sparsevae.runs.record import read_run_record

__all__ = ["check_unfinished", "checkpoint_place", "is_finished"]


def checkpoint_place(path: Path) -> Path:
    """The directory beside a run that holds its checkpoints until it is finished."""
    path = path.resolve()
    return path.with_name(f"{short_name(path)}.checkpoint")


def is_finished(path: Path) -> bool:
    """Whether a run is there with nothing to be resumed: its fit was not stopped, and none has begun since.

    A process may be killed after the run is complete and before its checkpoints are removed; these are older.
    """
    if not (path / "run.json").is_file() or read_run_record(path)["interrupted"]:
        return False
    last = last_checkpoint(checkpoint_place(path))
    return last is None or last.stat().st_mtime_ns <= (path / "run.json").stat().st_mtime_ns


def check_unfinished(path: Path, *, resume: bool, force: bool) -> bool:
    """Refuse to begin a fit anew where one is unfinished, unless it is to be resumed or replaced.

    Parameters
    ----------
    path : Path
        Of the run.
    resume : bool
        Whether the fit is to go on from its checkpoint, if there is one.
    force : bool
        Whether it may be given up.

    Returns
    -------
    bool
        Whether a run at the path is to be replaced: it was stopped, or its replacement has been begun.

    Raises
    ------
    DataError
        If there is an unfinished fit and neither is asked for.
    """
    place = checkpoint_place(path)
    if resume:
        return force or ((path / "run.json").is_file() and not is_finished(path))
    unfinished = last_checkpoint(place) is not None and not is_finished(path)
    if unfinished and not force and not has_writer(place):  # of a living one it is said who writes it
        raise DataError(
            f"Expected a new run; an unfinished one of that name has its checkpoint in {place}. Add --resume "
            "to go on with it, or --force to begin anew."
        )
    return force
