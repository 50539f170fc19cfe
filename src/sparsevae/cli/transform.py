"""``sparsevae transform``: the factors of new samples under a run."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from sparsevae.cli.console import collect_warnings, one_sentence_errors, print_json, say, show
from sparsevae.cli.options import (
    DropOption,
    ExposureOption,
    GroupsOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    LayerOption,
    RawNamesOption,
    RunArgument,
    TableArgument,
)
from sparsevae.exceptions import DataError
from sparsevae.io import TableFile
from sparsevae.persistence import check_writable, replacing, writing_npy
from sparsevae.runs import Run
from sparsevae.runs.files import write_blocks, write_csv

__all__ = ["transform"]

_FORMATS = (".csv", ".tsv", ".npy", ".parquet")


@one_sentence_errors
def transform(
    run: RunArgument,
    table: TableArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="CSV, TSV, NPY or Parquet. [default: CSV to stdout]"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier file.")] = False,
    as_json: JsonOption = False,
    drop: DropOption = None,
    id_column: IdColumnOption = None,
    header: HeaderOption = None,
    transpose: Annotated[
        bool | None,
        typer.Option(
            "--transpose/--no-transpose", help="Whether the file has a row per feature.", show_default=False
        ),
    ] = None,
    layer: LayerOption = None,
    raw_names: RawNamesOption = False,
    groups: GroupsOption = None,
    exposure: ExposureOption = None,
) -> None:
    """Write the factors of each row of a table: the posterior means under a fitted model.

    There is a column for each factor that the fit uses, named as in its loadings.csv. The table is read as
    the fit's table was: the same columns are left out, the same column holds the names of the samples.
    """
    if output is not None:
        _check_output(output, force=force)
    with collect_warnings():
        fitted = Run.open(run)
        raw_names = raw_names or bool(fitted.record.get("raw_names", False))
        data = fitted.read_table(
            table,
            drop=drop or (),
            id_column=id_column,
            header=header,
            transpose=transpose,
            layer=layer,
            groups=groups,
            exposure=exposure,
        )
        if data.on_disk:
            _stream(fitted, data, output, raw_names=raw_names, as_json=as_json)
            return
        Z = fitted.factors(data)
    if output is not None:
        _write(Z, output, raw_names=raw_names)
        say(f"Wrote {Z.shape[0]} samples x {Z.shape[1]} factors to {output}.")
    if as_json:
        result = {"run": str(run), "n_samples": len(Z), "factors": list(Z.columns)}
        values = (
            {"samples": Z.index.tolist(), "values": Z.to_numpy()}
            if output is None
            else {"output": str(output)}
        )
        print_json({**result, **values}, compact=True)
    elif output is None:
        _print(Z, raw_names=raw_names)


def _stream(run: Run, data: TableFile, output: Path | None, *, raw_names: bool, as_json: bool) -> None:
    """Write the factors of a table on disk block by block."""
    ending = None if output is None else output.suffix.lower()
    if ending == ".parquet" or (output is None and as_json):
        raise DataError(
            f"Expected CSV, TSV or NPY for the factors of {data.path.name}, which stays on disk; got "
            f"{'JSON' if output is None else output.name}. Add -o factors.npy."
        )
    model = run.model()
    active = model.active_factors_
    if output is None:
        write_blocks(run.factor_blocks(data), sys.stdout, raw_names=raw_names)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    if ending == ".npy":
        with writing_npy(output, (data.shape[0], len(active)), data.X.dtype) as append:
            for block in run.factor_blocks(data):
                append(block.to_numpy())
    else:
        with replacing(output) as partial:
            separator = "\t" if ending == ".tsv" else ","
            write_blocks(run.factor_blocks(data), partial, separator=separator, raw_names=raw_names)
    say(f"Wrote {data.shape[0]} samples x {len(active)} factors to {output}.")
    if as_json:
        names = list(model.get_feature_names_out()[active])
        result = {"run": str(run.path), "n_samples": data.shape[0], "factors": names, "output": str(output)}
        print_json(result, compact=True)


def _check_output(path: Path, *, force: bool) -> None:
    if path.suffix.lower() not in _FORMATS:
        raise DataError(f"Expected an output file that ends in {', '.join(_FORMATS)}; got {path.name}.")
    if path.exists() and not force:
        raise DataError(f"Expected a new file for the output; {path} exists. Add --force to replace it.")
    check_writable(path)


def _print(frame: pd.DataFrame, *, raw_names: bool) -> None:
    """Print CSV: as it is into a file or a pipe, without control characters to a terminal."""
    if not sys.stdout.isatty():
        write_csv(frame, sys.stdout, raw_names=raw_names)
        return
    text = StringIO()
    write_csv(frame, text, raw_names=raw_names)
    show(text.getvalue().rstrip("\n"))


def _write(frame: pd.DataFrame, path: Path, *, raw_names: bool) -> None:
    """Write a data frame in the format of the file's ending."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.suffix.lower()
    with replacing(path) as partial:
        if ending == ".npy":
            with partial.open("wb") as file:  # by its name, numpy would add an ending to one in capitals
                np.save(file, frame.to_numpy())
        elif ending == ".parquet":
            _write_parquet(frame, partial)
        else:
            separator = "\t" if ending == ".tsv" else ","
            write_csv(frame, partial, separator=separator, raw_names=raw_names)


def _write_parquet(frame: pd.DataFrame, path: Path) -> None:
    try:
        frame.to_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise DataError(
            "Expected pyarrow, to write Parquet; it is not installed. Run: pip install pyarrow"
        ) from error
