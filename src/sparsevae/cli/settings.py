"""Settings of a fit from a TOML file and the command line; what is typed wins over what is written."""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.io import ReadOptions

__all__ = ["merge_settings", "read_config"]

_PARAMETERS = tuple(name for name in inspect.signature(SparseVAE).parameters if name != "verbose")
_TABLE = ("header", "id_column", "drop", "transpose", "layer", "feature_names")


def read_config(path: Path | None) -> tuple[dict[str, Any], ReadOptions]:
    """Parameters of the estimator, and of the reading of the table, from a TOML file.

    Parameters
    ----------
    path : Path or None
        Its keys are the constructor's arguments; a section ``[table]`` has those of `ReadOptions`. None is as
        good as an empty file.
    """
    if path is None:
        return {}, ReadOptions()
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise ParameterError(f"Expected a settings file at {path}; there is none.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"Expected {path} to be TOML; {error}.") from error
    table = content.pop("table", {})
    if not isinstance(table, dict):
        raise ParameterError(f"Expected [table] in {path} to be a section; got {table!r}.")
    _check_keys(content, _PARAMETERS, path, "")
    _check_keys(table, _TABLE, path, " in [table]")
    parameters = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    options = ReadOptions(**table)
    if options.feature_names is not None:
        options = replace(options, feature_names=path.parent / options.feature_names)
    return parameters, options


def merge_settings(
    config: tuple[dict[str, Any], ReadOptions], typed: dict[str, Any], reading: dict[str, Any]
) -> tuple[dict[str, Any], ReadOptions]:
    """Lay what was typed over what the file says; None and an empty tuple were not typed."""
    parameters, options = config
    parameters = {**parameters, **{name: value for name, value in typed.items() if value is not None}}
    return parameters, replace(
        options, **{name: value for name, value in reading.items() if value not in (None, ())}
    )


def _check_keys(given: dict[str, Any], known: tuple[str, ...], path: Path, where: str) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ParameterError(
            f"Expected settings{where} among {', '.join(known)}; got '{unknown[0]}' in {path}."
        )
