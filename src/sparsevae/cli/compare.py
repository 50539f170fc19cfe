"""``sparsevae compare``: several methods on one split of a table."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import typer

from sparsevae.cli.console import (
    collect_warnings,
    one_sentence_errors,
    print_json,
    say,
    say_table,
    show,
)
from sparsevae.cli.options import (
    DropOption,
    FeatureNamesOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    LayerOption,
    LikelihoodOption,
    MaxEpochsOption,
    TableArgument,
)
from sparsevae.comparison import compare as compare_methods
from sparsevae.comparison.methods import DEFAULT, METHODS, make_estimators, parse_methods
from sparsevae.io import read_table, suggest_likelihood

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
    likelihood: LikelihoodOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split and of the fits.")] = 0,
    max_epochs: MaxEpochsOption = None,
    test_fraction: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Fraction of the rows that are held out.")
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

    The columns are: score, the mean lower bound on log p(x) of a held-out row (higher is better; empty for
    methods without such a bound); reconstruction, the mean of -log p(x | code) at the code that a method
    finds for the row (lower is better, and more factors lower it); seconds of the fit; factors in use;
    sparsity, the fraction of exact zeros among the loadings.
    """
    parse_methods(methods)  # what is written wrongly is said before a table is read
    data = read_table(
        table,
        header=header,
        id_column=id_column,
        drop=drop or (),
        transpose=transpose,
        layer=layer,
        feature_names=feature_names,
    )
    say_table(data)
    if likelihood in (None, "auto"):
        likelihood, reason = suggest_likelihood(data.X, names=data.feature_names)
        say(f"  The likelihood is {likelihood}, because {reason}. (--likelihood NAME for another.)")
    parameters = {} if max_epochs is None else {"max_epochs": max_epochs}
    estimators = make_estimators(
        methods, n_factors=factors, likelihood=likelihood, random_state=seed, **parameters
    )
    results = []
    with collect_warnings():
        for label, estimator in estimators.items():
            say(f"Fitting {label} ...")
            result = compare_methods(
                data.for_estimator(),
                {label: estimator},
                test_fraction=test_fraction,
                random_state=seed,
            )
            say(f"  {_in_words(result.iloc[0])}")
            results.append(result)
    frame = pd.concat(results)
    if as_json:
        records = frame.reset_index().to_dict("records")
        rows = [{name: None if pd.isna(value) else value for name, value in row.items()} for row in records]
        settings = {"likelihood": likelihood, "n_factors": factors, "seed": seed}
        print_json({**settings, "test_fraction": test_fraction, "methods": rows})
    else:
        show(_as_text(frame))


def _in_words(row: pd.Series) -> str:
    """The result of one method, shown while the others are fitted."""
    if row["note"]:
        return f"not fitted: {row['note']}"
    score = "" if pd.isna(row["score"]) else f"score {row['score']:.3f}, "
    return f"{score}reconstruction {row['reconstruction']:.3f}, in {row['seconds']:.1f} s"


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
