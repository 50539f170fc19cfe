"""A process may be killed at any moment: each name then holds the whole old or the whole new."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="crashes are tried in forked processes")

CRASHING = Path(__file__).with_name("crashing.py")
# How many points each scenario has at least: a hook that sees nothing would find nothing.
POINTS = {
    "fit": 30,
    "save": 10,
    "report": 15,
    "stability": 10,
    "reproduce": 4,
    "checkpoint": 10,
    "transform": 2,
    "name": 20,
    "drift": 6,
}
PAIRS = [
    (name, way)
    for name in POINTS
    for way in ("exchange", "renames")
    if way == "exchange" or name in ("fit", "save")
]


@pytest.mark.parametrize("scenario,way", PAIRS)
def test_a_crash_at_any_point_leaves_the_old_or_the_new(tmp_path, scenario, way):
    command = [sys.executable, str(CRASHING), scenario, way, str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    points = [json.loads(line) for line in done.stdout.splitlines()]
    assert {point["found"] for point in points} == {"old", "new"}, done.stdout
    assert [point["crashed"] for point in points] == [True] * (len(points) - 1) + [False]
    assert len(points) > POINTS[scenario]
    assert (points[0]["found"], points[-1]["found"]) == ("old", "new")
