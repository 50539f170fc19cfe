"""Fits that are killed or stopped in real processes, and resumed: the run is the same to the last bit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from sparsevae.persistence import last_checkpoint

from .helpers import files_under, invoke, refusal

if os.name == "nt":
    pytest.skip("this system has no SIGKILL", allow_module_level=True)

MAIN = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from sparsevae.cli import main; main()"
)
SETTINGS = "n_init = 2\nmax_epochs = 60\nn_factors = 3\ngain_kept = 1.0\nhidden_sizes = [8]\n"
SAME = (
    "model/model.safetensors",
    "factors.csv",
    "loadings.csv",
    "effects.csv",
    "history.csv",
    "evidence.json",
)
PATIENCE = 120.0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, frame):
    """A folder with a table, settings whose fit has every stage, and its run; for reading only."""
    folder = tmp_path_factory.mktemp("resume")
    frame.to_csv(folder / "table.csv")
    (folder / "settings.toml").write_text(SETTINGS)
    result = invoke(*command(folder, folder / "run"))
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["run", "settings.toml", "table.csv"]
    return folder


def command(folder, run, *options):
    table, settings = folder / "table.csv", folder / "settings.toml"
    return ["fit", table, "--out", run, "--config", settings, *options]


@contextmanager
def fitting(folder, run, *options):
    """A fit in a process of its own, with a checkpoint after each epoch."""
    arguments = [str(a) for a in command(folder, run, "--checkpoint-every", "0", *options)]
    with subprocess.Popen([sys.executable, "-c", MAIN, *arguments], stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(run, number):
    """Wait until a checkpoint of this number or a later one is there."""
    until = time.monotonic() + PATIENCE
    while True:
        last = last_checkpoint(run.with_name("run.checkpoint"))
        if last is not None and int(last.name.split("-")[1]) >= number:
            return
        assert time.monotonic() < until
        time.sleep(0.001)


def assert_same_run(run, expected):
    assert files_under(run) == files_under(expected)
    for name in SAME:
        assert (run / name).read_bytes() == (expected / name).read_bytes(), name
    assert json.loads((run / "run.json").read_text())["interrupted"] is False
    assert [path.name for path in run.parent.iterdir()] == [run.name]


@pytest.fixture(scope="module")
def left_by_a_kill(undisturbed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    with fitting(undisturbed, folder / "run") as process:
        wait_for(folder / "run", 5)
        process.kill()
    return folder


@pytest.fixture
def killed(left_by_a_kill, tmp_path):
    """The place of a run whose fit was killed after a few epochs."""
    shutil.copytree(left_by_a_kill, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def test_a_fit_that_is_killed_again_and_again_is_resumed_to_the_last_bit(undisturbed, tmp_path):
    run = tmp_path / "run"
    for number in (4, 40, 75):
        with fitting(undisturbed, run, "--resume") as process:
            wait_for(run, number)
            process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL
        assert not run.exists()
    result = invoke(*command(undisturbed, run, "--resume"))
    assert result.exit_code == 0, result.stderr
    assert f"Going on from {run}.checkpoint: fitting up to 3 factors" in result.stderr
    assert_same_run(run, undisturbed / "run")


def test_an_unfinished_run_is_refused_without_resume_and_given_up_by_force(killed, undisturbed):
    message = refusal(*command(undisturbed, killed))
    assert message.endswith("Add --resume to go on with it, or --force to begin anew.")
    assert last_checkpoint(killed.with_name("run.checkpoint")) is not None
    refusal("fit", undisturbed / "missing.csv", "--out", killed, "--force")
    assert last_checkpoint(killed.with_name("run.checkpoint")) is not None  # a slip does not cost the fit
    result = invoke(*command(undisturbed, killed, "--force"))
    assert result.exit_code == 0, result.stderr
    assert "Going on" not in result.stderr
    assert_same_run(killed, undisturbed / "run")


@pytest.mark.parametrize(
    "options, words",
    [(["--seed", "1"], "one with random_state=0, not 1"), (["-k", "2"], "one with n_factors=3, not 2")],
)
def test_other_settings_are_refused(killed, undisturbed, options, words):
    assert words in refusal(*command(undisturbed, killed, "--resume", *options))
    assert not killed.exists()


def test_another_table_is_refused(killed, undisturbed, tmp_path, frame):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(undisturbed / "settings.toml", other)
    (frame + np.eye(*frame.shape)).to_csv(other / "table.csv")
    assert "one of another table" in refusal(*command(other, killed, "--resume"))


def test_a_damaged_checkpoint_falls_back_to_the_one_before(killed, undisturbed):
    last = last_checkpoint(killed.with_name("run.checkpoint"))
    (last / "checkpoint.safetensors").write_bytes(b"rubbish")
    result = invoke(*command(undisturbed, killed, "--resume"))
    assert result.exit_code == 0, result.stderr
    assert f"Note: The checkpoint {last} is damaged and is not used." in result.stderr
    assert_same_run(killed, undisturbed / "run")


def test_with_nothing_to_resume_the_fit_begins_anew(undisturbed, tmp_path):
    result = invoke(*command(undisturbed, tmp_path / "run", "--resume"))
    assert result.exit_code == 0, result.stderr
    assert "There is nothing to resume: fitting up to 3 factors" in result.stderr
    assert_same_run(tmp_path / "run", undisturbed / "run")


def test_of_a_finished_run_it_is_said(undisturbed):
    before = (undisturbed / "run" / "run.json").stat().st_mtime_ns
    result = invoke(*command(undisturbed, undisturbed / "run", "--resume", "--json"))
    assert result.exit_code == 0, result.stderr
    assert result.stderr == f"{undisturbed / 'run'} is finished: there is nothing to resume.\n"
    assert json.loads(result.stdout)["interrupted"] is False
    assert (undisturbed / "run" / "run.json").stat().st_mtime_ns == before


def test_a_finished_run_of_another_table_or_seed_is_not_taken_for_this_one(undisturbed, frame, tmp_path):
    shutil.copy(undisturbed / "settings.toml", tmp_path)
    frame.iloc[:-1].to_csv(tmp_path / "table.csv")
    finished = undisturbed / "run"
    assert "finished one of another table, table.csv. " in refusal(*command(tmp_path, finished, "--resume"))
    (tmp_path / "table.csv").rename(tmp_path / "new.csv")
    words = refusal("fit", str(tmp_path / "new.csv"), "--out", str(finished), "--resume")
    assert "finished one of another table, table.csv. " in words
    words = refusal(*command(undisturbed, finished, "--resume", "--seed", "77"))
    assert "random_state=" in words
    assert "not 77. " in words


def test_what_was_left_beside_a_finished_run_is_removed(killed, undisturbed, tmp_path):
    run = tmp_path / "again" / "run"
    shutil.copytree(undisturbed / "run", run)
    shutil.copytree(killed.with_name("run.checkpoint"), run.with_name("run.checkpoint"))
    (run / "run.json").touch()  # complete after the last checkpoint: only the removal was cut off
    result = invoke(*command(undisturbed, run, "--resume"))
    assert (result.exit_code, "is finished" in result.stderr) == (0, True)
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_the_replacement_of_a_run_is_resumed_and_the_old_one_stays_until_then(undisturbed, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(undisturbed / "run", run)
    (run / "factors.csv").write_text("old")
    with fitting(undisturbed, run, "--force") as process:
        wait_for(run, 5)
        process.kill()
    assert (run / "factors.csv").read_text() == "old"
    assert "--resume" in refusal(*command(undisturbed, run))
    assert invoke(*command(undisturbed, run, "--resume")).exit_code == 0
    assert_same_run(run, undisturbed / "run")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_fit_that_is_stopped_leaves_its_best_model_and_is_resumed(undisturbed, tmp_path, number):
    run = tmp_path / "run"
    with fitting(undisturbed, run) as process:
        wait_for(run, 5)
        process.send_signal(number)
        said = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 128 + number, said
    assert "Stopping: the best model so far will be written." in said
    assert "The same command with --resume goes on where the fit was stopped." in said
    assert json.loads((run / "run.json").read_text())["interrupted"] is True
    assert len(pd.read_csv(run / "factors.csv")) == 40
    assert "--resume" in refusal(*command(undisturbed, run))
    assert invoke(*command(undisturbed, run, "--resume")).exit_code == 0
    assert_same_run(run, undisturbed / "run")


def test_a_second_fit_to_the_place_of_a_living_one_is_told_so(undisturbed, tmp_path):
    run = tmp_path / "run"
    with fitting(undisturbed, run):
        wait_for(run, 1)
        for options in ([], ["--resume"], ["--force"]):
            assert "another process" in refusal(*command(undisturbed, run, *options))


def test_what_is_no_duration_is_refused(undisturbed, tmp_path):
    message = refusal(*command(undisturbed, tmp_path / "run", "--checkpoint-every", "often"))
    assert message.startswith("Error: Expected --checkpoint-every to be a duration such as 30s, 5m or 1h30m")
    assert not list(tmp_path.iterdir())


def test_a_fit_that_diverges_leaves_nothing_to_resume(undisturbed, tmp_path):
    (tmp_path / "table.csv").write_bytes((undisturbed / "table.csv").read_bytes())
    (tmp_path / "settings.toml").write_text(SETTINGS + "learning_rate = 1e30\n")
    refusal(*command(tmp_path, tmp_path / "run"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["settings.toml", "table.csv"]
