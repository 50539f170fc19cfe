"""``sparsevae transform``: the factors of new samples under a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sparsevae.cli.console import collect_warnings, one_sentence_errors, print_json, say
from sparsevae.cli.formats import ReadOptions
from sparsevae.cli.options import (
    DropOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    LayerOption,
    TableArgument,
)
from sparsevae.cli.runs import check_output, factors_of, load_run, write_csv, write_output
from sparsevae.cli.tables import TableFile, list_names, read_table
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError

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
    data = read_table(table, _reading(record["reading"], typed))
    _check_features(model, data, table)
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


def _reading(recorded: dict[str, Any], typed: dict[str, Any]) -> ReadOptions:
    """Read as the fit did, except for what was typed; what the fit left out need not be there."""
    kept = {name: value for name, value in recorded.items() if name not in ("feature_names", "drop")}
    given = {name: value for name, value in typed.items() if value is not None and name != "drop"}
    drop = (*recorded["drop"], *typed["drop"])
    return ReadOptions(**{**kept, **given, "drop": drop, "strict": False})


def _check_features(model: SparseVAE, data: TableFile, path: Path) -> None:
    """The table must have the features of the fit, in their order."""
    expected, got = getattr(model, "feature_names_in_", None), data.feature_names
    n_expected, n_got = model.n_features_in_, data.shape[1]
    if expected is None or got is None:
        if n_got != n_expected:
            raise DataError(f"Expected {n_expected} features in {path}, as in the fit; got {n_got}.")
        if expected is not None:
            say(f"{path} has no names: its columns are taken to be the features of the fit in their order.")
        return
    absent = [name for name in expected if name not in set(got)]
    strange = [name for name in got if name not in set(expected)]
    if absent:
        beside = f", and {list_names(strange)} {'is' if len(strange) == 1 else 'are'} new" if strange else ""
        verb = "is" if len(absent) == 1 else "are"
        raise DataError(
            f"Expected the features of the fit in {path}; {list_names(absent)} {verb} missing{beside}."
        )
    if strange:
        remedy = " ".join(f"--drop '{name}'" for name in strange[:3])
        raise DataError(
            f"Expected only the features of the fit in {path}; got {list_names(strange)} too. Leave them "
            f"out: {remedy}."
        )
    moved = np.flatnonzero(np.asarray(expected, dtype=str) != got)
    if len(moved):
        j = int(moved[0])
        raise DataError(
            f"Expected the features of {path} in the order of the fit; column {j + 1} is '{got[j]}' where "
            f"the fit had '{expected[j]}'. Put the columns in that order."
        )
