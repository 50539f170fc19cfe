from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

from .helpers import invoke, refusal

NEW = {"stability.json", "stability.csv", "selection.csv"}


@pytest.fixture
def run(shared, tmp_path):
    """A copy of the shared run, to change."""
    return shutil.copytree(shared / "run", tmp_path / "run")


def test_refits_are_kept_in_the_run_and_shown_in_its_report(run, shared, tmp_path):
    command = ("stability", run, shared / "table.csv", "--refits", 2, "--jobs", 1)
    result = invoke(*command)
    assert result.exit_code == 0, result.stderr
    assert "2 refits on halves of the samples" in result.stdout
    assert {path.name for path in run.iterdir()} >= NEW
    loadings = pd.read_csv(run / "loadings.csv", index_col=0)
    chosen = pd.read_csv(run / "selection.csv", index_col=0)
    assert chosen.shape == loadings.shape
    assert chosen.index.tolist() == loadings.index.tolist()
    assert pd.read_csv(run / "stability.csv", index_col=0).index.tolist() == loadings.columns.tolist()
    assert "Add --force" in refusal(*command)
    assert invoke("report", run, "-o", tmp_path / "r.html").exit_code == 0
    content = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert content["stability"]["n_refits"] == 2


def test_json_has_a_share_per_factor(run, shared):
    result = invoke(
        "stability",
        run,
        shared / "table.csv",
        "-n",
        1,
        "--how",
        "bootstrap",
        "--jobs",
        1,
        "--seed",
        3,
        "--json",
    )
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    assert printed["how"] == "bootstrap"
    assert all(0 <= share <= 1 for share in printed["factors"].values())


def test_another_table_is_refused(run, shared, frame, tmp_path):
    frame.iloc[:20].to_csv(tmp_path / "half.csv")
    message = refusal("stability", run, tmp_path / "half.csv", "-n", 1)
    assert "with 40 samples" in message
    frame.iloc[:, :4].to_csv(tmp_path / "narrow.csv")
    assert "missing" in refusal("stability", run, tmp_path / "narrow.csv", "-n", 1)
    assert "how" in refusal("stability", run, shared / "table.csv", "-n", 1, "--how", "luck")
    assert not NEW & {path.name for path in run.iterdir()}
