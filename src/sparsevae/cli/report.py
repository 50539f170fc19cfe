"""``sparsevae report``: factor cards of a run as one page, with the same content as JSON and CSV."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from sparsevae.cli.console import collect_warnings, one_sentence_errors, print_json, say, show
from sparsevae.cli.options import JsonOption, RunArgument
from sparsevae.exceptions import DataError
from sparsevae.identifiability.records import certificate_from_record
from sparsevae.persistence import check_writable, finish_replacement
from sparsevae.report import build_content, output_files, write_report
from sparsevae.runs import Run
from sparsevae.runs.record import believed
from sparsevae.runs.workbook import check_workbook, write_workbook

__all__ = ["report"]


@one_sentence_errors
def report(
    run: RunArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")],
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="TABLE",
            help="Take samples, curves and costs from this table instead of the fit's; one that the fit did "
            "not see is better.",
        ),
    ] = None,
    excel: Annotated[
        Path | None,
        typer.Option(
            "--excel", metavar="FILE.xlsx", help="Also write the tables of the run as one workbook."
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page. [default: the name of the data]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier report.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a page about a run: its factors in words and pictures, and how far each may be believed.

    The page needs no other file and no network. It comes with FILE.json, which has all of its content, and
    FILE.factors.csv, FILE.features.csv, FILE.links.csv and FILE.samples.csv. Nothing is fitted. If stability
    has been run, its result is part of the page.
    """
    _check_output(output, force=force)
    if excel is not None:
        check_workbook(excel, force=force)
    with collect_warnings():
        fitted = Run.open(run)
        model = fitted.model()
    if table is None:
        evidence = fitted.evidence()
        if evidence is None:
            say(f"{run} has no evidence.json: without --table there are no verdicts, samples and costs.")
    else:
        with collect_warnings():
            data = fitted.read_table(table)
            say(f"Read {table}: {data.shape[0]} samples. Examining {len(model.active_factors_)} factors ...")
            evidence = fitted.examine(data)
    stability = fitted.stability()
    with believed(run / "evidence.json") if table is None else nullcontext():
        content = build_content(
            model,
            evidence=evidence,
            stability=stability,
            record=dict(fitted.record),
            title=title or f"Factors of {fitted.record['data']['file']}",
        )
    written = write_report(content, output)
    if excel is not None:
        verdicts = None
        if evidence is not None:
            with believed(run / "evidence.json") if table is None else nullcontext():
                verdicts = certificate_from_record(evidence["certificate"]).table
        factors = fitted.fitted_factors() if table is None else fitted.factors(data)
        write_workbook(excel, model, factors, verdicts)
        written["workbook"] = excel
    if as_json:
        print_json({"run": str(run), "summary": content["summary"], "files": written})
        return
    for sentence in content["summary"]:
        show(sentence)
    others = [path.name for name, path in written.items() if name != "page"]
    show(f"Written to {output}, with {', '.join(others)}")


def _check_output(path: Path, *, force: bool) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise DataError(f"Expected an output file that ends in .html; got {path.name}.")
    named = list(output_files(path).values())
    if path.parent.is_dir():
        finish_replacement(named)
    there = [other for other in named if other.exists()]
    if there and not force:
        raise DataError(
            f"Expected new files for the output; {there[0]} exists. Add --force to replace the report."
        )
    check_writable(path)
