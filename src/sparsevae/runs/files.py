"""The files that commands leave: CSV with as many digits as a fit has, JSON, each complete or not there."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from sparsevae.exceptions import DataError
from sparsevae.io.record import to_json
from sparsevae.persistence import replacing

__all__ = ["TABLE_FORMATS", "write_csv", "write_json", "write_table"]

TABLE_FORMATS = (".csv", ".tsv", ".npy", ".parquet")
"""Endings that `write_table` knows."""

_DIGITS = "%.7g"  # what a float32 holds


def write_json(path: Path, content: object, *, compact: bool = False) -> None:
    """Write JSON that a person can read, unless it is to be compact."""
    with replacing(path) as partial:
        partial.write_text(to_json(content, compact=compact) + "\n", "utf-8")


def write_csv(
    frame: pd.DataFrame, target: Path | TextIO, *, index: bool = True, separator: str = ","
) -> None:
    """Write a data frame as text, with as many digits as the fit has."""
    frame.to_csv(target, sep=separator, index=index, float_format=_DIGITS, lineterminator="\n")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a data frame in the format of the file's ending, one of `TABLE_FORMATS`."""
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
