"""``sparsevae compare``: several methods on one split of a table."""

from __future__ import annotations

import time
from typing import Annotated, Any

import pandas as pd
import typer

from sparsevae.cli.console import collect_warnings, one_sentence_errors, print_json, say
from sparsevae.cli.formats import ReadOptions
from sparsevae.cli.likelihoods import choose_likelihood
from sparsevae.cli.options import (
    DropOption,
    FeatureNamesOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    LayerOption,
    TableArgument,
)
from sparsevae.cli.tables import read_table
from sparsevae.experiments import compare as compare_methods
from sparsevae.experiments.compare import DEFAULT, METHODS, parse_methods

__all__ = ["compare"]


@one_sentence_errors
def compare(
    table: TableArgument,
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            "-m",
            metavar="NAMES",
            help=f"Some of {', '.join(METHODS)}, with parameters where wanted: 'SparseVAE, VAE(beta=4)'.",
        ),
    ] = ", ".join(DEFAULT),
    factors: Annotated[int, typer.Option("--factors", "-k", min=1, help="Largest number of factors.")] = 10,
    likelihood: Annotated[
        str,
        typer.Option(
            help="gaussian, multinomial, bernoulli, poisson, negative_binomial, or auto: a look at the "
            "values decides."
        ),
    ] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Of the split and of the fits.")] = 0,
    max_epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs of each fit. [default: enough for the size of the table]"),
    ] = None,
    test_fraction: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Share of the rows that are held out.")
    ] = 0.2,
    as_json: JsonOption = False,
    drop: DropOption = None,
    id_column: IdColumnOption = None,
    header: HeaderOption = None,
    transpose: Annotated[bool, typer.Option("--transpose", help="The file has a row per feature.")] = False,
    layer: LayerOption = None,
    feature_names: FeatureNamesOption = None,
) -> None:
    """Fit several methods to the same rows of a table and measure them on the same held-out rows.

    Columns: score, the mean bound on log p(x) of a held-out row (higher is better; none for methods that are
    not models of codes); reconstruction, the mean of -log p(x | code) (lower is better); seconds of the fit;
    factors in use; sparsity, the share of exact zeros among their loadings.
    """
    wanted = parse_methods(methods)
    options = ReadOptions(
        header=header,
        id_column=id_column,
        drop=tuple(drop or ()),
        transpose=transpose,
        layer=layer,
        feature_names=feature_names,
    )
    data = read_table(table, options)
    say(f"Read {table}: {data.shape[0]} samples x {data.shape[1]} features.")
    for assumption in data.assumptions:
        say(f"  {assumption}")
    if likelihood == "auto":
        likelihood, reason = choose_likelihood(data.X)
        say(f"  The likelihood is {likelihood}, because {reason}. (--likelihood NAME for another.)")
    parameters: dict[str, Any] = {} if max_epochs is None else {"max_epochs": max_epochs}
    results = []
    with collect_warnings():
        for label in wanted:
            say(f"Fitting {label} ...")
            started = time.perf_counter()
            result = compare_methods(
                data.for_estimator(),
                label,
                n_factors=factors,
                likelihood=likelihood,
                test_fraction=test_fraction,
                random_state=seed,
                **parameters,
            )
            say(f"  done in {time.perf_counter() - started:.0f} s")
            results.append(result)
    frame = pd.concat(results)
    if as_json:
        records = frame.reset_index().to_dict("records")
        rows = [{name: None if pd.isna(value) else value for name, value in row.items()} for row in records]
        print_json({"likelihood": likelihood, "n_factors": factors, "seed": seed, "methods": rows})
    else:
        print(_as_text(frame))


def _as_text(frame: pd.DataFrame) -> str:
    """The table for a terminal, and under it what could not be fitted."""
    shown = frame.drop(columns="note")
    formats = {"score": "{:.3f}", "reconstruction": "{:.3f}", "seconds": "{:.1f}", "sparsity": "{:.0%}"}
    text = shown.astype(object)
    for column in text:
        form = formats.get(str(column), "{}")
        text[column] = ["-" if pd.isna(value) else form.format(value) for value in shown[column]]
    lines = [text.reset_index().to_string(index=False)]
    lines += [f"{label}: {note}" for label, note in frame["note"].items() if note]
    return "\n".join(lines)
