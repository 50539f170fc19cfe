"""Python values as JSON and named arrays, and back, exactly.

What JSON knows is written as it is. Everything else becomes an object with one key that begins with a dollar
sign: ``{"$tuple": [64, 64]}``, ``{"$array": "state.fitted.mask_"}`` (the name of an array kept beside the
JSON), ``{"$dict": [[0, "gone"]]}`` for keys that are not text, ``{"$float": "nan"}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from sparsevae.aliases import JSON, JSONValue
from sparsevae.exceptions import ParameterError

__all__ = ["decode", "encode"]

_WIDTH = 256  # characters of an array of text, beyond which the text itself must be as long
_COLUMN_TYPES = re.compile(
    r"object|str|string(\[\w+\])?|bool(ean)?|[Uu]?[Ii]nt\d{1,2}|[Ff]loat\d{1,2}|category|"
    r"datetime64\[\w+(, [\w/]+)?\]"
)


def encode(value: object, arrays: dict[str, np.ndarray], name: str) -> JSONValue:
    """A value as what JSON can hold.

    Parameters
    ----------
    value : object
        Numbers, text, None, tuples, lists, dicts, slices, arrays, tensors, data frames, indexes and
        RandomState, in one another.
    arrays : dict
        Receives the arrays, under names that begin with ``name``.
    name : str
        Where the value stands, for the names of arrays and for the message.

    Raises
    ------
    ParameterError
        If a value is of another kind.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return {"$scalar": _keep(np.asarray(value), arrays, name)}
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, name)
    if isinstance(value, torch.Tensor):
        return {"$tensor": _keep(value.detach().cpu().numpy(), arrays, name)}
    if isinstance(value, Mapping):
        return _encode_mapping(value, arrays, name)
    if isinstance(value, list | tuple):
        items = [encode(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, slice):
        return {"$slice": [encode(part, arrays, name) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, pd.DataFrame):
        return {"$frame": _encode_frame(value, arrays, name)}
    if isinstance(value, pd.Series | pd.Index):
        return {"$index": _encode_column(pd.Index(value), arrays, name)}
    if isinstance(value, np.random.RandomState):
        return {"$random_state": encode(value.get_state(legacy=True), arrays, name)}
    raise ParameterError(
        f"Expected values that can be saved as JSON and arrays; got {type(value).__name__} in {name}. Pass "
        "names, numbers or arrays instead, or pickle the estimator."
    )


def decode(value: object, arrays: dict[str, np.ndarray]) -> Any:
    """What `encode` was given.

    Parameters
    ----------
    value : object
        From JSON.
    arrays : dict
        Those that `encode` collected. Each is taken out as it is used: a text that names one a thousand times
        does not fill the memory with copies.
    """
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith("$"):
        ((tag, content),) = value.items()
        return _DECODERS[tag](content, arrays)
    return {key: decode(item, arrays) for key, item in value.items()}


def _keep(array: np.ndarray, arrays: dict[str, np.ndarray], name: str) -> str:
    while name in arrays:
        name += "_"
    arrays[name] = np.ascontiguousarray(array).reshape(
        array.shape
    )  # the first of the two would make a scalar 1-d
    return name


def _encode_array(array: np.ndarray, arrays: dict[str, np.ndarray], name: str) -> JSONValue:
    if array.dtype.kind in "biuf":
        return {"$array": _keep(array, arrays, name)}
    if array.dtype.kind in "OU":
        items = [encode(item, arrays, f"{name}.{i}") for i, item in enumerate(array.ravel().tolist())]
        return {"$objects": {"dtype": array.dtype.str, "shape": list(array.shape), "items": items}}
    raise ParameterError(
        f"Expected arrays of numbers or text to save; got dtype {array.dtype} in {name}. Convert it first."
    )


def _encode_mapping(value: Mapping[object, object], arrays: dict[str, np.ndarray], name: str) -> JSONValue:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {str(key): encode(item, arrays, f"{name}.{key}") for key, item in value.items()}
    return {
        "$dict": [
            [encode(key, arrays, f"{name}.key"), encode(item, arrays, f"{name}.{key}")]
            for key, item in value.items()
        ]
    }


def _encode_frame(frame: pd.DataFrame, arrays: dict[str, np.ndarray], name: str) -> JSONValue:
    return {
        "index": _encode_column(frame.index, arrays, f"{name}.index"),
        "names": [encode(label, arrays, name) for label in frame.columns],
        "columns": [
            _encode_column(frame.iloc[:, i], arrays, f"{name}.{label}")
            for i, label in enumerate(frame.columns)
        ],
    }


def _encode_column(column: pd.Series | pd.Index, arrays: dict[str, np.ndarray], name: str) -> JSONValue:
    """A column or an index with its pandas type: numbers as an array, everything else item by item."""
    values = column.to_numpy()
    if values.dtype.kind not in "biuf":
        values = values.astype(object)
    return {"dtype": str(column.dtype), "values": _encode_array(values, arrays, name)}


def _decode_column(content: JSON, arrays: dict[str, np.ndarray]) -> pd.Index:
    if not _COLUMN_TYPES.fullmatch(content["dtype"]):
        raise ValueError(f"no type of a column: {content['dtype']!r}")
    return pd.Index(decode(content["values"], arrays), dtype=content["dtype"])


def _decode_frame(content: JSON, arrays: dict[str, np.ndarray]) -> pd.DataFrame:
    index = _decode_column(content["index"], arrays)
    if index.equals(pd.RangeIndex(len(index))):
        index = pd.RangeIndex(len(index))
    columns = {i: pd.Series(_decode_column(c, arrays), index=index) for i, c in enumerate(content["columns"])}
    frame = pd.DataFrame(columns, index=index)
    frame.columns = pd.Index([decode(label, arrays) for label in content["names"]])
    return frame


def _decode_objects(content: JSON, arrays: dict[str, np.ndarray]) -> np.ndarray:
    items, shape, dtype = content["items"], content["shape"], np.dtype(content["dtype"])
    flat = np.empty(len(items), dtype=object)
    flat[:] = [decode(item, arrays) for item in items]
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError(f"no shape of an array: {shape!r}")
    if dtype.kind == "U":
        # Not much wider than the text demands: a width from a file might be any number.
        width = max((len(item) for item in items), default=0)
        if not all(isinstance(item, str) for item in items) or dtype.itemsize > 4 * max(width, _WIDTH):
            raise ValueError(f"no text of type {dtype.str[:20]}")
    elif dtype.kind != "O":
        raise ValueError(f"no type of texts: {dtype.str[:20]}")
    return flat.reshape(shape).astype(dtype)


def _decode_random_state(content: object, arrays: dict[str, np.ndarray]) -> np.random.RandomState:
    state = np.random.RandomState()
    state.set_state(decode(content, arrays))
    return state


_DECODERS = {
    "$array": lambda content, arrays: np.array(arrays.pop(content)),
    "$dict": lambda content, arrays: {decode(k, arrays): decode(v, arrays) for k, v in content},
    "$float": lambda content, arrays: float(content),
    "$frame": _decode_frame,
    "$index": _decode_column,
    "$objects": _decode_objects,
    "$random_state": _decode_random_state,
    "$scalar": lambda content, arrays: arrays.pop(content)[()],
    "$slice": lambda content, arrays: slice(*decode(content, arrays)),
    "$tensor": lambda content, arrays: torch.from_numpy(np.array(arrays.pop(content))),
    "$tuple": lambda content, arrays: tuple(decode(content, arrays)),
}
