"""A place that nothing can be written to is told in one sentence, before the work, and stays as it is."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest

from sparsevae import Run, SparseVAE, open_rows
from sparsevae.exceptions import DataError

from ..cli.helpers import files_under, invoke, refusal

SETTINGS = ["--factors", "2", "--max-epochs", "2"]


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """A run and its table on a file system that is then mounted read-only; skipped where it may not be."""
    folder = tmp_path_factory.mktemp("disk")
    try:
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("a file system cannot be mounted here")
    try:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((60, 1)) * [1.0, 2.0, -1.0, 0.5, 1.5] + 0.3 * rng.standard_normal((60, 5))
        np.save(folder / "table.npy", X)
        pd.DataFrame(X, columns=list("abcde")).to_csv(folder / "table.csv", index=False)
        assert invoke("fit", folder / "table.csv", "-o", folder / "run", *SETTINGS).exit_code == 0
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def commands(folder):
    table, run = folder / "table.csv", folder / "run"
    return {
        "fit": ("fit", table, "-o", folder / "new", *SETTINGS),
        "fit over a run": ("fit", table, "-o", run, "--force", *SETTINGS),
        "transform": ("transform", run, table, "-o", folder / "z.npy"),
        "report": ("report", run, "-o", folder / "page.html"),
        "stability": ("stability", run, table, "--refits", "1"),
    }


@pytest.mark.parametrize("name", ["fit", "fit over a run", "transform", "report", "stability"])
def test_commands_say_that_a_place_is_read_only(read_only, name):
    before = files_under(read_only)
    assert "Read-only file system" in refusal(*commands(read_only)[name])
    assert files_under(read_only) == before


def test_python_says_so_too(read_only):
    model, rows = Run.open(read_only / "run").model(), open_rows(read_only / "table.npy")
    with pytest.raises(DataError, match="Read-only file system"):
        model.transform(rows, out=read_only / "z.npy")
    seen = []
    with pytest.raises(OSError, match="Read-only file system"):
        SparseVAE(2).fit(rows, checkpoint=read_only / "kept", callbacks=[seen.append])
    assert not seen


def test_a_run_there_can_be_read(read_only, tmp_path):
    assert (
        invoke("transform", read_only / "run", read_only / "table.csv", "-o", tmp_path / "z.csv").exit_code
        == 0
    )
    assert invoke("report", read_only / "run", "-o", tmp_path / "page.html").exit_code == 0
