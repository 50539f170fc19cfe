"""Settings of a fit from a TOML file and the command line; what is typed wins over what is written."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import ParameterError

__all__ = ["Settings", "merge_settings", "read_config"]

_PARAMETERS = tuple(name for name in inspect.signature(SparseVAE).parameters if name != "verbose")
_TABLE = ("header", "id_column", "drop", "transpose", "layer", "feature_names", "text")


class Settings(NamedTuple):
    """Parameters of the estimator, and options of `read_table`, by name."""

    parameters: dict[str, Any]
    reading: dict[str, Any]


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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"Expected {path} to be TOML; {error}.") from error
    reading = content.pop("table", {})
    if not isinstance(reading, dict):
        raise ParameterError(f"Expected [table] in {path} to be a section; got {reading!r}.")
    _check_keys(content, _PARAMETERS, path, "")
    _check_keys(reading, _TABLE, path, " in [table]")
    parameters = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
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


def _merge_text(written: object, typed: object) -> object:
    """How to count words: a column alone is an option among others."""
    parts = [{"column": part} if isinstance(part, str) else part for part in (written, typed)]
    known = [part for part in parts if isinstance(part, dict)]
    return {name: value for part in known for name, value in part.items()} or None


def _check_keys(given: Collection[str], known: Collection[str], path: Path, where: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ParameterError(
            f"Expected settings{where} among {', '.join(known)}; got '{unknown[0]}' in {path}."
        )
