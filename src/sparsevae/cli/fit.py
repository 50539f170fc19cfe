"""``sparsevae fit``: from a table to a run directory."""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from sparsevae.aliases import JSON
from sparsevae.annotations.views import split_views
from sparsevae.cli.console import (
    collect_warnings,
    interrupted_code,
    is_watched,
    keep_log,
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
    RawNamesOption,
    StopWordsOption,
    TableArgument,
    TextOption,
    ViewSeparatorOption,
    WeightsOption,
    WordsOption,
    text_settings,
)
from sparsevae.cli.processes import run_processes
from sparsevae.cli.settings import check_settings, merge_settings, read_config
from sparsevae.estimators import SparseVAE
from sparsevae.estimators.sparse_vae import MOST_FACTORS
from sparsevae.exceptions import DataError, DivergenceError, ParameterError, ProcessError
from sparsevae.fitting.plan import expected_seconds
from sparsevae.identifiability.records import certificate_from_record
from sparsevae.inspection.codes import Codes
from sparsevae.io import TableFile, read_table
from sparsevae.io.suggestion import suggest_for_table
from sparsevae.persistence import last_checkpoint, recover_place, remove_checkpoints, take_place
from sparsevae.runs import Run, check_place
from sparsevae.runs.files import FIT_FILES, estimate_size
from sparsevae.runs.unfinished import check_unfinished, checkpoint_place, is_finished
from sparsevae.runs.workbook import check_size, check_workbook, write_workbook
from sparsevae.tl.files import check_h5ad, write_h5ad
from sparsevae.training import stop_on_interrupt
from sparsevae.training.processes import first_says, is_helper, is_one_of_several, join_processes
from sparsevae.validation import check_duration

__all__ = ["fit"]

_TO_FIT, _NOTHING_TO_DO = "fit", "nothing"  # what the first of several processes tells the others
_LONG = 60.0  # seconds from which on a fit is announced
_TOP = 6  # features named per factor in the summary


@one_sentence_errors
def fit(
    table: TableArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="RUN", help="Directory to write; it must be new.")
    ],
    factors: FactorsOption = None,
    likelihood: LikelihoodOption = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same fit. [default: 0]")] = None,
    max_epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of the fit. [default: enough for the size of the table]")
    ] = None,
    config: ConfigOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier run.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished run, if there is one.")
    ] = False,
    checkpoint_every: Annotated[
        str,
        typer.Option(metavar="TIME", help="Time between two checkpoints, such as 30s, 5m or 1h."),
    ] = "5m",
    processes: Annotated[
        int, typer.Option(min=1, metavar="N", help="Processes that share the rows, on this machine.")
    ] = 1,
    process_timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long to wait for a process that does not answer."),
    ] = "5m",
    as_json: JsonOption = False,
    drop: DropOption = None,
    id_column: IdColumnOption = None,
    header: HeaderOption = None,
    transpose: Annotated[bool, typer.Option("--transpose", help="The file has a row per feature.")] = False,
    layer: LayerOption = None,
    feature_names: FeatureNamesOption = None,
    view_separator: ViewSeparatorOption = None,
    groups: GroupsOption = None,
    weights: WeightsOption = None,
    exposure: ExposureOption = None,
    raw_names: RawNamesOption = False,
    write_to: Annotated[
        Path | None,
        typer.Option(
            "--write-h5ad",
            metavar="FILE.h5ad",
            help="Also write the factors into a copy of an H5AD table; of H5MU, FILE.h5mu.",
        ),
    ] = None,
    excel: Annotated[
        Path | None,
        typer.Option("--excel", metavar="FILE.xlsx", help="Also write all tables as one workbook."),
    ] = None,
    text: TextOption = None,
    words: WordsOption = None,
    stop_words: StopWordsOption = None,
) -> None:
    """Fit a sparse VAE to a table with a row per sample, and write everything about it to a directory.

    RUN gets run.json (settings, versions, seed, fingerprint of the data), model (to load again), loadings.csv
    (which feature uses which factor), effects.csv (by how much, in the features' units), factors.csv (the
    factors of each sample), history.csv (the terms of the objective, epoch by epoch), evidence.json (what the
    report needs of the data) and log.txt.

    Until the run is complete, RUN.checkpoint keeps the fit: add --resume to the command to go on from there.
    """
    settings, reading = merge_settings(
        read_config(config),
        {"n_factors": factors, "likelihood": likelihood, "random_state": seed, "max_epochs": max_epochs},
        {
            "header": header,
            "id_column": id_column,
            "drop": drop or None,
            "transpose": transpose or None,
            "layer": layer,
            "feature_names": feature_names,
            "text": text_settings(text, words, stop_words),
            "groups": groups,
            "weights": weights,
            "exposure": exposure,
        },
    )
    settings = check_settings(settings)
    check_duration("--checkpoint-every", checkpoint_every)
    patience = check_duration("--process-timeout", process_timeout)
    checkpoint = checkpoint_place(out)
    if processes > 1 and not is_one_of_several():
        raise typer.Exit(_share(processes, checkpoint))
    if is_helper():
        _take_part(table, reading, settings, checkpoint, checkpoint_every, patience)
        return
    with (
        keep_log() as log,
        _minding_checkpoint(checkpoint),
        stop_on_interrupt(_announce_stop) as stop,
        join_processes(patience),
        ExitStack() as until_written,
    ):
        if resume:
            with collect_warnings():
                recover_place(out)
            if is_finished(out):
                first_says(_NOTHING_TO_DO)
                _check_same(Run.open(out), table, settings)
                _say_finished(out, as_json=as_json)
                return
        force = check_unfinished(out, resume=resume, force=force)
        check_place(out, force=force)
        if write_to is not None:
            check_h5ad(table, write_to, force=force)
        if excel is not None:
            check_workbook(excel, force=force)
        first_says(_TO_FIT)
        with collect_warnings():
            place = until_written.enter_context(take_place(out, "run"))
            check_place(out, force=force)  # again: finished work that was left there may have got its name
            data = read_table(table, **reading)
        if excel is not None:
            check_size(*data.shape)
        X = data.for_estimator()
        views = data.views if view_separator is None else _views_of(data, view_separator)
        if settings.get("likelihood", "auto") == "auto":
            settings["likelihood"], reason = suggest_for_table(data)
            note = f"The likelihood is {reason}."
            say_table(data, f"{note} (--likelihood NAME for another.)")
        else:
            note = f"The likelihood is {settings['likelihood']}, as asked."
            say_table(data)
        if view_separator is not None and views is not None:
            counts = Counter(views).items()
            say("  Views and their features: " + ", ".join(f"{view} {count}" for view, count in counts) + ".")
        with collect_warnings() as messages:
            model = SparseVAE(**{"random_state": 0, "verbose": int(is_watched()), **settings})
            automatic = isinstance(model.n_factors, str)
            most = min(MOST_FACTORS, data.shape[1]) if automatic else int(model.n_factors)
            place.reserve(estimate_size(*data.shape, most, model.hidden_sizes))
            if not resume:
                remove_checkpoints(checkpoint)  # of a fit that is given up
            how = _how(resume, checkpoint)
            say(f"{how} ..." if automatic else f"{how} up to {most} factors ...")
            _say_duration(expected_seconds(*data.shape), model.max_epochs)
            started = time.perf_counter()
            # A data frame has its names; a sparse matrix cannot have any.
            names = None if hasattr(X, "columns") else data.feature_names
            codes = model.fit_codes(
                X,
                feature_names=names,
                checkpoint=checkpoint,
                checkpoint_every=checkpoint_every,
                **data.sides,
            )
            seconds = time.perf_counter() - started
        model.set_params(verbose=0)
        model.set_views(views)
        n_active = len(model.active_factors_)
        say(f"Fitted in {seconds:.0f} s. Examining {n_active} factor{'' if n_active == 1 else 's'} ...")
        with collect_warnings():
            run = Run.create(
                out,
                model,
                data,
                codes,
                force=force,
                notes=[note],
                warnings=messages,
                interrupted=stop.heeded,
                seconds=seconds,
                log=log,
                raw_names=raw_names,
                place=place,
            )
            if not stop.heeded:
                remove_checkpoints(checkpoint)
            certificate = certificate_from_record((run.evidence() or {})["certificate"])
            if excel is not None:
                write_workbook(excel, model, _factors_of(run, data, codes), certificate.table)
                say(f"Wrote all tables to {excel}.")
            if write_to is not None:
                write_h5ad(table, write_to, model, codes, layer=data.options.layer, certificate=certificate)
                say(f"Wrote the cells with their factors to {write_to}.")
    if as_json:
        print_json({"run": str(run.path), **run.record})
    else:
        with suppress(OSError) if stop.heeded else nullcontext():  # the terminal may be gone
            _summarise(model, data, run.path, seconds)
    if stop.heeded:
        if last_checkpoint(checkpoint) is not None:
            say("The same command with --resume goes on where the fit was stopped.")
        raise typer.Exit(interrupted_code(stop.number))


def _share(processes: int, checkpoint: Path) -> int:
    """Run the command in several processes; its exit code."""
    code = run_processes(processes)
    if code == interrupted_code(int(signal.SIGKILL)) and last_checkpoint(checkpoint) is not None:
        say(
            f"The fit is kept in {checkpoint}: --resume goes on with it."
        )  # the one that would say so is gone
    return code


def _take_part(
    table: Path,
    reading: JSON,
    settings: JSON,
    checkpoint: Path,
    checkpoint_every: str,
    patience: float,
) -> None:
    """Share a fit of which another process tells and which it writes."""
    with stop_on_interrupt(), collect_warnings(), join_processes(patience):
        if first_says("") == _NOTHING_TO_DO:
            return
        data = read_table(table, **reading)
        X = data.for_estimator()
        if settings.get("likelihood", "auto") == "auto":
            settings["likelihood"], _ = suggest_for_table(data)
        model = SparseVAE(**{"random_state": 0, **settings})
        names = None if hasattr(X, "columns") else data.feature_names
        model.fit(
            X,
            feature_names=names,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            **data.sides,
        )


def _how(resume: bool, checkpoint: Path) -> str:
    if not resume:
        return "Fitting"
    last = last_checkpoint(checkpoint)
    return "There is nothing to resume: fitting" if last is None else f"Going on from {last.parent}: fitting"


def _check_same(run: Run, table: Path, settings: JSON) -> None:
    """Refuse to call a fit finished that was one of another table, or of other numbers."""
    fitted, size = run.record["data"], table.stat().st_size if table.is_file() else None
    known = run.record["settings"]
    other = [
        f"{name}={known[name]!r}, not {value!r}"
        for name, value in settings.items()
        if isinstance(value, int | float) and known.get(name, value) != value
    ]
    if fitted["file"] != table.name or (size is not None and fitted.get("bytes", size) != size):
        other.insert(0, f"another table, {fitted['file']}")
    if other:
        raise ParameterError(
            f"Expected a run of the same table and settings in {run.path}; it is a finished one of "
            f"{other[0]}. Choose another name, or add --force without --resume to replace it."
        )


def _say_finished(out: Path, *, as_json: bool) -> None:
    say(f"{out} is finished: there is nothing to resume.")
    remove_checkpoints(checkpoint_place(out))
    if as_json:
        print_json({"run": str(out), **Run.open(out).record})


@contextmanager
def _minding_checkpoint(checkpoint: Path) -> Iterator[None]:
    """Say where a fit that was given up can go on from; one that diverges would do so again."""
    try:
        yield
    except (KeyboardInterrupt, ProcessError):
        if last_checkpoint(checkpoint) is not None:
            say(f"The fit is kept in {checkpoint}: --resume goes on with it.")
        raise
    except DivergenceError:
        remove_checkpoints(checkpoint)
        raise


def _factors_of(run: Run, data: TableFile, codes: Codes) -> pd.DataFrame:
    active = run.model().active_factors_
    names = run.model().get_feature_names_out()[active]
    return pd.DataFrame(codes.means()[:, active], index=data.row_labels(), columns=names)


def _views_of(data: TableFile, separator: str) -> list[str]:
    """The view of each feature, by its name."""
    if data.feature_names is None:
        raise DataError(
            "Expected names of features, for --view-separator; the table has none. Give some "
            "(--feature-names FILE)."
        )
    return split_views([str(name) for name in data.feature_names], separator)


def _say_duration(seconds: float, max_epochs: int | None) -> None:
    """A line before a fit that is long, unless the user has set its length."""
    if seconds >= _LONG and max_epochs is None:
        say(
            f"  That takes about {round(seconds / 60)} minutes on one core of a laptop. Fewer features make "
            "it shorter, --max-epochs 100 ends it early."
        )


def _announce_stop() -> None:
    if is_watched():
        with suppress(OSError):
            print(file=sys.stderr)  # the cursor is at the end of a progress bar
    say("Stopping: the best model so far will be written. Ctrl-C again to give it up.")


def _summarise(model: SparseVAE, data: TableFile, out: Path, seconds: float) -> None:
    n_active = len(model.active_factors_)
    if n_active:
        top = model.top_features(_TOP)
        links = model.mask_[:, model.active_factors_] != 0
        show(
            f"{n_active} factor{'s' if n_active > 1 else ''} found, of up to {model.n_factors_}; "
            f"{links.sum()} of {links.size} links between features and factors are used."
        )
        for k, name, n_links in zip(
            model.active_factors_, model.loadings().columns, links.sum(0), strict=True
        ):
            strongest = _list_features(top[top["factor"] == name], int(n_links))
            show(f"  {name}  {model.variance_explained_[k]:4.0%} of variance  {strongest}")
        if note := model.number_note():
            show(f"  {note}")
        if any(model.anchor_features().values()):
            show("  (* an anchor: a feature of this factor alone)")
    else:
        why = next(iter(model.dropped_factors_.values()), "every column of the mask is empty")
        show(f"No factor found in {data.shape[0]} samples of {data.shape[1]} features: {why}.")
    show(f"Written to {out} in {seconds:.0f} s: {', '.join(FIT_FILES)}")


def _list_features(top: pd.DataFrame, n_links: int) -> str:
    """The first features of a factor, anchors with a star, and how many more there are."""
    features = [
        f"{name}*" if anchor else str(name)
        for name, anchor in zip(top["feature"], top["anchor"], strict=True)
    ]
    more = n_links - len(features)
    return ", ".join(features) + (f" and {more} more" if more else "")
