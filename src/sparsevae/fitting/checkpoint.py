"""The checkpoint of a fit: where it is, which fit it belongs to, and how the fit goes on from it."""

from __future__ import annotations

import hashlib
import numbers
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from sparsevae._version import __version__
from sparsevae.aliases import Matrix, State
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.fitting.data import FitData
from sparsevae.fitting.procedure import fit_module
from sparsevae.fitting.settings import FitSettings
from sparsevae.fitting.state import FitState, Fitted
from sparsevae.persistence import CheckpointFolder, open_checkpoints
from sparsevae.stored import is_stored
from sparsevae.training.callbacks import Calls
from sparsevae.training.journal import Journal, current_journal, keeping
from sparsevae.training.processes import Group
from sparsevae.validation import check_duration

__all__ = ["Checkpoint", "checkpoint_in", "describe", "fingerprint", "fit_or_resume"]

_CELLS_AT_ONCE = 1 << 22  # of a table whose checksum is taken
_NO_MATTER = ("verbose",)  # parameters that a fit does not depend on
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object in the memory of one process
_VERSION = f"sparsevae {__version__} with torch {torch.__version__}"


class _HasParameters(Protocol):
    def get_params(self, deep: bool = True) -> State: ...


class _Folder(Protocol):
    path: Path

    def read(self) -> tuple[State, State] | None: ...

    def write(self, header: State, values: State) -> None: ...


class Checkpoint:
    """What is known of an earlier, unfinished fit, and a place for what is to be known of this one.

    Parameters
    ----------
    folder : CheckpointFolder
    every : float
        Seconds between two checkpoints inside a stage.

    Raises
    ------
    DataError
        If another version has written it.
    """

    def __init__(self, folder: _Folder, every: float) -> None:
        self.folder, self.every = folder, every
        self._header: State | None
        self._values: State
        self._header, self._values = folder.read() or (None, {})
        if self._header is not None and self._header.get("version") != _VERSION:
            raise self._refusal(f"of {_VERSION}", f"one of {self._header.get('version')}")

    def begin(self, random_state: np.random.RandomState) -> np.random.RandomState:
        """The randomness, brought to where the earlier fit began, also one without a seed."""
        if self._header is not None:
            random_state.set_state(self._values["began"].get_state(legacy=True))
        self._began = np.random.RandomState()
        self._began.set_state(random_state.get_state(legacy=True))
        return random_state

    @contextmanager
    def keeping(self, model: _HasParameters, data: FitData, calls: Calls) -> Iterator[None]:
        """Keep the fit in this context, from where the earlier one stopped.

        Raises
        ------
        DataError
            If the checkpoint belongs to another table or other settings.
        """
        header = {"version": _VERSION, "settings": describe(model), "table": fingerprint(data)}
        self._check(header)

        def write(record: State) -> None:
            self.folder.write(header, {"began": self._began, "record": record})

        journal = Journal(write, self.every, self._values.get("record"))
        calls.n_epochs = journal.n_epochs
        with keeping(journal):
            yield

    def _check(self, header: State) -> None:
        if self._header is None:
            return
        ours, theirs = header["settings"], self._header["settings"]
        other = [name for name in {**theirs, **ours} if ours.get(name) != theirs.get(name)]
        if other:
            name = other[0]
            raise self._refusal(
                "of the same settings", f"one with {name}={theirs.get(name)}, not {ours.get(name)}"
            )
        if header["table"] != self._header["table"]:
            raise self._refusal("of the same table", "one of another table")

    def _refusal(self, expected: str, got: str) -> DataError:
        return DataError(
            f"Expected a checkpoint {expected} in {self.folder.path}; got {got}. Go on as it began, choose "
            "another directory, or remove this one to begin anew."
        )


@contextmanager
def checkpoint_in(path: str | Path | None, every: object, group: Group | None) -> Iterator[Checkpoint | None]:
    """The checkpoint in a directory, which is made; None for none.

    Parameters
    ----------
    path : str, Path or None
    every : float or str
        Time between two checkpoints inside a stage.
    group : Group or None
        The processes that share the fit.
    """
    seconds = check_duration("checkpoint_every", every)
    if path is None:
        yield None
        return
    if not isinstance(path, str | Path):
        raise ParameterError(f"Expected checkpoint to be the path of a directory; got {path!r}. Pass a str.")
    if group is None:
        with open_checkpoints(path) as folder:
            yield Checkpoint(folder, seconds)
    elif group.rank:
        yield Checkpoint(_ElsewhereFolder(Path(path), group.from_first(None)), seconds)
    else:
        with open_checkpoints(path) as folder:
            yield Checkpoint(_ElsewhereFolder(folder.path, group.from_first(folder.read()), folder), seconds)


class _ElsewhereFolder:
    """The checkpoints of several processes: the first one alone reads and writes them."""

    def __init__(
        self,
        path: Path,
        found: tuple[State, State] | None,
        folder: CheckpointFolder | None = None,
    ) -> None:
        self.path, self._found, self._folder = path, found, folder

    def read(self) -> tuple[State, State] | None:
        """What the first process has read."""
        return self._found

    def write(self, header: State, values: State) -> None:
        """Write, in the first process."""
        if self._folder is not None:
            self._folder.write(header, values)


def fit_or_resume(settings: FitSettings, data: FitData) -> Fitted:
    """Fit a sparse VAE, from the last stage in the journal of the fit at hand if it has one."""
    journal = current_journal()
    if journal is None:
        return fit_module(settings, data)
    state = None if journal.stage is None else FitState.from_dict(journal.stage, data)
    return fit_module(settings, data, state=state, on_stage=lambda state: journal.end_stage(state.to_dict()))


def describe(model: _HasParameters) -> dict[str, str]:
    """The class of an estimator and its parameters, as text that is the same for the same values."""
    parameters = model.get_params(deep=False)
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        texts = {name: _ADDRESS.sub("", repr(value)) for name, value in sorted(parameters.items())}
    if not isinstance(parameters["random_state"], numbers.Integral):
        texts["random_state"] = "no number"  # where it began is in the checkpoint
    named = {name: text for name, text in texts.items() if name not in _NO_MATTER}
    return {"estimator": type(model).__name__, **named}


def fingerprint(data: FitData) -> str:
    """Checksum of the rows of a fit with their weights, groups and sizes."""
    source, digest = data.source, hashlib.sha256()
    for array in (*_parts(source.X), data.weight, source.group, source.exposure):
        if array is None:
            digest.update(b"none")
            continue
        values = array.numpy() if isinstance(array, torch.Tensor) else array
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        step = max(1, _CELLS_AT_ONCE // max(1, values[:1].size))
        for begin in range(0, len(values), step):
            digest.update(np.ascontiguousarray(values[begin : begin + step]).data)
    return digest.hexdigest()


def _parts(X: Matrix) -> tuple[np.ndarray, ...]:
    if is_stored(X):  # what one pass over all rows has found
        values = [value for value in vars(X.survey).values() if isinstance(value, np.ndarray)]
        return (np.array([*X.shape, X.survey.n_nonzero]), *values)
    return (X,) if isinstance(X, np.ndarray) else (np.array(X.shape), X.indptr, X.indices, X.data)
