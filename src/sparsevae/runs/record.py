"""``run.json``: how a fit was made, on which data, and its result in short."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from sparsevae._version import installed_versions
from sparsevae.aliases import JSON
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.io import ReadOptions, TableFile
from sparsevae.io.spreadsheet import changed_names
from sparsevae.io.table import Fingerprint

__all__ = ["RUN_FORMAT", "RunRecord", "believed", "make_record", "read_run_record"]

RUN_FORMAT = 1
"""Version of the layout of a run directory; a reader refuses those it does not know."""

_PARTS: dict[str, type] = {
    "data": dict,
    "reading": dict,
    "settings": dict,
    "versions": dict,
    "assumptions": list,
    "warnings": list,
    "created": str,
}
_DATA: dict[str, type] = {"file": str, "sha256": str, "n_samples": int}
_READING: dict[str, type] = {"drop": list}
# What reading a damaged record runs into, wherever it is used.
_MISREAD = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


class DataRecord(Fingerprint):
    """The file that was fitted, and the shape of its table."""

    n_samples: int
    n_features: int


class FactorRecord(TypedDict):
    """A factor in short."""

    name: str
    variance_explained: float
    anchors: list[str]


class ResultRecord(TypedDict):
    """The result of a fit in short."""

    n_active: int
    n_nonzero: int
    factors: list[FactorRecord]
    not_used: dict[str, str]
    starts: list[dict[str, object]]
    n_epochs: int
    seconds: float | None


class RunRecord(TypedDict):
    """The content of ``run.json``.

    ``reading`` has the fields of `ReadOptions`, ``settings`` the parameters of the estimator, ``renamed`` the
    names that the CSV files have in another form, from that form to the name. Runs of version 0.1 have
    neither ``raw_names`` nor ``renamed``.
    """

    format: int
    created: str
    versions: dict[str, str]
    data: DataRecord
    reading: JSON
    settings: JSON
    seed: object
    assumptions: list[str]
    warnings: list[str]
    interrupted: bool
    raw_names: bool
    renamed: dict[str, str]
    result: ResultRecord


def make_record(
    model: SparseVAE,
    table: TableFile,
    *,
    notes: Sequence[str],
    warnings: Sequence[str],
    interrupted: bool,
    seconds: float | None,
    raw_names: bool,
) -> RunRecord:
    """Describe a fit and the table that it was fitted to."""
    n_samples, n_features = table.shape
    in_tables = (model.feature_names(), table.sample_names, model.get_feature_names_out())
    data: DataRecord = {**table.fingerprint(), "n_samples": n_samples, "n_features": n_features}
    return {
        "format": RUN_FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": installed_versions(),
        "data": data,
        "reading": asdict(table.options),
        "settings": {name: value for name, value in model.get_params().items() if name != "verbose"},
        "seed": model.random_state,
        "assumptions": [*table.assumptions, *notes],
        "warnings": list(warnings),
        "interrupted": interrupted,
        "raw_names": raw_names,
        "renamed": {} if raw_names else changed_names(*in_tables),
        "result": _result(model, seconds),
    }


def read_run_record(path: Path) -> RunRecord:
    """The record of the run in a directory.

    Raises
    ------
    DataError
        If the directory is not a run, or one of another format.
    """
    if not path.exists():
        raise DataError(
            f"Expected a run directory at {path}; there is none. Make it with sparsevae fit TABLE --out "
            f"{path}, or with Run.create."
        )
    file = path / "run.json"
    if not file.is_file():
        raise DataError(
            f"Expected {path} to be a run directory; it has no run.json. Name the directory that fit wrote."
        )
    with believed(file):
        record = json.loads(file.read_text("utf-8"))
        written = record["format"]
    if written != RUN_FORMAT:
        raise DataError(
            f"Expected a run of format {RUN_FORMAT}; {path} has format {written!r}. Use the version of "
            "sparsevae that wrote it."
        )
    _check_types(record, _PARTS, file, "the record")
    _check_types(record["data"], _DATA, file, "'data'")
    _check_types(record["reading"], _READING, file, "'reading'")
    if not isinstance(record["reading"].get("text"), dict | None):
        raise _damaged(file, "'text' in 'reading' is no dict")
    for part in ("assumptions", "warnings"):
        if not all(isinstance(sentence, str) for sentence in record[part]):
            raise _damaged(file, f"'{part}' are not sentences")
    with believed(file):
        names = {field.name for field in fields(ReadOptions)}
        ReadOptions(**{name: value for name, value in record["reading"].items() if name in names})
    return record


@contextmanager
def believed(file: Path) -> Iterator[None]:
    """Turn what goes wrong with the content of a file of a run into a sentence on the file.

    Parameters
    ----------
    file : Path
        What is read, or made use of, in this context.
    """
    try:
        yield
    except _MISREAD as error:
        if isinstance(error, OSError):
            raise
        reason = " ".join(str(error).split())[:200]
        raise _damaged(file, reason or type(error).__name__) from error


def _check_types(section: JSON, types: Mapping[str, type], file: Path, what: str) -> None:
    for name, kind in types.items():
        if name not in section:
            raise _damaged(file, f"'{name}' is missing in {what}")
        if not isinstance(section[name], kind) or isinstance(section[name], bool):
            raise _damaged(file, f"'{name}' in {what} is no {kind.__name__}")


def _damaged(file: Path, why: str) -> DataError:
    return DataError(
        f"Expected {file} to be as sparsevae wrote it; it is damaged ({why}). Take it from a copy, or make "
        "it again."
    )


def _result(model: SparseVAE, seconds: float | None) -> ResultRecord:
    starts = model.starts_.to_dict("records")
    return {
        "n_active": len(model.active_factors_),
        "n_nonzero": int((model.mask_ != 0).sum()),
        "factors": [
            {"name": name, "variance_explained": float(model.variance_explained_[k]), "anchors": anchors}
            for k, (name, anchors) in zip(model.active_factors_, model.anchor_features().items(), strict=True)
        ],
        "not_used": {str(k): why for k, why in model.dropped_factors_.items()},
        "starts": [
            {str(name): None if value != value else value for name, value in start.items()}
            for start in starts
        ],
        "n_epochs": model.n_iter_,
        "seconds": None if seconds is None else round(seconds, 1),
    }
