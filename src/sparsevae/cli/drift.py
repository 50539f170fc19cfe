"""``sparsevae drift``: what a new table has changed against the one that was fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsevae.cli.console import collect_warnings, one_sentence_errors, print_json, say
from sparsevae.cli.options import (
    DropOption,
    ExposureOption,
    GroupsOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    RunArgument,
    TableArgument,
)
from sparsevae.exceptions import DataError
from sparsevae.persistence import check_writable, finish_replacement
from sparsevae.report.drift_page import drift_files, write_drift
from sparsevae.runs import Run

__all__ = ["drift"]


@one_sentence_errors
def drift(
    run: RunArgument,
    table: TableArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.html", help="A page, with its content as JSON beside it."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(help="Chance of a false alarm, over all features and over all factors.")
    ] = 0.05,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier page.")] = False,
    as_json: JsonOption = False,
    drop: DropOption = None,
    id_column: IdColumnOption = None,
    header: HeaderOption = None,
    groups: GroupsOption = None,
    exposure: ExposureOption = None,
) -> None:
    """Say whether the mix of factors in a new table has moved, or a feature no longer follows its factors.

    A moved mix means that other rows come in; a broken feature is a fault of a sensor, a form or a pipeline.
    Each feature is predicted from the other features of its row. The exit code is 0 in either case.
    """
    if output is not None:
        _check_output(output, force=force)
    fitted = Run.open(run)
    with collect_warnings():
        data = fitted.read_table(
            table, drop=drop or (), id_column=id_column, header=header, groups=groups, exposure=exposure
        )
        found = fitted.drift(data, level=level)
    if output is not None:
        title = f"Drift of {data.path.name} from {fitted.record['data']['file']}"
        page, beside = write_drift(found, output, title)
        say(f"Wrote {page} and {beside.name}.")
    if as_json:
        print_json({"run": str(run), **found.to_dict()})
    else:
        print(found.summary())


def _check_output(path: Path, *, force: bool) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"Expected an output file that ends in .html; got {path.name}.")
    named = drift_files(path)
    if path.parent.is_dir():
        finish_replacement(named)
    there = [other for other in named if other.exists()]
    if there and not force:
        raise DataError(f"Expected new files for the output; {there[0]} exists. Add --force to replace them.")
    check_writable(path)
