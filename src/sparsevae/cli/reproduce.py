"""``sparsevae reproduce``: each table and figure of the paper by its name."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from sparsevae.aliases import JSON
from sparsevae.cli.console import interrupted_code, one_sentence_errors, print_json, say
from sparsevae.cli.options import JsonOption
from sparsevae.exceptions import ParameterError
from sparsevae.reproduction.paper import Reproduction
from sparsevae.reproduction.paper import reproduce as reproduce_result
from sparsevae.reproduction.spec import SCALES, load_specs
from sparsevae.reproduction.tables import records

__all__ = ["reproduce"]

Scale = Enum("Scale", {scale: scale for scale in SCALES}, type=str)  # type: ignore[misc]


@one_sentence_errors
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A name from: sparsevae reproduce --list.")
    ] = None,
    scale: Annotated[
        Scale, typer.Option(help="smoke: does it run; quick: some minutes; paper: the size of the paper.")
    ] = Scale("quick"),
    out: Annotated[
        Path, typer.Option("--out", metavar="RESULTS", help="Where results go: RESULTS/NAME/SCALE.")
    ] = Path("results"),
    listing: Annotated[bool, typer.Option("--list", help="List the results that can be reproduced.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="DIR", envvar="SPARSEVAE_DATA", help="Where the data sets are; see data fetch."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs at a time.")] = 1,
    backend: Annotated[
        str | None, typer.Option(help="A backend of joblib: loky (processes here), dask (a cluster).")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler, with --backend dask.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUES", help="Some runs: method, recipe, data_set, seed or split, as split=0,1."
        ),
    ] = None,
    redo: Annotated[bool, typer.Option("--redo", help="Do the chosen runs again.")] = False,
    draw: Annotated[
        bool, typer.Option("--draw", help="Run nothing: tables and figures from the rows that are there.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a table or figure of the paper: run what is missing, then compare the numbers with the paper's.

    Rows are kept as runs end; the same command continues where it was interrupted.
    """
    if listing or name is None:
        _list(as_json)
        return
    try:
        result = reproduce_result(
            name,
            out=out,
            scale=scale.value,
            data=data,
            only=_fields(only or []),
            redo=redo,
            run=not draw,
            jobs=jobs,
            backend=backend,
            scheduler=scheduler,
            progress=say,
        )
    except KeyboardInterrupt as error:
        then = "--only chooses the others." if redo else "the same command goes on from there."
        say(f"Interrupted: the runs that had ended are kept; {then}")
        raise typer.Exit(interrupted_code(*error.args)) from None
    if as_json:
        print_json(_as_json(result, scale.value))
    elif result.page:
        print(result.page)
    else:
        say("No rows yet: run it without --draw.")
    _close(result)


def _list(as_json: bool) -> None:
    specs = load_specs()
    if as_json:
        print_json(
            [
                {
                    "name": spec.name,
                    "in_paper": spec.alias,
                    "title": spec.title,
                    "runs": {scale: len(spec.runs(scale)) for scale in SCALES},
                }
                for spec in specs.values()
            ]
        )
        return
    width = max(map(len, specs))
    for spec in specs.values():
        print(f"{spec.name:<{width}}  {spec.alias:<18}  {spec.title}")


def _fields(only: list[str]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for text in only:
        name, equals, values = text.partition("=")
        if not equals:
            raise ParameterError(f"Expected --only as FIELD=VALUES; got {text!r}. For example split=0,1.")
        chosen.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return chosen


def _as_json(result: Reproduction, scale: str) -> JSON:
    outcome = result.outcome
    summary = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in records(result.summary)
    ]
    return {
        "name": result.spec.name,
        "scale": scale,
        "folder": result.folder,
        "runs": None
        if outcome is None
        else {
            "all": outcome.n_runs,
            "found": outcome.n_found,
            "done": outcome.n_done,
            "failed": outcome.failures,
        },
        "summary": summary,
    }


def _close(result: Reproduction) -> None:
    outcome = result.outcome
    if outcome is None:
        return
    say(f"{outcome.n_done} runs done, {outcome.n_found} were there. Files in {result.folder}.")
    if outcome.failures:
        say(f"Error: {len(outcome.failures)} runs failed; the first: {next(iter(outcome.failures.values()))}")
        raise typer.Exit(1)
