from __future__ import annotations

import os

import joblib
import pytest
from joblib.parallel import ThreadingBackend

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.reproduction import runner
from sparsevae.reproduction.data import LoadedSource
from sparsevae.reproduction.results import FAILED, Results, read_value
from sparsevae.reproduction.runner import choose_runs, execute, run_spec

from .helpers import make_run, make_spec


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path)


def test_a_run_gives_a_row_per_metric_with_where_it_comes_from():
    run, rows = execute(make_run(), LoadedSource())
    assert [row["metric"] for row in rows] == ["mse", "dci"]
    for row in rows:
        assert row["settings"] == run.settings
        assert row["value"] > 0
        assert row["seconds"] > 0
        assert row["cpu_seconds"] >= 0
        assert "torch" in row["versions"]
    assert execute(make_run(), LoadedSource())[1][0]["value"] == rows[0]["value"]


@pytest.mark.parametrize(
    "changes, source, reason",
    [
        ({"parameters": {"n_factors": 0}}, LoadedSource(), "ParameterError: Expected n_factors"),
        ({"estimator": "NMF"}, LoadedSource(), "Negative values in data passed to NMF"),
        ({"source": "peerread"}, "Expected PeerRead in a folder", "Expected PeerRead in a folder"),
        ({"metrics": ("accuracy",)}, LoadedSource(), "ValueError: "),
    ],
)
def test_what_goes_wrong_becomes_a_row_with_the_reason(changes, source, reason):
    _, rows = execute(make_run(**changes), source)
    assert [row["metric"] for row in rows] == [FAILED]
    assert reason in rows[0]["note"]


def test_a_fit_that_has_not_settled_says_so():
    parameters = {"n_factors": 3, "max_epochs": 3, "n_init": 1, "hidden_sizes": [8, 8], "init": "rotation"}
    _, rows = execute(
        make_run(estimator="SparseVAE", parameters=parameters, metrics=("mse",)), LoadedSource()
    )
    assert "still changing" in rows[0]["note"]


def test_every_run_leaves_its_rows_and_none_is_done_twice(results):
    told = []
    outcome = run_spec(make_spec(), "paper", results, progress=told.append)
    assert (outcome.n_runs, outcome.n_found, outcome.n_done, outcome.failures) == (6, 0, 6, {})
    assert len(results.finished()) == 6
    assert len(results.rows()) == 18
    before = results.path.read_bytes()
    again = run_spec(make_spec(), "paper", results, progress=told.append)
    assert (again.n_found, again.n_done) == (6, 0)
    assert results.path.read_bytes() == before
    assert told[0].startswith("[1/6] PCA, 0.0, seed 0, split 0: ")
    assert "left" in told[0]
    assert "left" not in told[-1]


def test_other_settings_are_run_again(results):
    run_spec(make_spec(), "paper", results)
    outcome = run_spec(make_spec(settings={"n_factors": 3}), "paper", results)
    assert (outcome.n_found, outcome.n_done) == (0, 6)
    assert len(results.finished()) == 6


def test_a_metric_that_was_not_measured_yet_has_runs_done_again(results):
    run_spec(make_spec(metrics=["mse"], figure_metrics=["mse"]), "paper", results)
    outcome = run_spec(make_spec(metrics=["mse", "dci"], figure_metrics=["mse"]), "paper", results)
    assert (outcome.n_found, outcome.n_done) == (0, 6)
    assert len(results.rows()) == 12


def test_runs_that_another_result_has_done_again_are_taken_again(results, tmp_path):
    other = Results(tmp_path / "other")
    pca = make_spec(methods=[{"name": "PCA", "estimator": "PCA"}], claims=[])
    run_spec(pca, "paper", other)
    run_spec(pca, "paper", results, shared=other)
    changed = [{**row, "value": "0.5"} for row in other.rows() if row["data_set"] == "0.4"]
    other.add(changed, replace=True)
    run_spec(pca, "paper", results, shared=other)
    assert {row["value"] for row in results.rows() if row["data_set"] == "0.4"} == {"0.5"}
    assert len(results.rows()) == 9


def test_runs_that_another_result_has_done_are_taken_from_there(results, tmp_path):
    other = Results(tmp_path / "other")
    pca = {"name": "PCA", "estimator": "PCA"}
    run_spec(make_spec(), "paper", other)
    fewer = {"metrics": ["mse"], "figure_metrics": ["mse"], "claims": []}
    outcome = run_spec(make_spec(methods=[pca], **fewer), "paper", results, shared=other)
    assert (outcome.n_found, outcome.n_done) == (3, 0)
    assert {row["metric"] for row in results.rows()} == {"mse"}
    more = make_spec(methods=[pca], metrics=["mse", "mse_mean"], figure_metrics=[], claims=[])
    outcome = run_spec(more, "paper", Results(tmp_path / "more"), shared=other)
    assert (outcome.n_found, outcome.n_done) == (0, 3)  # a metric that was not measured there
    changed = make_spec(methods=[pca], settings={"n_factors": 3}, **fewer)
    outcome = run_spec(changed, "paper", Results(tmp_path / "changed"), shared=other)
    assert (outcome.n_found, outcome.n_done) == (0, 3)


def test_a_failed_run_does_not_stop_the_rest_and_is_tried_again(results):
    broken = {"name": "NMF", "estimator": "NMF"}
    spec = make_spec(methods=[broken, {"name": "PCA", "estimator": "PCA"}], claims=[])
    for _ in range(2):
        outcome = run_spec(spec, "paper", results)
        assert len(outcome.failures) == 3
        assert "Negative values" in outcome.failures["NMF, 0.0, seed 0, split 0"]
        assert len(results.finished()) == 3
        assert len(results.rows()) == 3 + 3 * 3


def test_data_that_cannot_be_had_are_a_reason_not_an_end(results, tmp_path):
    data_sets = [{"name": "0.0", "source": "synthetic"}, {"name": "0.4", "source": "zeisel"}]
    methods = [{"name": "PCA", "estimator": "PCA"}]
    spec = make_spec(data_sets=data_sets, methods=methods, claims=[])
    outcome = run_spec(spec, "paper", results, data=tmp_path)
    assert outcome.n_done == 1
    assert "Zeisel" in outcome.failures["PCA, 0.4, seed 0, split 0"]


def test_some_runs_can_be_chosen_and_done_again(results):
    spec = make_spec()
    outcome = run_spec(spec, "paper", results, only={"method": ["PCA"], "data_set": ["0.0", "0.8"]})
    assert (outcome.n_runs, outcome.n_done) == (2, 2)
    run_spec(spec, "paper", results)
    outcome = run_spec(spec, "paper", results, only={"data_set": ["0.4"]}, redo=True)
    assert (outcome.n_found, outcome.n_done) == (0, 2)
    assert len(results.rows()) == 18


def test_other_data_take_the_place_of_the_old_only_where_all_runs_are_done_again(results, monkeypatch):
    spec = make_spec()

    def run_on(release, **options):
        monkeypatch.setattr(runner, "load_source", lambda *_: LoadedSource(description=f"release {release}"))
        return run_spec(spec, "paper", results, redo=True, **options)

    run_on("A")
    with pytest.raises(DataError, match="got other data"):
        run_on("B", only={"data_set": ["0.4"]})
    assert results.about() == {"synthetic": "release A"}
    with pytest.raises(KeyboardInterrupt):
        run_on("B", progress=_interrupt)  # whoever draws the table now finds one run, of the new data
    assert results.about() == {"synthetic": "release B"}
    assert len(results.finished()) == 1
    assert run_spec(spec, "paper", results).n_done == 5
    assert results.about() == {"synthetic": "release B"}


def _interrupt(_):
    raise KeyboardInterrupt


def test_an_interrupted_redo_keeps_the_rows_that_were_there(results):
    spec = make_spec()
    run_spec(spec, "paper", results)
    with pytest.raises(KeyboardInterrupt):
        run_spec(spec, "paper", results, redo=True, progress=_interrupt)
    assert len(results.finished()) == 6
    assert len(results.rows()) == 18
    assert run_spec(spec, "paper", results).n_found == 6


def test_runs_of_another_result_are_done_again_there(results, tmp_path):
    other, spec = Results(tmp_path / "other"), make_spec(shares_with="other")
    run_spec(spec, "paper", other, only={"method": ["PCA"]})
    told = []
    outcome = run_spec(spec, "paper", results, shared=other, redo=True, progress=told.append)
    assert (outcome.n_found, outcome.n_done) == (3, 3)
    assert told[0] == "3 runs are those of other: there they can be done again."
    before = results.rows()
    run_spec(spec, "paper", results, shared=other)
    assert results.rows() == before


def test_the_time_left_is_that_of_runs_like_those_ahead(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(runner.time, "perf_counter", lambda: now[0])
    methods = [{"name": name, "estimator": "PCA"} for name in ("slow", "quick")]
    runs = make_spec(methods=methods, n_seeds=2, claims=[]).runs("paper")
    clock = runner._Clock(runs)

    def tick(run, seconds, failure=None):
        now[0] += seconds
        return clock.tick(run, seconds, failure)

    def take(method, data_set):
        return next(run for run in clock.left if (run.method, run.data_set) == (method, data_set))

    failed = tick(take("slow", "0.0"), 5.0, "a worker process ended")
    assert failed == "[1/12] slow, 0.0, seed 0, split 0: failed: a worker process ended"  # it tells nothing
    tick(take("slow", "0.0"), 600.0)
    tick(take("slow", "0.4"), 60.0)
    tick(take("slow", "0.8"), 60.0)
    for data_set in ("0.0", "0.4"):
        tick(take("quick", data_set), 30.0)
    said = tick(take("quick", "0.8"), 30.0)  # two slow ones of a minute are left, and three of half a minute
    assert said.endswith("; about 4 min left")


def test_a_choice_of_what_there_is_not_is_refused():
    runs = make_spec().runs("paper")
    with pytest.raises(ParameterError, match="a field among method, recipe"):
        choose_runs(runs, {"colour": ["red"]})
    with pytest.raises(ParameterError, match=r"among 0\.0, 0\.4, 0\.8; got 0\.5"):
        choose_runs(runs, {"data_set": ["0.5"]})


def test_several_processes_find_what_one_finds(results, tmp_path):
    run_spec(make_spec(), "paper", results)
    several = Results(tmp_path / "several")
    outcome = run_spec(make_spec(), "paper", several, jobs=2)
    assert outcome.n_done == 6
    assert _values(several) == pytest.approx(_values(results))


def test_a_backend_around_the_call_is_used(results):
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run_spec(make_spec(), "paper", results, jobs=None).n_done == 6


class AllAtOnce(ThreadingBackend):
    """A backend like Ray's, which gives results when all of them are there."""

    supports_return_generator = False


def test_a_backend_that_gives_all_results_at_once_keeps_rows_all_the_same(results):
    joblib.register_parallel_backend("all at once", AllAtOnce)
    rows = []
    with joblib.parallel_config(backend="all at once", n_jobs=2):
        outcome = run_spec(
            make_spec(), "paper", results, jobs=None, progress=lambda _: rows.append(len(results.rows()))
        )
    assert outcome.n_done == 6
    assert rows == [3, 6, 9, 12, 15, 18]


class Bomb:
    """What ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_worker_that_dies_is_a_reason_not_an_end(results, monkeypatch):
    class Sources(dict):
        n_asked = 0

        def __getitem__(self, key):
            self.n_asked += 1
            return Bomb() if self.n_asked == 2 else super().__getitem__(key)

    load = runner._load_sources
    monkeypatch.setattr(runner, "_load_sources", lambda *arguments: Sources(load(*arguments)))
    outcome = run_spec(make_spec(), "paper", results, jobs=2)
    assert 1 <= len(outcome.failures) <= 2  # the run that did it, and the one beside it
    assert all("a worker process ended" in reason for reason in outcome.failures.values())
    assert outcome.n_done == 6 - len(outcome.failures)
    monkeypatch.undo()
    assert run_spec(make_spec(), "paper", results).n_done == len(outcome.failures)
    assert len(results.rows()) == 18


def test_a_scheduler_needs_its_backend(results):
    with pytest.raises(ParameterError, match="backend 'dask' with a scheduler"):
        run_spec(make_spec(), "paper", results, scheduler="tcp://nowhere:1")


def test_runs_that_another_process_has_finished_meanwhile_are_left_out(results):
    """The second of two calls looks again before each run."""
    seen = []

    def meanwhile(sentence):
        seen.append(sentence)
        if len(seen) == 1:
            run_spec(make_spec(), "paper", results)

    outcome = run_spec(make_spec(), "paper", results, progress=meanwhile)
    assert outcome.n_done == len(seen) == 1
    assert outcome.n_found == 5
    assert len(results.rows()) == 18


def _values(results):
    return {
        (row["method"], row["data_set"], row["metric"]): read_value(row["value"])
        for row in results.rows()
        if row["value"]
    }
