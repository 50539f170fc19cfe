from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sparsevae.reproduction.results import COLUMNS, Results
from sparsevae.reproduction.spec import load_spec, load_specs

from .helpers import files_under, invoke, refusal


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The paper's example at smoke scale, made once; for reading only."""
    out = tmp_path_factory.mktemp("results")
    result = invoke("reproduce", "example", "--scale", "smoke", "--out", out)
    assert result.exit_code == 0, result.stderr
    return out, result


# The usual handler, also where the tests run in the background, which ignores Ctrl-C.
MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from sparsevae.cli import main; main()"
)


def command(out, *arguments):
    return [sys.executable, "-c", MAIN, "reproduce", *arguments, "--scale", "smoke", "--out", str(out)]


def test_all_results_are_listed_by_name_and_number():
    listed = invoke("reproduce", "--list")
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(load_specs())
    assert "table-1a" in listed.stdout
    assert invoke("reproduce").stdout == listed.stdout


def test_the_list_for_machines_counts_the_runs():
    listed = {entry["name"]: entry for entry in json.loads(invoke("reproduce", "--list", "--json").stdout)}
    assert listed["synthetic"]["in_paper"] == "figure-3"
    assert listed["zeisel"]["runs"]["paper"] == len(load_spec("zeisel").runs("paper"))


def test_a_result_leaves_rows_a_table_and_a_figure(example):
    out, result = example
    assert files_under(out / "example" / "smoke") == {"rows.csv", "table.md", "example.png", ".lock"}
    assert result.stdout.strip() == (out / "example" / "smoke" / "table.md").read_text().strip()
    with (out / "example" / "smoke" / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    spec = load_spec("example")
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == len(spec.runs("smoke")) * len(spec.metrics)
    assert {row["recipe"] for row in rows} == {"default", "paper", "authors"}


@pytest.mark.parametrize("name", ["movielens", "peerread", "shift", "topics", "zeisel", "nmf-topics"])
def test_every_result_on_real_data_can_be_made(name, real_data, tmp_path):
    """At smoke scale: every method, recipe and measure of it, on a few rows of the real tables."""
    for needed in ("ml-latest-small", "peerread_abstracts.jsonl.gz", "zeisel"):
        folder = real_data(needed).parent
    result = invoke("reproduce", name, "--scale", "smoke", "--out", tmp_path, "--data", folder)
    assert result.exit_code == 0, result.stderr
    spec = load_spec(name)
    n_runs = len(spec.runs("smoke"))
    assert f"{n_runs} of {n_runs} runs" in result.stdout
    measured = {row["metric"] for row in Results(tmp_path / name / "smoke").rows() if row["value"]}
    assert measured == set(spec.metrics)


def test_progress_goes_to_stderr_with_the_time_left(example):
    _, result = example
    assert "[1/6] Sparse VAE (default), 0.6, seed 0, split 0: " in result.stderr
    assert "left" in result.stderr
    assert "6 runs done, 0 were there." in result.stderr


def test_what_is_there_is_not_done_again(example):
    out, _ = example
    before = (out / "example" / "smoke" / "rows.csv").read_bytes()
    again = invoke("reproduce", "figure-2", "--scale", "smoke", "--out", out, "--json")
    assert again.exit_code == 0
    found = json.loads(again.stdout)
    assert found["runs"] == {"all": 6, "found": 6, "done": 0, "failed": {}}
    assert {entry["metric"] for entry in found["summary"]} >= {"dci", "support_f1"}
    assert (out / "example" / "smoke" / "rows.csv").read_bytes() == before


def test_tables_can_be_drawn_without_running(example, tmp_path):
    out, result = example
    drawn = invoke("reproduce", "example", "--scale", "smoke", "--out", out, "--draw")
    assert drawn.stdout == result.stdout
    nothing = invoke("reproduce", "example", "--scale", "smoke", "--out", tmp_path, "--draw")
    assert nothing.exit_code == 0
    assert "No rows yet" in nothing.stderr
    assert list(tmp_path.iterdir()) == []


def test_some_runs_can_be_chosen(tmp_path):
    result = invoke(
        *("reproduce", "example", "--scale", "smoke", "--out", tmp_path),
        *("--only", "method=VAE", "--only", "recipe=default,paper"),
    )
    assert result.exit_code == 0, result.stderr
    assert "2 runs done" in result.stderr
    assert "2 of 6 runs" in result.stdout


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("table-7",), "Expected the name of a result, one of example, synthetic"),
        (("example", "--only", "method"), "Expected --only as FIELD=VALUES"),
        (("example", "--only", "method=Oracle"), "Expected method to be among Sparse VAE, VAE; got Oracle"),
        (("example", "--scheduler", "tcp://nowhere:1"), "Expected backend 'dask' with a scheduler"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(arguments, words, tmp_path):
    assert words in refusal("reproduce", *arguments, "--scale", "smoke", "--out", tmp_path)


def test_missing_data_are_named_and_the_exit_code_says_so(tmp_path):
    result = invoke("reproduce", "nmf-topics", "--scale", "smoke", "--out", tmp_path, "--data", tmp_path)
    assert result.exit_code == 1
    assert "2 runs failed" in result.stderr
    assert "MovieLens" in result.stderr
    assert "Traceback" not in result.stderr
    assert "## Runs that failed" in result.stdout


def test_a_killed_run_continues_without_losing_or_doubling_rows(tmp_path):
    """The whole synthetic figure at smoke scale in a process of its own, killed in the middle."""
    folder = tmp_path / "synthetic" / "smoke"
    results = Results(folder)
    process = subprocess.Popen(
        command(tmp_path, "synthetic"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(results.finished()) < 3:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    process.wait()
    kept = results.rows()
    n_runs = len(load_spec("synthetic").runs("smoke"))
    assert 3 <= len(results.finished()) < n_runs

    done = subprocess.run(
        command(tmp_path, "synthetic", "--json"), capture_output=True, text=True, check=True
    )
    outcome = json.loads(done.stdout)["runs"]
    assert outcome["found"] >= 3
    assert outcome["found"] + outcome["done"] == n_runs
    rows = results.rows()
    assert rows[: len(kept)] == kept
    names = [(row["method"], row["recipe"], row["data_set"], row["metric"]) for row in rows]
    assert len(set(names)) == len(names) == n_runs * len(load_spec("synthetic").metrics)
    assert (folder / "synthetic.png").exists()


def test_ctrl_c_keeps_what_is_done_and_says_so(tmp_path):
    results = Results(tmp_path / "synthetic" / "smoke")
    process = subprocess.Popen(
        command(tmp_path, "synthetic"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while not results.finished():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert results.finished()
