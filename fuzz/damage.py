"""Ways to damage a file: bytes that change, go or come, and values of other types in JSON and TOML."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

__all__ = ["damage_bytes", "damage_value"]

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 10**12, 10**400, 0.5, -1e308, "", "x", "=1+1", "\x1b[31m",
    [], [1], ["a", None], {}, {"a": 1}, {"$array": "x"}, {"$tuple": [30000, 30000]}, {"$float": "nan"},
    {"$code": "x"},
    {"$objects": {"dtype": "S900000000", "shape": [1], "items": ["a"]}},
)  # fmt: skip


def damage_bytes(content: bytes, seed: int) -> bytes:
    """Change a file as disks, transfers and careless programs do."""
    rng = np.random.default_rng(seed)
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if not data:
            break
        kind, at = int(rng.integers(7)), int(rng.integers(len(data)))
        end = min(len(data), at + int(rng.integers(1, 64)))
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at:end]
        elif kind == 4:
            data[at:at] = rng.bytes(int(rng.integers(1, 16)))
        elif kind == 5:
            data[at:at] = data[at:end]
        else:
            data[at:end] = bytes(end - at)
    return bytes(data)


def damage_value(document: Any, seed: int) -> Any:
    """A document with one value of another kind, or without one of its keys."""
    rng = np.random.default_rng(seed)
    document = copy.deepcopy(document)
    places = list(_places(document))
    if not places:
        return document
    holder, key = places[int(rng.integers(len(places)))]
    if rng.integers(6) == 0:
        del holder[key]
    else:
        holder[key] = VALUES[int(rng.integers(len(VALUES)))]
    return document


def _places(value: Any) -> Any:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys)[:200]:
        yield value, key
        yield from _places(value[key])
