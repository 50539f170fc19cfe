from __future__ import annotations

import shutil
import subprocess

import pytest

import sparsevae
from sparsevae.reproduction import provenance as module
from sparsevae.reproduction.provenance import find_provenance


def test_a_number_knows_the_versions_behind_it():
    known = find_provenance()
    assert f"sparsevae {sparsevae.__version__}" in known["versions"]
    for name in ("python ", "torch ", "numpy ", "scikit-learn "):
        assert name in known["versions"]
    assert "core" in known["machine"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_the_commit_is_that_of_the_package_and_of_nothing_around_it(tmp_path):
    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True)

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert module._commit(package) == ""
    git("init")
    assert module._commit(package) == ""  # inside a repository, but not of it
    git("add", "package")
    git("commit", "-m", "first")
    commit = module._commit(package)
    assert len(commit) == 12
    (package / "__init__.py").write_text("changed = True\n")
    assert module._commit(package) == commit + "+"
