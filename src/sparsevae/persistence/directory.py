"""The directory of a saved model: written whole or not at all, checked before it is believed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Protocol, TypeVar

from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from sparsevae._version import __version__
from sparsevae.exceptions import DataError
from sparsevae.persistence.codec import decode, encode
from sparsevae.persistence.durability import write_synced
from sparsevae.persistence.place import MARKS, recover_place
from sparsevae.persistence.replacement import replacing_directory

__all__ = [
    "FORMAT_VERSION",
    "SavedModelError",
    "SavedModelNotFoundError",
    "load_estimator",
    "save_estimator",
]

FORMAT_VERSION = 2
"""Raised by one whenever an older release could not read what this one writes."""

_JSON, _TENSORS = "model.json", "model.safetensors"


class Saveable(Protocol):
    """What can be saved: parameters of the constructor, and the state that fit has found."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def saved_state(self) -> dict[str, Any]: ...
    def restore_state(self, state: dict[str, Any]) -> None: ...


Estimator = TypeVar("Estimator", bound=Saveable)


class SavedModelError(DataError):
    """A saved model that cannot be read, or a place that it cannot be written to."""


class SavedModelNotFoundError(SavedModelError, FileNotFoundError):
    """No saved model where one was expected."""


def save_estimator(estimator: Saveable, path: str | Path) -> Path:
    """Write a fitted estimator to a directory, all of it or nothing.

    Parameters
    ----------
    estimator : estimator
        With ``get_params`` and ``saved_state``.
    path : str or Path
        A directory that does not exist, is empty, or holds a saved model, which is replaced.

    Returns
    -------
    Path

    Raises
    ------
    SavedModelError
        If something else is at the path.
    """
    path = Path(path)
    recover_place(path)
    _check_replaceable(path)
    arrays: dict[str, Any] = {}
    document = {
        "parameters": encode(estimator.get_params(deep=False), arrays, "parameters"),
        "state": encode(estimator.saved_state(), arrays, "state"),
    }
    tensors = save_tensors(arrays)
    header = {
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "class": type(estimator).__name__,
        "tensors_sha256": hashlib.sha256(tensors).hexdigest(),
    }
    text = json.dumps({**header, **document}, indent=1, ensure_ascii=False, allow_nan=False)
    with replacing_directory(path) as written:
        write_synced(written / _TENSORS, tensors)
        write_synced(written / _JSON, text.encode())
    return path


def load_estimator(cls: type[Estimator], path: str | Path) -> Estimator:
    """Read an estimator that `save_estimator` wrote.

    Parameters
    ----------
    cls : type
        The class that was saved.
    path : str or Path

    Raises
    ------
    SavedModelError
        If files are missing, damaged, of a newer format, or of another class.
    """
    path = Path(path)
    recover_place(path)
    document = _read_document(path)
    if document["class"] != cls.__name__:
        raise SavedModelError(
            f"Expected a saved {cls.__name__}; got a {document['class']} in {path}. Load it with "
            f"{document['class']}.load."
        )
    arrays = _read_tensors(path / _TENSORS, document["tensors_sha256"])
    try:
        estimator = cls(**decode(document["parameters"], arrays))
        estimator.restore_state(decode(document["state"], arrays))
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise SavedModelError(
            f"Expected {path / _JSON} as save wrote it (by sparsevae {document['package_version']}); got "
            f"one that does not fit its tensors or this version ({str(error).splitlines()[0]}). Save the "
            "model again."
        ) from error
    return estimator


def _read_document(path: Path) -> dict[str, Any]:
    for name in (_JSON, _TENSORS):
        if not (path / name).is_file():
            raise SavedModelNotFoundError(
                f"Expected a saved model, a directory with {_JSON} and {_TENSORS}; got no {name} in {path}. "
                "Check the path, and that the directory was copied whole."
            )
    damaged = SavedModelError(
        f"Expected {path / _JSON} as save wrote it; got a file that is cut off or changed. Copy it again, "
        "or save the model again."
    )
    try:
        document = json.loads((path / _JSON).read_text(encoding="utf-8"))
    except ValueError as error:
        raise damaged from error
    if not isinstance(document, dict) or not isinstance(document.get("format_version"), int):
        raise damaged
    if document["format_version"] > FORMAT_VERSION:
        raise SavedModelError(
            f"Expected a model of format {FORMAT_VERSION} or older; got format "
            f"{document['format_version']}, written by sparsevae "
            f"{document.get('package_version', 'of a later version')}. Upgrade sparsevae to load it."
        )
    if {"package_version", "class", "tensors_sha256", "parameters", "state"} - document.keys():
        raise damaged
    return document


def _read_tensors(path: Path, checksum: str) -> dict[str, Any]:
    content = path.read_bytes()
    try:
        if hashlib.sha256(content).hexdigest() != checksum:
            raise SafetensorError("checksum")
        return load_tensors(content)
    except SafetensorError as error:
        raise SavedModelError(
            f"Expected {path} as save wrote it; got a file whose content does not match the checksum in "
            f"{_JSON}: it is cut off or changed. Copy it again, or save the model again."
        ) from error


def _check_replaceable(path: Path) -> None:
    if not path.exists():
        return
    inside = {entry.name for entry in path.iterdir()} - {*MARKS} if path.is_dir() else None
    if inside is None or (inside and inside != {_JSON, _TENSORS}):
        what = "a file" if inside is None else "a directory with other things in it"
        raise SavedModelError(
            f"Expected a new directory, or one that holds nothing but a saved model; got {what}: {path}. "
            "Choose another path, or remove what is there."
        )
