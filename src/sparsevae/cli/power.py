"""``sparsevae power``: how many rows are needed to find the factors of a fit, or of a design."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from matplotlib.figure import Figure

from sparsevae.cli.console import is_watched, one_sentence_errors, print_json, say
from sparsevae.cli.options import PICTURES, JsonOption
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.persistence import check_writable, replacing
from sparsevae.plotting import plot_power
from sparsevae.runs import Run
from sparsevae.sample_size import SHORTEST, Draw, design
from sparsevae.sample_size import power as simulate
from sparsevae.validation import check_fraction

__all__ = ["power"]


@one_sentence_errors
def power(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="A pilot fit; or describe the design by options.")
    ] = None,
    rows: Annotated[
        str, typer.Option("--rows", metavar="A,B,C", help="Numbers of rows to try.")
    ] = "100,200,400,800",
    tables: Annotated[
        int, typer.Option("--tables", min=1, help="Simulated tables for each number of rows.")
    ] = 5,
    factors: Annotated[
        int | None, typer.Option("--factors", "-k", min=1, help="Factors of the design.")
    ] = None,
    features: Annotated[int, typer.Option(min=1, help="Features that depend on each factor alone.")] = 5,
    loading: Annotated[float, typer.Option(help="Correlation of a feature with its factor.")] = 0.6,
    correlation: Annotated[float, typer.Option(help="Correlation between any two factors.")] = 0.3,
    cross_links: Annotated[int, typer.Option(min=0, help="More features, each of two factors.")] = 0,
    noise: Annotated[int, typer.Option(min=0, help="More features, of no factor.")] = 0,
    goal: Annotated[float, typer.Option(help="Value that each measure must reach.")] = 0.9,
    max_epochs: Annotated[int | None, typer.Option(min=1, help="Epochs of each fit.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulated tables.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.csv", help="A row per simulated table.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png", help="Picture of recovery by number of rows.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier files.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say how many rows are needed: simulate tables from a pilot fit or a described design, and fit each.

    A number of rows is enough if the number of factors, the links and the factors are recovered, each as well
    as --goal says. With a pilot the answer is about factors as strong as those of the pilot.
    """
    if (run is None) == (factors is None):
        raise ParameterError(
            "Expected either a run or a design; got both or neither. Name a run, or say --factors 3 "
            "--features 5."
        )
    lengths = _lengths(rows)
    check_fraction("--goal", goal)
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
    _check_outputs(output, plot, force=force)
    n_tables = tables * len(lengths)
    said = f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else str(lengths[0])
    say(f"Fitting {n_tables} simulated table{'s' if n_tables > 1 else ''} of {said} rows ...")
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


def _check_outputs(output: Path | None, plot: Path | None, *, force: bool) -> None:
    """Refuse, before the fits, files that could not be written after them."""
    for option, path, endings in (("--output", output, (".csv",)), ("--plot", plot, PICTURES)):
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise ParameterError(f"Expected {option} to end in {', '.join(endings)}; got {path.name}.")
        if path.exists() and not force:
            raise DataError(f"Expected a new file for the output; {path} exists. Add --force to replace it.")
        check_writable(path)


def _lengths(rows: str) -> list[int]:
    try:
        lengths = sorted({int(part) for part in rows.split(",")})
    except ValueError as error:
        raise ParameterError(
            f"Expected numbers of rows with commas between them, as in 100,200,400; got {rows!r}."
        ) from error
    if lengths[0] < SHORTEST:
        raise ParameterError(f"Expected --rows of at least {SHORTEST}; got {lengths[0]}.")
    return lengths
