"""``sparsevae stability``: which factors of a run come back when it is fitted again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsevae.cli.console import collect_warnings, is_watched, one_sentence_errors, print_json, say
from sparsevae.cli.options import JsonOption, TableArgument, one_of
from sparsevae.cli.rereading import read_for_run
from sparsevae.cli.runs import load_run, write_csv, write_json
from sparsevae.cli.tables import fingerprint
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.identifiability import stability as refit
from sparsevae.identifiability.records import stability_record
from sparsevae.validation import check_choice

__all__ = ["stability"]

_HOW = ("seed", "bootstrap")
_FILES = ("stability.json", "stability.csv", "selection.csv")


@one_sentence_errors
def stability(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Directory that fit wrote.")],
    table: TableArgument,
    refits: Annotated[int, typer.Option("--refits", "-n", min=1, help="How often to fit again.")] = 20,
    how: Annotated[
        str,
        typer.Option(
            metavar="seed|bootstrap",
            help="seed: other seeds on the same samples. bootstrap: samples drawn with replacement too.",
            autocompletion=one_of(_HOW),
        ),
    ] = "seed",
    seed: Annotated[int | None, typer.Option(min=0, help="Of the refits. [default: the run's]")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace a result that is there already.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a run again, several times, and report which of its factors and links come back.

    TABLE is the table of the fit. RUN gets stability.json, stability.csv (a row per factor) and selection.csv
    (for each feature and factor the share of refits that link them); report takes them up.
    """
    check_choice("how", how, _HOW)
    record = load_run(run)
    present = [name for name in _FILES if (run / name).exists()]
    if present and not force:
        raise DataError(f"Expected a run without {present[0]}; {run} has one. Add --force to replace it.")
    model = SparseVAE.load(run / "model")
    data = read_for_run(record, model, table)
    if fingerprint(table)["sha256"] != record["data"]["sha256"]:
        if data.shape[0] != record["data"]["n_samples"]:
            raise DataError(
                f"Expected the table of the fit, with {record['data']['n_samples']} samples; {table} has "
                f"{data.shape[0]}. Name the table that was fitted."
            )
        say(f"{table} is not the file that was fitted; it is taken to hold the same table.")
    say(f"Fitting {refits} times ...")
    with collect_warnings():
        result = refit(
            model,
            data.for_estimator(),
            refits,
            how,
            random_state=seed,
            n_jobs=jobs,
            verbose=int(is_watched()),
        )
    write_json(run / "stability.json", stability_record(result), compact=True)
    write_csv(result.table.rename_axis("factor"), run / "stability.csv")
    write_csv(result.selection_probability.rename_axis("feature"), run / "selection.csv")
    if as_json:
        print_json({"run": str(run), "how": how, "factors": stability_record(result)["reproducibility"]})
    else:
        print(result.summary())
        print(f"Written to {run}: {', '.join(_FILES)}")
