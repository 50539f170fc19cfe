"""``sparsevae stability``: which factors of a run come back when it is fitted again."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsevae.cli.console import collect_warnings, is_watched, one_sentence_errors, print_json, say, show
from sparsevae.cli.options import JsonOption, RunArgument, TableArgument, one_of
from sparsevae.identifiability import stability as refit
from sparsevae.identifiability.refits import REFITTED
from sparsevae.runs import Run
from sparsevae.runs.files import STABILITY_FILES
from sparsevae.validation import check_choice

__all__ = ["stability"]

_HOW = tuple(REFITTED)


@one_sentence_errors
def stability(
    run: RunArgument,
    table: TableArgument,
    refits: Annotated[int, typer.Option("--refits", "-n", min=1, help="How often to fit again.")] = 20,
    how: Annotated[
        str,
        typer.Option(
            metavar="halves|seed|bootstrap",
            help="halves: a linear model of halves of the samples, in seconds. seed: whole fits from other "
            "seeds. bootstrap: on samples drawn with replacement too.",
            autocompletion=one_of(_HOW),
        ),
    ] = "halves",
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the refits. [default: the run's]")] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier result.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Refit a run several times, and report which of its factors and links come back.

    TABLE is the table of the fit. RUN gets stability.json, stability.csv (a row per factor) and selection.csv
    (for each feature and factor the fraction of refits that link them); report shows them.
    """
    check_choice("how", how, _HOW)
    with collect_warnings():
        fitted = Run.open(run)
        fitted.check_stability(force=force)
        data = fitted.read_fitted_table(table)
    say(f"Fitting {refits} times ...")
    with collect_warnings():
        result = refit(
            fitted.model(),
            data.for_estimator(),
            refits,
            how,
            random_state=seed,
            n_jobs=jobs,
            verbose=int(is_watched()),
            **data.sides,
        )
    with collect_warnings():
        fitted.add_stability(result, force=force)
    if as_json:
        print_json({"run": str(run), "how": how, "factors": result.reproducibility.to_dict()})
    else:
        show(result.summary())
        show(f"Written to {run}: {', '.join(STABILITY_FILES)}")
