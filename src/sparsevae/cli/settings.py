"""Settings of a fit from a TOML file and the command line; what is typed wins over what is written."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from sparsevae.aliases import JSON, Parameters
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.io import ReadOptions

__all__ = ["Settings", "check_settings", "merge_settings", "read_config"]

_PARAMETERS = tuple(name for name in inspect.signature(SparseVAE).parameters if name != "verbose")
_TYPES = {name: hint for name, hint in get_type_hints(SparseVAE.__init__).items() if name in _PARAMETERS}
_TABLE = (
    "header",
    "id_column",
    "drop",
    "transpose",
    "layer",
    "feature_names",
    "text",
    "groups",
    "weights",
    "exposure",
)


class Settings(NamedTuple):
    """Parameters of the estimator, and options of `read_table`, by name."""

    parameters: JSON
    reading: JSON


def read_config(path: Path | None) -> Settings:
    """Read the settings in a TOML file.

    Parameters
    ----------
    path : Path or None
        Its keys are the constructor's arguments; a section ``[table]`` has the options of `read_table`. None
        is an empty file.
    """
    if path is None:
        return Settings({}, {})
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ParameterError(f"Expected a settings file at {path}; there is none.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ParameterError(f"Expected {path} to be TOML; {error}.") from error
    reading = content.pop("table", {})
    if not isinstance(reading, dict):
        raise ParameterError(f"Expected [table] in {path} to be a section; got {reading!r}.")
    _check_keys(content, _PARAMETERS, path, "")
    _check_keys(reading, _TABLE, path, " in [table]")
    parameters = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    for name, value in parameters.items():
        if not _suits(value, _TYPES[name]):
            shown = str(_TYPES[name]).replace("typing.", "").replace("collections.abc.", "")
            raise ParameterError(
                f"Expected {name} in {path} to be {getattr(_TYPES[name], '__name__', shown)}; got {value!r}."
            )
    with _named(path):
        ReadOptions(**reading)
    if isinstance(reading.get("feature_names"), str):
        reading["feature_names"] = path.parent / reading["feature_names"]
    return Settings(parameters, reading)


def merge_settings(
    config: Settings, parameters: Mapping[str, object], reading: Mapping[str, object]
) -> Settings:
    """Lay what was typed over what the file says; None was not typed."""
    reading = {**reading, "text": _merge_text(config.reading.get("text"), reading.get("text"))}
    return Settings(
        {**config.parameters, **{name: value for name, value in parameters.items() if value is not None}},
        {**config.reading, **{name: value for name, value in reading.items() if value is not None}},
    )


def check_settings(parameters: Parameters) -> JSON:
    """Refuse parameters that make no sense; without a number of factors the table is to say how many."""
    SparseVAE(**parameters).check_parameters()
    if "n_factors" in parameters:
        return dict(parameters)
    with suppress(ParameterError):  # known anchors and the like number the factors
        SparseVAE("auto", **parameters).check_parameters()
        return {**parameters, "n_factors": "auto"}
    return dict(parameters)


def _merge_text(written: object, typed: object) -> object:
    """How to count words: a column alone is an option among others."""
    parts = [{"column": part} if isinstance(part, str) else part for part in (written, typed)]
    known = [part for part in parts if isinstance(part, dict)]
    return {name: value for part in known for name, value in part.items()} or None


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Say in which file a setting is wrong."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"{error} (In [table] of {path}.)") from error


def _suits(value: object, hint: Any) -> bool:
    """Whether a value from a file is of the type that a parameter is declared with; a bool is no number."""
    parts, origin = get_args(hint), get_origin(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_suits(value, part) for part in parts)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = [parts[0]] * len(value) if parts[1:] == (Ellipsis,) else list(parts)
        return len(kinds) == len(value) and all(map(_suits, value, kinds))
    if origin is Mapping:
        return isinstance(value, dict) and all(_suits(item, parts[1]) for item in value.values())
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _check_keys(given: Collection[str], known: Collection[str], path: Path, where: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ParameterError(
            f"Expected settings{where} among {', '.join(known)}; got '{unknown[0]}' in {path}."
        )
