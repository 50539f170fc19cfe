"""``sparsevae fit --processes``: real processes, some of which are killed or hang."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found through /proc")

COMMAND = [sys.executable, "-m", "sparsevae", "fit"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4)) @ np.kron(np.eye(4), np.ones(10)) + rng.normal(size=(2000, 40))
    path = tmp_path_factory.mktemp("table") / "table.npy"
    np.save(path, X.astype(np.float32))
    return path


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*arguments):
    command = [*COMMAND, *map(str, arguments)]
    return subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )


def children(pid: int) -> dict[str, int]:
    """Processes of a launcher by their rank."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        variables = Path(f"/proc/{child}/environ").read_text().split("\0")
        found[next(v for v in variables if v.startswith("RANK=")).removeprefix("RANK=")] = int(child)
    return found


def disturb(table, out, rank, number):
    """Start a long fit in two processes, and send one of them a signal once there is a checkpoint."""
    options = ["--max-epochs", "300", "--checkpoint-every", "0.2s", "--process-timeout", "4s"]
    command = [*COMMAND, str(table), "-o", str(out), "--processes", "2", *options]
    place = out.with_name(f"{out.name}.checkpoint")
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 60
            while not list(place.glob("checkpoint-*")):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.kill(children(process.pid)[rank], number)
            said = process.communicate(timeout=60)[1]  # a fit that goes on hanging fails here
        finally:
            process.kill()
    return process.returncode, said, place


@pytest.mark.slow
def test_two_processes_write_the_run_of_one(table, tmp_path):
    one = run(table, "-o", tmp_path / "one", "--max-epochs", "20")
    two = run(table, "-o", tmp_path / "two", "--max-epochs", "20", "--processes", "2", "--json")
    assert (one.returncode, two.returncode) == (0, 0), two.stderr
    assert two.stderr.count("Fitting") == 1  # one process alone speaks
    assert json.loads(two.stdout)["run"] == str(tmp_path / "two")
    first, second = (pd.read_csv(tmp_path / name / "loadings.csv", index_col=0) for name in ("one", "two"))
    np.testing.assert_array_equal(second != 0, first != 0)
    np.testing.assert_allclose(second, first, atol=1e-2 * np.abs(first.to_numpy()).max())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    again = run(table, "-o", tmp_path / "two", "--max-epochs", "20", "--processes", "2", "--resume")
    assert again.returncode == 0, again.stderr
    assert "is finished" in again.stderr


@pytest.mark.slow
def test_a_killed_process_ends_the_fit_with_a_checkpoint(table, tmp_path):
    code, said, place = disturb(table, tmp_path / "run", "1", signal.SIGKILL)
    assert code == 1
    assert "Process 1 of 2 was ended by SIGKILL" in said
    assert said.count("Error:") == 1
    assert "--resume" in said
    assert list(place.glob("checkpoint-*"))
    resumed = run(table, "-o", tmp_path / "run", "--resume", "--max-epochs", "300", "--processes", "2")
    assert resumed.returncode == 0, resumed.stderr
    assert "Going on from" in resumed.stderr


@pytest.mark.slow
def test_a_process_that_hangs_is_given_up(table, tmp_path):
    code, said, place = disturb(table, tmp_path / "run", "1", signal.SIGSTOP)
    assert code == 1
    assert "one that does not answer" in said
    assert "Process 1 of 2 did not answer and was ended" in said
    assert list(place.glob("checkpoint-*"))


@pytest.mark.slow
def test_the_process_that_writes_is_missed(table, tmp_path):
    code, said, place = disturb(table, tmp_path / "run", "0", signal.SIGKILL)
    assert code == 128 + signal.SIGKILL
    assert "Process 0 of 2 was ended by SIGKILL" in said
    assert "--resume" in said
    assert list(place.glob("checkpoint-*"))


@pytest.mark.slow
def test_what_one_process_refuses_is_said_once(tmp_path):
    said = run(tmp_path / "absent.csv", "-o", tmp_path / "run", "--processes", "2")
    assert said.returncode == 1
    assert said.stderr.count("Error:") == 1
    assert "absent.csv" in said.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_process_that_cannot_reach_the_others_says_so_in_one_sentence(table, tmp_path, rank):
    with socket.socket() as taken:  # a port that nobody listens at
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
    alone = {"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [*COMMAND, str(table), "-o", str(tmp_path / "run"), "--process-timeout", "2s"]
    done = subprocess.run(
        command, env={**environment(), **alone}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"Error: Expected 2 processes to meet at 127.0.0.1:{port} within 2 s")
    assert "Look for a missing one" in done.stderr
    assert not list(tmp_path.iterdir())
