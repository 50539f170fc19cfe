"""``sparsevae transform``: the factors of new samples under a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sparsevae.cli.console import collect_warnings, one_sentence_errors, print_json, say
from sparsevae.cli.options import (
    DropOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    LayerOption,
    TableArgument,
)
from sparsevae.cli.rereading import read_for_run
from sparsevae.cli.runs import check_output, factors_of, load_run, write_csv, write_output
from sparsevae.estimators import SparseVAE

__all__ = ["transform"]


@one_sentence_errors
def transform(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory that fit wrote.")],
    table: TableArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="CSV, TSV, NPY or Parquet. [default: CSV to stdout]"
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
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
) -> None:
    """Write the factors of each row of a table: the posterior means under a fitted model.

    There is a column for each factor that the fit uses, named as in its loadings.csv. The table is read as
    the fit's table was: the same columns are left out, the same column holds the names of the samples.
    """
    if output is not None:
        check_output(output, force=force)
    record = load_run(run)
    model = SparseVAE.load(run / "model")
    typed = {
        "drop": tuple(drop or ()),
        "id_column": id_column,
        "header": header,
        "transpose": transpose,
        "layer": layer,
    }
    data = read_for_run(record, model, table, typed)
    with collect_warnings():
        Z = factors_of(model, data)
    if output is not None:
        write_output(Z, output)
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
        write_csv(Z, sys.stdout)
