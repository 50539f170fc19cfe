"""What `make setup` installs is locked: each tested version, with the hashes of its files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"

pytestmark = pytest.mark.skipif(not LOCK.exists(), reason="the repository is not here: an installed package")


def test_the_lock_has_the_versions_of_the_constraints():
    pinned = re.findall(
        r"^([\w.-]+==\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), flags=re.MULTILINE
    )
    locked = re.findall(r"^([\w.-]+==\S+) \\$", LOCK.read_text("utf-8"), flags=re.MULTILINE)
    assert locked == pinned


def test_every_version_has_a_hash():
    entries = re.split(r"\n(?=[\w.-]+==)", LOCK.read_text("utf-8"))[1:]
    for entry in entries:
        assert re.fullmatch(r"[\w.-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n?", entry), entry[:80]


def test_the_build_backend_is_the_locked_one():
    (backend,) = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    assert f"\n{backend} \\\n" in LOCK.read_text("utf-8")


def test_no_host_is_named():
    assert "://" not in LOCK.read_text("utf-8")
