"""``sparsevae replicate``: which factors come back in other rows of a table, or in another study."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import typer
from matplotlib.figure import Figure

from sparsevae.cli.console import (
    collect_warnings,
    is_watched,
    one_sentence_errors,
    print_json,
    say,
    say_table,
    show,
)
from sparsevae.cli.options import (
    ConfigOption,
    DropOption,
    ExposureOption,
    FactorsOption,
    FeatureNamesOption,
    GroupsOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    LayerOption,
    LikelihoodOption,
    MaxEpochsOption,
    RawNamesOption,
    TableArgument,
    WeightsOption,
)
from sparsevae.cli.settings import check_settings, merge_settings, read_config
from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import DataError
from sparsevae.io import read_labels, read_table
from sparsevae.io.record import to_json
from sparsevae.io.suggestion import suggest_for_table
from sparsevae.persistence import check_writable, finish_replacement, replacing_together
from sparsevae.plotting.replication import picture_size
from sparsevae.replication import Replication
from sparsevae.replication import replicate as fit_parts
from sparsevae.runs.files import write_csv

__all__ = ["FILES", "replicate"]

FILES = ("replication.json", "factors.csv", "splits.csv", "replication.png")
"""What the command writes."""


@one_sentence_errors
def replicate(
    table: TableArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIRECTORY", help=f"Gets {', '.join(FILES)}."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Compare studies instead of random halves: the column with the study of each row.",
        ),
    ] = None,
    splits: Annotated[int, typer.Option("--splits", "-n", min=1, help="Random halvings of the rows.")] = 3,
    factors: FactorsOption = None,
    likelihood: LikelihoodOption = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the halves and of the fits. [default: 0]")
    ] = None,
    max_epochs: MaxEpochsOption = None,
    config: ConfigOption = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for one per core.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier result.")] = False,
    as_json: JsonOption = False,
    drop: DropOption = None,
    id_column: IdColumnOption = None,
    header: HeaderOption = None,
    layer: LayerOption = None,
    feature_names: FeatureNamesOption = None,
    groups: GroupsOption = None,
    weights: WeightsOption = None,
    exposure: ExposureOption = None,
    raw_names: RawNamesOption = False,
) -> None:
    """Fit a table, fit halves of its rows or each of its studies, and say which factors come back.

    A factor comes back in a split if both halves have it: over all rows, the rank correlations of the factor
    and its two matches are at least 0.9. A varimax factor analysis with as many factors is for comparison.
    """
    settings, reading = merge_settings(
        read_config(config),
        {"n_factors": factors, "likelihood": likelihood, "random_state": seed, "max_epochs": max_epochs},
        {
            "header": header,
            "id_column": id_column,
            "drop": drop or None,
            "layer": layer,
            "feature_names": feature_names,
            "groups": groups,
            "weights": weights,
            "exposure": exposure,
        },
    )
    settings = check_settings(settings)
    seed = settings.setdefault("random_state", 0)
    with collect_warnings():
        labels = None
        if by is not None:
            labels = read_labels(table, by, header=reading.get("header"), layer=reading.get("layer"))
            reading["drop"] = [*_as_list(reading.get("drop", ())), by]
        data = read_table(table, **reading)
    if settings.get("likelihood", "auto") == "auto":
        settings["likelihood"], reason = suggest_for_table(data)
        say_table(data, f"The likelihood is {reason}. (--likelihood NAME for another.)")
    else:
        say_table(data)
    X = data.for_estimator()
    with nullcontext() if output is None else _place(output, force=force), collect_warnings():
        say("Fitting all rows, then parts of them ...")
        result = fit_parts(
            SparseVAE(**{"verbose": int(is_watched()), **settings}),
            X,
            labels,
            splits,
            seed,
            n_jobs=jobs,
            verbose=int(is_watched()),
            feature_names=None if hasattr(X, "columns") else data.feature_names,
            **data.sides,
        )
        if output is not None:
            _write(result, output, raw_names=raw_names)
    if as_json:
        print_json({"table": str(table), "by": by, **result.to_dict()})
        return
    show(result.summary())
    if output is not None:
        show(f"Written to {output}: {', '.join(FILES)}")


def _as_list(names: object) -> list[str]:
    return [names] if isinstance(names, str) else list(names)  # type: ignore[call-overload]


@contextmanager
def _place(folder: Path, *, force: bool) -> Iterator[None]:
    """A place that can be written and has no result yet; if nothing comes of it, none is left."""
    is_new = not folder.exists()
    try:
        _check_place(folder, force=force)
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _check_place(folder: Path, *, force: bool) -> None:
    paths = [folder / name for name in FILES]
    if folder.is_dir():
        finish_replacement(paths)
    there = [path for path in paths if path.exists()]
    if there and not force:
        raise DataError(f"Expected a new place for the result; {there[0]} exists. Add --force to replace it.")
    for path in paths:
        check_writable(path)


def _write(result: Replication, folder: Path, *, raw_names: bool) -> None:
    with replacing_together([folder / name for name in FILES]) as (record, factors, splits, picture):
        record.write_text(to_json(result.to_dict()) + "\n", "utf-8")
        table = result.factors.assign(features=result.factors["features"].map(", ".join))
        write_csv(table, factors, index=False, raw_names=raw_names)
        write_csv(result.splits, splits, index=False, raw_names=raw_names)
        # A figure without pyplot needs no window system and leaves nothing open.
        figure = Figure(figsize=picture_size(len(result.factors)), layout="constrained")
        result.plot(ax=figure.subplots())
        figure.savefig(picture, dpi=150)
