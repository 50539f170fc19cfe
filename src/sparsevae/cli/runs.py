"""Run directories: written beside their place and moved into it at the end, so that none is half there."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd
from scipy import sparse

from sparsevae.cli.console import to_json
from sparsevae.cli.tables import TableFile
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.persistence import replacing
from sparsevae.report import gather_evidence

__all__ = [
    "RUN_FORMAT",
    "check_output",
    "check_place",
    "evidence_of",
    "factors_of",
    "load_run",
    "name_features",
    "new_run",
    "read_record",
    "versions",
    "write_csv",
    "write_json",
    "write_output",
]

RUN_FORMAT = 1
"""Version of the layout of a run directory; a reader refuses those it does not know."""

_NEEDED = {
    "data": ("file", "sha256", "n_samples"),
    "reading": ("drop",),
}
_PACKAGES = ("sparsevae", "torch", "numpy", "scipy", "scikit-learn", "pandas")
_OUTPUTS = (".csv", ".tsv", ".npy", ".parquet")
_DIGITS = "%.7g"  # what a float32 holds


def check_place(out: Path, *, force: bool) -> None:
    """Refuse a place for a run that holds something, unless it is a run and may be replaced."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise DataError(f"Expected --out to name a new directory; {out} is a file. Choose another name.")
    if not any(out.iterdir()):
        return
    if not (out / "run.json").exists():
        raise DataError(
            f"Expected --out to name a new directory; {out} holds something else than a run. Choose another "
            "name."
        )
    if not force:
        raise DataError(
            f"Expected --out to name a new directory; {out} already holds a run. Add --force to replace it."
        )


@contextmanager
def new_run(out: Path, *, force: bool) -> Iterator[Path]:
    """A directory to write a run into; on success it becomes ``out``, on failure nothing is left of it.

    Parameters
    ----------
    out : Path
    force : bool
        Whether a run that is there already is replaced. It stays until the new one is complete.
    """
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".partial", dir=out.parent))
    try:
        folder.chmod(0o777 & ~_umask())
        yield folder
        check_place(out, force=force)
        old = None
        if out.exists():
            old = folder.with_suffix(".old")
            os.rename(out, old)
        os.rename(folder, out)
        if old is not None:
            shutil.rmtree(old)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def load_run(path: Path) -> dict[str, Any]:
    """The record of a run; refuses what is not a run of this format."""
    if not path.exists():
        raise DataError(
            f"Expected a run directory at {path}; there is none. Make it with sparsevae fit TABLE --out "
            f"{path}."
        )
    record = path / "run.json"
    if not record.is_file():
        raise DataError(
            f"Expected {path} to be a run directory; it has no run.json. Name the directory that fit wrote."
        )
    try:
        run = json.loads(record.read_text("utf-8"))
        written = run["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"Expected {record} to be as fit wrote it; it is damaged ({error}). Take it from a copy, or fit "
            "again."
        ) from error
    if written != RUN_FORMAT:
        raise DataError(
            f"Expected a run of format {RUN_FORMAT}; {path} has format {written!r}. Use the version of "
            "sparsevae that wrote it."
        )
    for part, names in _NEEDED.items():
        absent = [name for name in names if name not in _section(run, part)]
        if absent:
            raise DataError(
                f"Expected {record} to be as fit wrote it; it is damaged ('{absent[0]}' is missing in "
                f"'{part}'). Take it from a copy, or fit again."
            )
    return run


def read_record(path: Path) -> dict[str, Any] | None:
    """A JSON file of a run, or None where the run does not have it."""
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise DataError(
            f"Expected {path} as sparsevae wrote it; it is cut off or changed ({error})."
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"Expected {path} as sparsevae wrote it; it holds something else.")
    return content


def name_features(model: SparseVAE, data: TableFile) -> None:
    """Give a fitted model the names of a sparse table, which has no place for them itself."""
    if data.feature_names is not None and sparse.issparse(data.X):
        model.feature_names_in_ = data.feature_names.astype(object)


def factors_of(model: SparseVAE, data: TableFile) -> pd.DataFrame:
    """The factors of each sample: a column per active factor, a row per sample, both with names."""
    with _names_are_known():
        Z = model.transform(data.for_estimator())
    names = model.get_feature_names_out()[model.active_factors_]
    return pd.DataFrame(Z[:, model.active_factors_], index=data.row_labels(), columns=names)


def evidence_of(model: SparseVAE, data: TableFile, path: Path, *, seen_in_fit: bool) -> dict[str, Any]:
    """What a report needs of a table."""
    with _names_are_known():
        return gather_evidence(
            model,
            data.for_estimator(),
            samples=data.row_labels().to_numpy(),
            table_name=path.name,
            seen_in_fit=seen_in_fit,
        )


def versions() -> dict[str, str]:
    """Versions of the packages that a fit depends on."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def write_json(path: Path, content: Any, *, compact: bool = False) -> None:
    """Write JSON that a person can read, unless it is to be compact; the file is complete or not there."""
    with replacing(path) as partial:
        partial.write_text(to_json(content, compact=compact) + "\n", "utf-8")


def write_csv(
    frame: pd.DataFrame, target: Path | TextIO, *, index: bool = True, separator: str = ","
) -> None:
    """Write a data frame as text, with as many digits as the fit has."""
    frame.to_csv(target, sep=separator, index=index, float_format=_DIGITS, lineterminator="\n")


def check_output(path: Path, *, force: bool) -> None:
    """Refuse an output file of no known kind, and one that is there already unless it may be replaced."""
    if path.suffix.lower() not in _OUTPUTS:
        raise DataError(f"Expected an output file that ends in {', '.join(_OUTPUTS)}; got {path.name}.")
    if path.exists() and not force:
        raise DataError(f"Expected a new file for the output; {path} exists. Add --force to replace it.")


def write_output(frame: pd.DataFrame, path: Path) -> None:
    """Write a data frame in the format of the file's ending; it gets its name when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix.lower()
    with replacing(path) as partial:
        if ending == ".npy":
            with partial.open("wb") as file:  # by its name, numpy would add an ending to one in capitals
                np.save(file, frame.to_numpy())
        elif ending == ".parquet":
            _write_parquet(frame, partial)
        else:
            write_csv(frame, partial, separator="\t" if ending == ".tsv" else ",")


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    try:
        frame.to_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise DataError(
            "Expected pyarrow, to write Parquet; it is not installed: pip install 'sparsevae[parquet]'."
        ) from error


def _section(run: dict[str, Any], part: str) -> dict[str, Any]:
    section = run.get(part)
    return section if isinstance(section, dict) else {}


@contextmanager
def _names_are_known() -> Iterator[None]:
    """The names of a table were compared when it was read; an array or sparse matrix cannot show them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")
        yield


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
