"""``sparsevae fit``: from a table to a run directory."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsevae.cli.console import (
    INTERRUPTED,
    collect_warnings,
    is_watched,
    keep_log,
    one_sentence_errors,
    print_json,
    say,
)
from sparsevae.cli.formats import ReadOptions
from sparsevae.cli.likelihoods import choose_likelihood
from sparsevae.cli.options import (
    DropOption,
    FeatureNamesOption,
    HeaderOption,
    IdColumnOption,
    JsonOption,
    LayerOption,
    LikelihoodOption,
    TableArgument,
)
from sparsevae.cli.runs import (
    RUN_FORMAT,
    check_place,
    evidence_of,
    factors_of,
    name_features,
    new_run,
    versions,
    write_csv,
    write_json,
)
from sparsevae.cli.settings import merge_settings, read_config
from sparsevae.cli.tables import TableFile, fingerprint, read_table
from sparsevae.estimators import SparseVAE
from sparsevae.training import stop_on_interrupt

__all__ = ["fit"]

_FILES = (
    "run.json",
    "model",
    "loadings.csv",
    "effects.csv",
    "factors.csv",
    "history.csv",
    "evidence.json",
    "log.txt",
)
_TOP = 6  # features named per factor in the summary


@one_sentence_errors
def fit(
    table: TableArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="RUN", help="Directory to write; it must be new.")
    ],
    factors: Annotated[
        int | None, typer.Option("--factors", "-k", min=1, help="Largest number of factors. [default: 10]")
    ] = None,
    likelihood: LikelihoodOption = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same fit. [default: 0]")] = None,
    max_epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of the fit. [default: enough for the size of the table]")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Any parameter of SparseVAE, by its name; what is typed wins."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a run that is there already.")] = False,
    as_json: JsonOption = False,
    drop: DropOption = None,
    id_column: IdColumnOption = None,
    header: HeaderOption = None,
    transpose: Annotated[bool, typer.Option("--transpose", help="The file has a row per feature.")] = False,
    layer: LayerOption = None,
    feature_names: FeatureNamesOption = None,
) -> None:
    """Fit a sparse VAE to a table with a row per sample, and write everything about it to a directory.

    RUN gets run.json (settings, versions, seed, fingerprint of the data), model (to load again), loadings.csv
    (which feature uses which factor), effects.csv (by how much, in the features' units), factors.csv (the
    factors of each sample), history.csv (the terms of the objective, epoch by epoch), evidence.json (what the
    report needs of the data) and log.txt.
    """
    check_place(out, force=force)
    reading = {
        "header": header,
        "id_column": id_column,
        "drop": tuple(drop or ()),
        "transpose": transpose or None,
        "layer": layer,
        "feature_names": feature_names,
    }
    typed = {"n_factors": factors, "likelihood": likelihood, "random_state": seed, "max_epochs": max_epochs}
    parameters, options = merge_settings(read_config(config), typed, reading)
    with keep_log() as log, stop_on_interrupt(_announce_stop) as stop:
        data = _read(table, options)
        reason = _settle_likelihood(parameters, data)
        parameters.setdefault("random_state", 0)
        model = SparseVAE(**parameters, verbose=int(is_watched()))
        say(f"Fitting up to {model.n_factors} factors ...")
        started = time.perf_counter()
        with collect_warnings() as messages:
            model.fit(data.for_estimator())
            model.set_params(verbose=0)
            name_features(model, data)
            Z = factors_of(model, data)
            seconds = time.perf_counter() - started
            say(f"Fitted in {seconds:.0f} s. Examining {len(model.active_factors_)} factors ...")
            evidence = evidence_of(model, data, table, seen_in_fit=True)
        record = {
            "format": RUN_FORMAT,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"python": platform.python_version(), **versions()},
            "data": {**fingerprint(table), "n_samples": data.shape[0], "n_features": data.shape[1]},
            "reading": asdict(options),
            "settings": {name: value for name, value in model.get_params().items() if name != "verbose"},
            "seed": model.random_state,
            "assumptions": [*data.assumptions, reason],
            "warnings": messages,
            "interrupted": stop.heeded,
            "result": _result(model, seconds),
        }
        with new_run(out, force=force) as folder:
            write_json(folder / "run.json", record)
            model.save(folder / "model")
            write_csv(model.loadings().rename_axis("feature"), folder / "loadings.csv")
            write_csv(model.effects().rename_axis("feature"), folder / "effects.csv")
            write_csv(Z, folder / "factors.csv")
            write_csv(model.history_, folder / "history.csv", index=False)
            write_json(folder / "evidence.json", evidence, compact=True)
            (folder / "log.txt").write_text("".join(f"{line}\n" for line in log), "utf-8")
    if as_json:
        print_json({"run": str(out), **record})
    else:
        _summarise(model, data, out, seconds)
    if stop.heeded:
        raise typer.Exit(INTERRUPTED)


def _announce_stop() -> None:
    if is_watched():
        print(file=sys.stderr)  # the cursor is at the end of a progress bar
    say("Stopping: the best model so far will be written. Ctrl-C again to give it up.")


def _read(path: Path, options: ReadOptions) -> TableFile:
    data = read_table(path, options)
    say(f"Read {path}: {data.shape[0]} samples x {data.shape[1]} features.")
    for assumption in data.assumptions:
        say(f"  {assumption}")
    return data


def _settle_likelihood(parameters: dict[str, Any], data: TableFile) -> str:
    """Put a likelihood in the place of "auto", and say why."""
    if parameters.get("likelihood", "auto") != "auto":
        return f"The likelihood is {parameters['likelihood']}, as asked."
    parameters["likelihood"], reason = choose_likelihood(data.X)
    sentence = f"The likelihood is {parameters['likelihood']}, because {reason}."
    say(f"  {sentence} (--likelihood NAME for another.)")
    return sentence


def _result(model: SparseVAE, seconds: float) -> dict[str, Any]:
    starts = model.starts_.to_dict("records")
    return {
        "n_active": len(model.active_factors_),
        "n_nonzero": int((model.mask_ != 0).sum()),
        "factors": [
            {"name": name, "variance_explained": float(model.variance_explained_[k]), "anchors": anchors}
            for k, (name, anchors) in zip(model.active_factors_, model.anchor_features().items(), strict=True)
        ],
        "not_used": {str(k): why for k, why in model.dropped_factors_.items()},
        "starts": [
            {name: None if value != value else value for name, value in start.items()} for start in starts
        ],
        "n_epochs": model.n_iter_,
        "seconds": round(seconds, 1),
    }


def _summarise(model: SparseVAE, data: TableFile, out: Path, seconds: float) -> None:
    n_active = len(model.active_factors_)
    if n_active:
        links = model.mask_[:, model.active_factors_] != 0
        print(
            f"{n_active} factor{'s' if n_active > 1 else ''} found, with room for {model.n_factors}; "
            f"{links.sum()} of {links.size} links between features and factors are used."
        )
        for k, name in zip(model.active_factors_, model.loadings().columns, strict=True):
            print(f"  {name}  {model.variance_explained_[k]:4.0%} of variance  {_strongest(model, name)}")
        if any(model.anchor_features().values()):
            print("  (* an anchor: a feature of this factor alone)")
    else:
        why = next(iter(model.dropped_factors_.values()), "every column of the mask is empty")
        print(f"No factor found in {data.shape[0]} samples of {data.shape[1]} features: {why}.")
    print(f"Written to {out} in {seconds:.0f} s: {', '.join(_FILES)}")


def _strongest(model: SparseVAE, factor: str) -> str:
    top = model.top_features(_TOP)
    top = top[top["factor"] == factor]
    features = [
        f"{name}*" if anchor else str(name)
        for name, anchor in zip(top["feature"], top["anchor"], strict=True)
    ]
    more = int((model.loadings()[factor] != 0).sum()) - len(features)
    return ", ".join(features) + (f" and {more} more" if more else "")
