"""Records as JSON: what a program writes for other programs, and reads again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from sparsevae.aliases import JSON
from sparsevae.exceptions import DataError

__all__ = ["read_record", "to_json"]


def to_json(content: object, *, compact: bool = False) -> str:
    """JSON that a person can read too, unless it is to be compact; arrays become lists, paths text."""
    return json.dumps(content, indent=None if compact else 2, default=_plain, allow_nan=False)


def read_record(path: Path) -> JSON | None:
    """The content of a JSON file, or None where there is no such file."""
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"Expected {path} as sparsevae wrote it; it is cut off or changed ({error}). Make it again."
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"Expected {path} as sparsevae wrote it; it holds something else. Make it again.")
    return content


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"Expected something that JSON can hold; got {type(value).__name__}.")
