"""What `make setup` installs is locked: each tested version, with the hashes of its files."""

from __future__ import annotations

import importlib.util
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


@pytest.mark.parametrize(
    "found,code,said",
    [
        ([{"name": "a", "skip_reason": "unknown"}], 0, "No audit: the lists know none of the 1 versions."),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b"}], 0, "Audited 1 of 2 versions: 0 with"),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}],
            1,
            "a 1: CVE-1, mended in 2",
        ),
    ],
)
def test_an_audit_says_what_it_did_not_see(capsys, found, code, said):
    path = ROOT / "tools" / "audit.py"
    spec = importlib.util.spec_from_file_location("audit", path)
    assert spec is not None
    assert spec.loader is not None
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)
    assert audit.report(found) == code
    output = capsys.readouterr()
    assert said in output.out + output.err
