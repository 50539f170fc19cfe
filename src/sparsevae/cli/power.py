"""``sparsevae power``: how many rows are needed to find the factors of a fit, or of a design."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from matplotlib.figure import Figure

from sparsevae.cli.console import is_watched, one_sentence_errors, print_json, say
from sparsevae.cli.options import JsonOption
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.persistence import check_writable, replacing
from sparsevae.plotting import plot_power
from sparsevae.runs import Run
from sparsevae.sample_size import Draw, design
from sparsevae.sample_size import power as simulate

__all__ = ["power"]


@one_sentence_errors
def power(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A pilot fit; or describe the design by options.")
    ] = None,
    rows: Annotated[
        str, typer.Option("--rows", metavar="A,B,C", help="Numbers of rows to try.")
    ] = "100,200,400,800",
    tables: Annotated[int, typer.Option("--tables", min=1, help="Simulated tables of each length.")] = 5,
    factors: Annotated[
        int | None, typer.Option("--factors", "-k", min=1, help="Factors of the design.")
    ] = None,
    features: Annotated[int, typer.Option(min=1, help="Features of each factor alone.")] = 5,
    loading: Annotated[float, typer.Option(help="Correlation of a feature with its factor.")] = 0.6,
    correlation: Annotated[float, typer.Option(help="Of each two factors.")] = 0.3,
    cross_links: Annotated[int, typer.Option(min=0, help="Further features of two factors.")] = 0,
    noise: Annotated[int, typer.Option(min=0, help="Further features of no factor.")] = 0,
    goal: Annotated[float, typer.Option(help="Asked of each measure.")] = 0.9,
    max_epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of each fit.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulated tables.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.csv", help="A row per simulated table.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE.png", help="Recovery by rows.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say how many rows are needed: simulate tables from a pilot fit or a described design, and fit each.

    A number of rows is enough if the number of factors is right, links and factors are found again, each to
    the goal. From a pilot the answer is about factors as strong as those that it has found.
    """
    for path in (output, plot):
        if path is not None and path.exists() and not force:
            raise DataError(f"Expected a new file for the output; {path} exists. Add --force to replace it.")
    if (run is None) == (factors is None):
        raise ParameterError(
            "Expected either a run or a design; got both or neither. Name a run, or say --factors 3 "
            "--features 5."
        )
    lengths = _lengths(rows)
    for path in (output, plot):
        if path is not None:
            check_writable(path)
    source: SparseVAE | Draw
    if run is not None:
        source = Run.open(run).model()
        estimator = SparseVAE(**source.get_params())
    else:
        assert factors is not None
        source = design(
            factors,
            features,
            loading=loading,
            correlation=correlation,
            cross_links=cross_links,
            n_noise=noise,
        )
        estimator = SparseVAE(n_factors=2 * factors)
    if max_epochs is not None:
        estimator.set_params(max_epochs=max_epochs)
    say(f"Fitting {tables * len(lengths)} simulated tables of {lengths[0]} to {lengths[-1]} rows ...")
    result = simulate(
        source, lengths, tables, estimator=estimator, goal=goal, random_state=seed, verbose=int(is_watched())
    )
    if output is not None:
        with replacing(output) as partial:
            result.runs.to_csv(partial, index=False)
    if plot is not None:
        with replacing(plot) as partial:
            figure = Figure(figsize=(5.4, 3.4), layout="constrained")
            plot_power(result.table, goal=goal, ax=figure.subplots())
            figure.savefig(partial, dpi=150)
    if as_json:
        table = result.table.reset_index().to_dict("records")
        print_json({"n_needed": result.n_needed, "summary": result.summary(), "table": table})
        return
    print(result.table.round(2).rename(columns=lambda name: name.replace("_", " ")).to_string())
    print(result.summary())


def _lengths(rows: str) -> list[int]:
    try:
        return sorted({int(part) for part in rows.split(",")})
    except ValueError as error:
        raise ParameterError(
            f"Expected numbers of rows with commas between them, as in 100,200,400; got {rows!r}."
        ) from error
