from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest

from sparsevae.exceptions import DataError
from sparsevae.reproduction.results import COLUMNS, FAILED, Results, read_value


def rows_of(method="VAE", seed=0, values=(("mse", 1.5), ("dci", None)), settings="abc", **more):
    common = {"result": "r", "scale": "smoke", "method": method, "recipe": "paper", "data_set": "A"}
    common |= {"seed": seed, "split": 0, "settings": settings, "seconds": 0.1, **more}
    return [{**common, "metric": metric, "value": value} for metric, value in values]


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "out")


def test_a_folder_without_rows_is_empty_and_stays_so(results):
    assert results.rows() == []
    assert results.finished() == {}
    assert list(results.frame().columns) == list(COLUMNS)
    assert not results.folder.exists()


def test_values_come_back_as_they_went_in(results):
    nested = [["Alien", "Aliens; 2, 3"], [0.5]]
    values = (("a", 1 / 3), ("b", 7), ("c", None), ("d", float("nan")), ("e", nested))
    results.add(rows_of(values=values))
    back = {row["metric"]: read_value(row["value"]) for row in results.rows()}
    assert back == {"a": 1 / 3, "b": 7, "c": None, "d": None, "e": nested}


def test_rows_of_version_0_1_are_read(results):
    """There the column `recipe` was called `reading`."""
    results.add(rows_of())
    rows = results.rows()
    text = results.path.read_text("utf-8")
    results.path.write_text(text.replace(",recipe,", ",reading,", 1), "utf-8")
    assert Results(results.folder).rows() == rows


def test_a_run_is_there_once_however_often_it_ends(results):
    assert results.add(rows_of())
    before = results.path.read_bytes()
    assert not results.add(rows_of(values=(("mse", 9.0),)))
    assert results.path.read_bytes() == before


def test_a_run_with_one_more_metric_takes_the_place_of_the_one_without(results):
    results.add(rows_of())
    assert results.add(rows_of(values=(("mse", 2.0), ("dci", 0.5), ("nll", 3.0))))
    assert [(row["metric"], row["value"]) for row in results.rows()] == [
        *(("mse", "2.0"), ("dci", "0.5"), ("nll", "3.0"))
    ]


def test_a_thread_that_reads_slowly_does_not_bring_old_rows_back(results, monkeypatch):
    """joblib's thread asks what is finished while the main one adds; it may have begun to read before."""
    results.add(rows_of())
    old = results._snapshot()
    Results(results.folder).add(rows_of(seed=1))
    # Whatever is stored, the other thread's old rows are in its place a moment later.
    monkeypatch.setattr(Results, "__setattr__", lambda self, name, _: object.__setattr__(self, name, old))
    results.add(rows_of(seed=2))
    monkeypatch.undo()
    assert [row["seed"] for row in Results(results.folder).rows() if row["metric"] == "mse"] == [
        "0",
        "1",
        "2",
    ]


def test_what_another_process_has_written_is_seen_at_once(results):
    other = Results(results.folder)
    results.add(rows_of())
    assert other.rows() == results.rows()
    other.add(rows_of(seed=1))
    results.rows().clear()  # a list of the caller's own
    assert len(results.finished()) == 2
    results.path.unlink()
    assert other.rows() == results.rows() == []


def test_another_seed_is_another_run(results):
    results.add(rows_of())
    results.add(rows_of(seed=1))
    assert len(results.finished()) == 2
    assert len(results.rows()) == 4


def test_rows_of_other_settings_make_way(results):
    results.add(rows_of(settings="old"))
    assert results.add(rows_of(settings="new"))
    assert list(results.finished().values()) == [("new", {"mse", "dci"})]
    assert len(results.rows()) == 2


def test_a_failure_is_kept_and_makes_way_for_a_success(results):
    results.add(rows_of(values=((FAILED, None),), note="ValueError: what\n  a pity"))
    assert results.finished() == {}
    assert results.rows()[0]["note"] == "ValueError: what a pity"
    assert results.add(rows_of(values=((FAILED, None),), note="ValueError: again"))
    assert [row["note"] for row in results.rows()] == ["ValueError: again"]
    results.add(rows_of())
    assert [row["metric"] for row in results.rows()] == ["mse", "dci"]


def test_a_failure_does_not_replace_a_success(results):
    results.add(rows_of())
    assert not results.add(rows_of(values=((FAILED, None),)))
    assert len(results.finished()) == 1


def test_a_failure_stands_beside_a_success_of_other_settings_until_the_next_success(results):
    results.add(rows_of(settings="old"))
    for _ in range(2):
        assert results.add(rows_of(values=((FAILED, None),), settings="new"))
        assert [(row["metric"], row["settings"]) for row in results.rows()] == [
            *(("mse", "old"), ("dci", "old"), (FAILED, "new"))
        ]
    results.add(rows_of(settings="new"))
    assert [(row["metric"], row["settings"]) for row in results.rows()] == [("mse", "new"), ("dci", "new")]


def test_a_run_that_is_done_again_takes_the_place_of_the_first_unless_it_fails(results):
    results.add(rows_of())
    results.add(rows_of(seed=1))
    assert results.add(rows_of(values=(("mse", 9.0),)), replace=True)
    assert [(row["seed"], row["value"]) for row in results.rows()] == [("1", "1.5"), ("1", ""), ("0", "9.0")]
    assert not results.add(rows_of(values=((FAILED, None),)), replace=True)
    assert len(results.finished()) == 2


@pytest.mark.parametrize("text", ["a,b\n1,2\n", ",".join(COLUMNS) + "\nr,smoke,VAE\n", "\x00"])
def test_a_damaged_file_is_refused_and_left_alone(results, text):
    results.folder.mkdir()
    results.path.write_text(text)
    with pytest.raises(DataError, match=r"rows\.csv; got a file that is damaged"):
        results.add(rows_of())
    assert results.path.read_text() == text


def test_a_write_that_breaks_off_leaves_the_rows_as_they_were(results, monkeypatch):
    results.add(rows_of())
    before = results.path.read_bytes()

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(OSError, match="No space"):
        results.add(rows_of(seed=1))
    assert results.path.read_bytes() == before
    assert {path.name for path in results.folder.iterdir()} == {"rows.csv", ".lock"}


def test_what_a_killed_writer_left_is_cleared_away(results):
    results.add(rows_of())
    (results.folder / ".rows.1.partial.csv").write_text("result,sca")
    results.add(rows_of(seed=1))
    assert {path.name for path in results.folder.iterdir()} == {"rows.csv", ".lock"}
    assert len(results.finished()) == 2


def _write_runs(folder, first, count):
    results = Results(folder)
    for seed in range(first, first + count):
        results.add(rows_of(seed=seed, values=(("mse", float(seed)), ("dci", 0.5))))


def test_processes_that_share_a_folder_lose_nothing_and_double_nothing(tmp_path):
    context = multiprocessing.get_context("spawn")
    starts = (0, 15)  # they overlap
    workers = [context.Process(target=_write_runs, args=(tmp_path, first, 20)) for first in starts]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    results = Results(tmp_path)
    assert {int(key[3]) for key in results.finished()} == set(range(35))
    assert len(results.rows()) == 70


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is of POSIX")
def test_a_writer_may_be_killed_at_any_moment(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = Results(tmp_path)
    for attempt in range(2):
        worker = context.Process(target=_write_runs, args=(tmp_path, 1000 * attempt, 1000))
        worker.start()
        while len(results.rows()) < 40 * (attempt + 1):
            time.sleep(0.01)
            assert worker.is_alive()
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        rows = results.rows()  # whole, whatever moment it was
        assert len(rows) == 2 * len(results.finished())
    _write_runs(tmp_path, 0, 30)  # the lock has gone with its holder


def test_descriptions_of_data_are_kept_beside_each_other(results):
    assert results.about() == {}
    results.describe({"zeisel": "3005 cells"})
    results.describe({"peerread": "abstracts"})
    results.describe({})
    assert results.about() == {"zeisel": "3005 cells", "peerread": "abstracts"}


def test_rows_of_two_different_data_are_not_mixed(results):
    results.describe({"movielens": "1M"})
    results.describe({"movielens": "25M"})  # no rows yet: nothing to mix
    results.add(rows_of())
    with pytest.raises(DataError, match="Expected movielens as described in"):
        results.describe({"movielens": "1M", "peerread": "abstracts"})
    assert results.about() == {"movielens": "25M"}
    results.add(rows_of(seed=1))
    ((first, _),) = [item for item in results.finished().items() if item[0][3] == "0"]
    results.describe({"movielens": "1M"}, replaced_runs={"movielens": {first}})
    assert results.about() == {"movielens": "1M"}
    assert {row["seed"] for row in results.rows()} == {"1"}  # no row of other data is left under the new name
    results.describe({"movielens": "1M"}, replaced_runs={"movielens": set(results.finished())})
    assert len(results.finished()) == 1  # the same data: nothing has to go
