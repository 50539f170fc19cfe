"""A disk may be full at any write: the old stays whole, and finished work is kept where there is room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="limits on the size of files are those of POSIX")

FILLING = Path(__file__).with_name("filling.py")
REFUSED = 3


def attempts(*arguments: object) -> list[dict]:
    command = [sys.executable, str(FILLING), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes; skipped where it may not be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("a small file system cannot be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def check(results: list[dict]) -> None:
    """Every attempt was refused with the old in its place, or went through with the new."""
    assert {(result["code"], result["found"]) for result in results} == {(REFUSED, "old"), (0, "new")}
    assert (results[0]["code"], results[-1]["code"]) == (REFUSED, 0)


@pytest.mark.parametrize("scenario", ["save", "report", "reproduce"])
def test_a_write_that_fails_leaves_the_old(tmp_path, scenario):
    check(attempts(scenario, tmp_path))


@pytest.mark.parametrize("scenario", ["fit", "stability", "transform"])
def test_a_full_disk_leaves_the_old(tmp_path, small_disk, scenario):
    (tmp_path / "folder").mkdir()
    results = attempts(scenario, tmp_path / "folder", small_disk)
    check(results)
    if scenario == "stability":  # nothing is reserved: what found no room at the end is kept elsewhere
        assert results[-1]["kept"] > 0


def test_a_full_disk_costs_neither_a_fit_nor_its_last_checkpoint(tmp_path, small_disk):
    (tmp_path / "folder").mkdir()
    results = attempts("checkpoint", tmp_path / "folder", small_disk)
    # Without any room the place is refused before the fit; with a little the fit goes on without checkpoints.
    assert {(result["code"], result["found"]) for result in results} == {
        (REFUSED, "old"),
        (0, "old"),
        (0, "new"),
    }
