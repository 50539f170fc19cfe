"""From a result's name to rows: what is not there yet is run, here or on a cluster, and kept as it ends."""

from __future__ import annotations

import logging
import time
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from sparsevae.aliases import JSON
from sparsevae.comparison.measures import MEASURES, Fit, Value
from sparsevae.comparison.methods import METHODS
from sparsevae.exceptions import ConvergenceWarning, ParameterError, SparseVAEError
from sparsevae.reproduction.data import LoadedSource, load_source, make_data
from sparsevae.reproduction.provenance import find_provenance
from sparsevae.reproduction.results import FAILED, KEY, Key, Results, run_of
from sparsevae.reproduction.spec import Run, Spec

__all__ = ["Outcome", "Progress", "choose_runs", "execute", "run_spec"]

logger = logging.getLogger(__name__)

_ANY_PORT = {"dashboard_address": ":0"}  # the usual one may be taken by another cluster

Rows = list[JSON]
Progress = Callable[[str], None]
_Task = tuple[Callable[..., tuple[Run, Rows]], tuple[object, ...], dict[str, object]]  # of joblib's delayed


@dataclass
class Outcome:
    """What a call has done: how many runs there are, were there already, ended well, failed."""

    n_runs: int
    n_found: int
    n_done: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    """From run to reason."""


def run_spec(
    spec: Spec,
    scale: str,
    results: Results,
    *,
    shared: Results | None = None,
    data: Path | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    redo: bool = False,
    jobs: int | None = 1,
    backend: str | None = None,
    scheduler: str | None = None,
    progress: Progress = logger.info,
) -> Outcome:
    """Do the runs of a result that are not among the rows yet.

    Parameters
    ----------
    spec : Spec
    scale : {"smoke", "quick", "paper"}
    results : Results
        Gets the rows of each run as it ends.
    shared : Results, optional
        Rows of another result; runs that it has too are taken from there.
    data : path, optional
        Directory of the data sets.
    only : dict, optional
        From field (method, recipe, data_set, seed, split) to the values wanted.
    redo : bool
        Whether to do the chosen runs again; their rows stay until the new ones are there.
    jobs : int, optional
        Runs at a time; None leaves it to a surrounding ``joblib.parallel_config``.
    backend : str, optional
        A backend of joblib: "loky" for processes on this machine, "dask" for a cluster.
    scheduler : str, optional
        Address of a Dask scheduler; without one, ``backend="dask"`` starts processes here.
    progress : callable
        Gets a sentence for each run that ends.

    Returns
    -------
    Outcome
    """
    # Of the code as it is now: reading data takes time, and the checkout may change meanwhile.
    find_provenance()
    runs = choose_runs(spec.runs(scale), only or {})
    taken = set() if shared is None else _take_over(runs, results, shared)
    if redo and taken:
        progress(f"{len(taken)} runs are those of {spec.shares_with}: there they can be done again.")
    finished = {} if redo else results.finished()
    waiting = deque(run for run in runs if run.key not in taken and not _is_done(run, finished))
    outcome = Outcome(len(runs), len(runs) - len(waiting))
    sources = _load_sources(waiting, data, progress)
    described = {
        name: source.description
        for (name, _), source in sources.items()
        if isinstance(source, LoadedSource) and source.description
    }
    results.describe(
        described,
        replaced_runs=_replaced_runs(runs, spec.runs(scale), results.finished(), described) if redo else None,
    )
    clock = _Clock(waiting)
    under_way: dict[tuple[str, ...], Run] = {}

    def tasks() -> Iterator[_Task]:
        while waiting:
            run = waiting.popleft()
            # Asked again at the last moment: another process may have done it since.
            if not redo and _is_done(run, results.finished()):
                outcome.n_found += 1
                clock.leave_out(run)
                continue
            under_way[run.key] = run
            yield delayed(execute)(run, sources[_source_key(run)])

    def keep(run: Run, rows: Rows) -> None:
        under_way.pop(run.key)
        results.add(rows, replace=redo)
        failure = next((row["note"] for row in rows if row["metric"] == FAILED), None)
        if failure is None:
            outcome.n_done += 1
        else:
            outcome.failures[str(run)] = failure
        progress(clock.tick(run, rows[0]["seconds"], failure))

    with _workers(backend, scheduler, jobs):
        n_jobs = -1 if backend == "dask" else jobs
        ended = _as_they_end(tasks(), n_jobs)
        while True:
            try:
                run, rows = next(ended)
            except StopIteration:
                return outcome
            except Exception as error:
                # A worker has died, of memory perhaps. Which run killed it is not known: those under way are
                # put down as failed, to be tried again by the next command, and the others go on.
                if not under_way:
                    raise
                for run in list(under_way.values()):
                    keep(run, _failure(run, f"a worker process ended: {type(error).__name__}: {error}"))
                ended = _as_they_end(tasks(), n_jobs)
            else:
                keep(run, rows)


def choose_runs(runs: Sequence[Run], only: Mapping[str, Sequence[str]]) -> list[Run]:
    """The runs whose fields have one of the values wanted.

    Parameters
    ----------
    runs : sequence of Run
    only : dict
        From field to values, as text.
    """
    for name, values in only.items():
        if name not in KEY:
            raise ParameterError(f"Expected a field among {', '.join(KEY)}; got {name!r}.")
        there = {str(getattr(run, name)) for run in runs}
        if unknown := set(values) - there:
            raise ParameterError(
                f"Expected {name} to be among {', '.join(sorted(there))}; got {', '.join(sorted(unknown))}."
            )
    return [run for run in runs if all(str(getattr(run, name)) in values for name, values in only.items())]


def _replaced_runs(
    runs: Sequence[Run], every: Sequence[Run], there: Collection[Key], sources: Iterable[str]
) -> dict[str, set[Key]]:
    """The runs of each source whose rows were all chosen: none of other data would be left."""
    chosen = {run.key for run in runs}
    found: dict[str, set[Key]] = {
        name: {run.key for run in every if run.source == name and run.key in there} for name in sources
    }
    return {name: keys for name, keys in found.items() if keys <= chosen}


def _is_done(run: Run, finished: Mapping[tuple[str, ...], tuple[str, set[str]]]) -> bool:
    """Whether rows of the run are there, with its settings and all its metrics."""
    settings, metrics = finished.get(run.key, ("", set()))
    return settings == run.settings and metrics.issuperset(run.metrics)


def _as_they_end(tasks: Iterator[_Task], n_jobs: int | None) -> Iterator[tuple[Run, Rows]]:
    """Results of tasks in the order in which they end."""
    backend, _ = get_active_backend()
    if backend.supports_return_generator:
        parallel = Parallel(n_jobs=n_jobs, pre_dispatch="n_jobs", return_as="generator_unordered")
        yield from parallel(tasks)
        return
    # Ray's backend and multiprocessing's give all results at once: a few runs at a time, lest rows get lost.
    while some := list(islice(tasks, effective_n_jobs(n_jobs))):
        yield from Parallel(n_jobs=n_jobs)(some)


def _take_over(runs: Sequence[Run], results: Results, shared: Results) -> set[Key]:
    """Copy the rows of runs that another result has done with the same settings, all metrics of them."""
    taken: set[Key] = set()
    mine, theirs = _by_run(results), _by_run(shared)
    for run in runs:
        key = (*run.key, run.settings)
        wanted = [
            {**row, "result": run.result} for row in theirs.get(key, []) if row["metric"] in run.metrics
        ]
        if len(wanted) == len(run.metrics):
            taken.add(run.key)
            if wanted != mine.get(key):
                results.add(wanted, replace=True)
    return taken


def _by_run(results: Results) -> dict[tuple[str, ...], list[dict[str, str]]]:
    rows: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in results.rows():
        rows.setdefault((*run_of(row), row["settings"]), []).append(row)
    return rows


def execute(run: Run, source: LoadedSource | str) -> tuple[Run, Rows]:
    """Fit and measure; what goes wrong becomes a row with the reason.

    Parameters
    ----------
    run : Run
    source : LoadedSource or str
        The data, or why they could not be had.

    Returns
    -------
    run : Run
    rows : list of dict
        One per metric, or the one of a failure.
    """
    started, common = time.perf_counter(), _common(run)
    try:
        if isinstance(source, str):
            raise FileNotFoundError(source)
        values, of_fit = _fit_and_measure(run, source)
    except Exception as error:  # whatever it is, the other runs go on
        reason = f"{type(error).__name__}: {error}"
        return run, _failure(run, reason, seconds=round(time.perf_counter() - started, 3))
    return run, [{**common, **of_fit, "metric": metric, "value": value} for metric, value in values.items()]


def _failure(run: Run, reason: str, seconds: float = 0.0) -> Rows:
    return [{**_common(run), "metric": FAILED, "value": None, "note": reason, "seconds": seconds}]


def _common(run: Run) -> JSON:
    """What all rows of a run have."""
    return {
        "result": run.result,
        "scale": run.scale,
        **dict(zip(KEY, run.key, strict=True)),
        "settings": run.settings,
        **find_provenance(),
    }


def _fit_and_measure(run: Run, source: LoadedSource) -> tuple[dict[str, Value], JSON]:
    """Values by metric; and of the fit, its time and what it warned of."""
    train, test = make_data(run, source)
    parameters = {
        name: tuple(value) if isinstance(value, list) else value for name, value in run.parameters.items()
    }
    estimator = METHODS[run.estimator](random_state=run.seed, **parameters)
    started, cpu_started = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(train.X)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    notes = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = Fit(estimator, train, test, run.seed)
        values = {metric: MEASURES[metric].compute(fit) for metric in run.metrics}
    return values, {
        "note": "; ".join(dict.fromkeys(notes)),
        "seconds": round(seconds, 3),
        "cpu_seconds": round(cpu_seconds, 3),
    }


def _source_key(run: Run) -> tuple[str, str]:
    return run.source, repr(sorted(run.source_parameters.items()))


def _load_sources(
    runs: Iterable[Run], data: Path | None, progress: Progress
) -> dict[tuple[str, str], LoadedSource | str]:
    """Each source once; the reason in its place where it cannot be had."""
    sources: dict[tuple[str, str], LoadedSource | str] = {}
    for run in runs:
        key = _source_key(run)
        if key in sources:
            continue
        started = time.perf_counter()
        try:
            sources[key] = load_source(run.source, run.source_parameters, data)
        except (SparseVAEError, OSError) as error:
            sources[key] = str(error)
            continue
        if (seconds := time.perf_counter() - started) > 1:
            progress(f"Data: {run.source} read in {seconds:.0f} s.")
    return sources


@contextmanager
def _workers(backend: str | None, scheduler: str | None, jobs: int | None) -> Iterator[None]:
    """Where joblib sends the runs."""
    if scheduler is not None and backend != "dask":
        raise ParameterError(f"Expected backend 'dask' with a scheduler; got {backend!r}.")
    if backend is None:
        yield
    elif backend == "dask":
        try:
            from distributed import Client
        except ImportError as error:
            raise ParameterError(
                "Expected dask and distributed for backend 'dask'; one is not installed. Run: "
                "pip install 'dask[distributed]'"
            ) from error
        here = {} if scheduler is not None else {"n_workers": jobs, "threads_per_worker": 1, **_ANY_PORT}
        with Client(scheduler, **here), parallel_config(backend="dask"):
            yield
    else:
        with parallel_config(backend=backend):
            yield


class _Clock:
    """Counts runs and estimates the time left from those of the same method, recipe and data set."""

    def __init__(self, waiting: Iterable[Run]) -> None:
        self.left = list(waiting)
        self.total = len(self.left)
        self.seconds: dict[tuple[str, str, str], list[float]] = {}
        self.spent = 0.0
        self.started = time.perf_counter()
        self.told: set[str] = set()

    def leave_out(self, run: Run) -> None:
        """Another process has done this run."""
        self.left.remove(run)
        self.total -= 1

    def tick(self, run: Run, seconds: float, failure: str | None) -> str:
        """A sentence on the run that has just ended."""
        self.left.remove(run)
        self.spent += seconds
        if failure is None:  # a run that failed says nothing about how long the others take
            self.seconds.setdefault(_kind(run), []).append(seconds)
        count = f"[{self.total - len(self.left)}/{self.total}]"
        how = f"{seconds:.1f} s"
        if failure is not None:  # missing data fail many runs: a reason is told once
            how = "failed as above" if failure in self.told else f"failed: {failure}"
            self.told.add(failure)
        return f"{count} {run}: {how}" + (f"; {self._time_left()} left" if self.left and self.seconds else "")

    def _time_left(self) -> str:
        known = {key: float(np.mean(values)) for key, values in self.seconds.items()}
        typical = float(np.mean(list(known.values())))
        ahead = sum(known.get(_kind(run), typical) for run in self.left)
        # Runs go side by side, and measuring and reading take time too: scale by what they took so far.
        pace = (time.perf_counter() - self.started) / max(self.spent, 1e-9)
        minutes = ahead * pace / 60
        return f"about {minutes:.0f} min" if minutes >= 1 else "less than a minute"


def _kind(run: Run) -> tuple[str, str, str]:
    """What runs of about the same length have in common."""
    return run.method, run.recipe, run.data_set
