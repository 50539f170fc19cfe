"""The directory of a saved model: written whole or not at all, checked before it is believed."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from sparsevae._version import __version__
from sparsevae.aliases import JSON, State
from sparsevae.exceptions import DataError, DataWarning
from sparsevae.persistence.codec import decode, encode
from sparsevae.persistence.durability import write_synced
from sparsevae.persistence.place import MARKS, recover_place
from sparsevae.persistence.replacement import replacing_directory

__all__ = [
    "BLANK",
    "CHECKSUM",
    "FORMAT_VERSION",
    "SavedModelError",
    "SavedModelNotFoundError",
    "load_estimator",
    "pack_estimator",
    "save_estimator",
    "sign",
    "unpack_estimator",
]

FORMAT_VERSION = 3
"""Raised by one whenever an older release could not read what this one writes."""

_JSON, _TENSORS = "model.json", "model.safetensors"
_SIGNED = 3  # the first format whose checksum covers all of the model
BLANK = "0" * 64
CHECKSUM = re.compile(rb'"sha256": "([0-9a-f]{64})"')


class Saveable(Protocol):
    """What can be saved: parameters of the constructor, and the state that fit has found."""

    def get_params(self, deep: bool = True) -> State: ...
    def saved_state(self) -> State: ...
    def restore_state(self, state: State) -> None: ...


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
    text, tensors = pack_estimator(estimator)
    with replacing_directory(path) as written:
        write_synced(written / _TENSORS, tensors)
        write_synced(written / _JSON, text.encode())
    return path


def pack_estimator(estimator: Saveable) -> tuple[str, bytes]:
    """A fitted estimator as JSON and safetensors, for places other than a directory."""
    arrays: dict[str, np.ndarray] = {}
    document = {
        "parameters": encode(estimator.get_params(deep=False), arrays, "parameters"),
        "state": encode(estimator.saved_state(), arrays, "state"),
    }
    tensors = save_tensors(arrays)
    header = {
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "class": type(estimator).__name__,
        "sha256": BLANK,
    }
    text = json.dumps({**header, **document}, indent=1, ensure_ascii=False, allow_nan=False)
    return sign(text.encode(), tensors).decode(), tensors


def sign(text: bytes, tensors: bytes) -> bytes:
    """The text of ``model.json`` with the checksum of all of the model in it, its own place left blank."""
    found = CHECKSUM.search(text)
    assert found is not None
    begin, end = found.span(1)
    blank = text[:begin] + BLANK.encode() + text[end:]
    checksum = hashlib.sha256(blank + tensors).hexdigest()
    return text[:begin] + checksum.encode() + text[end:]


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
    for name in (_JSON, _TENSORS):
        if not (path / name).is_file():
            raise SavedModelNotFoundError(
                f"Expected a saved model, a directory with {_JSON} and {_TENSORS}; got no {name} in {path}. "
                "Check the path, and that the directory was copied whole."
            )
    document, arrays = _read((path / _JSON).read_bytes(), (path / _TENSORS).read_bytes(), path)
    return _restore(cls, document, arrays, path)


def unpack_estimator(cls: type[Estimator], text: str | bytes, tensors: bytes, path: str | Path) -> Estimator:
    """The estimator that `pack_estimator` described.

    Parameters
    ----------
    cls : type
        The class that was saved.
    text, tensors
        What `pack_estimator` returned.
    path : str or Path
        Where they come from, for messages.

    Raises
    ------
    SavedModelError
        If they are damaged, of a newer format, or of another class.
    """
    document, arrays = _read(text.encode() if isinstance(text, str) else text, tensors, Path(path))
    return _restore(cls, document, arrays, Path(path))


def _restore(cls: type[Estimator], document: JSON, arrays: dict[str, np.ndarray], path: Path) -> Estimator:
    if document["class"] != cls.__name__:
        raise SavedModelError(
            f"Expected a saved {cls.__name__}; got a {document['class']} in {path}. Load it with "
            f"{document['class']}.load."
        )
    try:
        estimator = cls(**decode(document["parameters"], arrays))
        estimator.restore_state(decode(document["state"], arrays))
    except (AssertionError, AttributeError, IndexError, KeyError, OverflowError, RecursionError) as error:
        raise _misfit(path, document, error) from error
    except (RuntimeError, TypeError, ValueError) as error:
        raise _misfit(path, document, error) from error
    return estimator


def _misfit(path: Path, document: JSON, error: Exception) -> SavedModelError:
    reason = (str(error).splitlines() or [""])[0][:200] or type(error).__name__
    return SavedModelError(
        f"Expected {path / _JSON} as save wrote it (by sparsevae {document['package_version']}); got one "
        f"that does not fit its tensors or this version ({reason}). Save the model again."
    )


def _read(text: bytes, tensors: bytes, path: Path) -> tuple[JSON, dict[str, np.ndarray]]:
    """The document and the arrays of a saved model, once their checksum is right."""
    document = _parse(text, path)
    if document["format_version"] >= _SIGNED:
        if CHECKSUM.search(text) is None or sign(text, tensors) != text:
            raise _changed(path)
    else:
        if hashlib.sha256(tensors).hexdigest() != document["tensors_sha256"]:
            raise _changed(path)
        warnings.warn(
            f"The model in {path} was saved by sparsevae {document['package_version']}, whose checksum "
            "covers the arrays alone: a change of model.json would go unseen. Save it again to have all "
            "of it covered.",
            DataWarning,
            stacklevel=4,
        )
    try:
        return document, load_tensors(tensors)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise _changed(path) from error


def _parse(text: bytes, path: Path) -> JSON:
    """The document in a model.json, with what every format has."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _changed(path) from error
    written = document.get("format_version") if isinstance(document, dict) else None
    if not isinstance(written, int) or isinstance(written, bool) or written < 1:
        raise _changed(path)
    if written > FORMAT_VERSION:
        raise SavedModelError(
            f"Expected a model of format {FORMAT_VERSION} or older; got format {written}, written by "
            f"sparsevae {document.get('package_version', 'of a later version')}. Upgrade sparsevae to load "
            "it."
        )
    checksum = "sha256" if written >= _SIGNED else "tensors_sha256"
    if {"package_version", "class", checksum, "parameters", "state"} - document.keys():
        raise _changed(path)
    return document


def _changed(path: Path) -> SavedModelError:
    return SavedModelError(
        f"Expected {path} as save wrote it; got content that does not match the checksum in {_JSON}: it is "
        "cut off or changed. Copy it again, or save the model again."
    )


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
