"""A minute of the attacks of ``make fuzz``, always the same ones; and those that once succeeded, by name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not (ROOT / "fuzz").is_dir(),
    reason="the attacks need fork and limits on memory, and the repository",
)


@pytest.mark.parametrize("kind,cases", [("tables", 800), ("files", 400), ("dialects", 1600)])
def test_no_attack_succeeds(kind, cases):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    # --only takes the share of one kind: 200 tables, 240 files, 240 dialects.
    command = [sys.executable, "-m", "fuzz", "--only", kind, "--cases", str(cases), "--seed", "20"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 kinds of failure" in done.stdout
    reached, sorts = map(int, re.search(r"; (\d+) of (\d+) sorts", done.stdout).groups())
    assert reached == sorts, done.stdout


def test_several_processes_add_up_and_end_in_time():
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "fuzz", "--only", "dialects", "--workers", "2", "--seed", "1"]
    done = subprocess.run(
        [*command, "--cases", "80"], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert "dialects: 12 attacks, {'passed': 12}" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    done = subprocess.run(
        [*command, "--minutes", "0"], cwd=ROOT, capture_output=True, text=True, env=environment
    )
    assert "the time is up" in done.stdout, done.stdout + done.stderr
    assert "0 attacks in" in done.stdout


@pytest.mark.parametrize(
    "limit,target,reason",
    [
        ("_SECONDS", "while True: pass", "took more than 60 s of the processor"),
        ("_WALL_SECONDS", "import time; time.sleep(600)", "had not ended after 900 s"),
    ],
)
def test_an_attack_that_does_not_end_is_ended_and_is_a_failure(limit, target, reason):
    code = f"from fuzz import process; process.{limit} = 1; print(process.attack(lambda: exec({target!r})))"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    assert f"kind='failed', reason='{reason}'" in done.stdout
