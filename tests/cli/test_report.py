from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest

from sparsevae import Run
from sparsevae.decoder import MaskedDecoder
from sparsevae.modules.encoder import Encoder

from .helpers import files_under, invoke, refusal

FILES = {
    "r.html",
    "r.json",
    "r.factors.csv",
    "r.features.csv",
    "r.links.csv",
    "r.samples.csv",
}


@pytest.fixture
def run(shared, tmp_path):
    """A copy of the shared run, to change."""
    return shutil.copytree(shared / "run", tmp_path / "run")


def test_a_run_becomes_a_page_with_json_and_csv(shared, tmp_path):
    result = invoke("report", shared / "run", "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    assert files_under(tmp_path) == FILES
    html = (tmp_path / "r.html").read_text("utf-8")
    assert "Factors of table.csv" in html
    content = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert content["run"]["data"]["n_samples"] == 40
    assert content["source"]["seen_in_fit"] is True
    assert result.stdout.splitlines()[0] == content["summary"][0]


def test_a_page_is_made_without_running_a_network(shared, tmp_path, monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a network was run")

    for part in (Encoder, MaskedDecoder):
        monkeypatch.setattr(part, "forward", refuse)
    result = invoke("report", shared / "run", "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.stderr
    with pytest.raises(AssertionError, match="a network was run"):
        Run.open(shared / "run").model().sample(1)


def test_samples_have_the_names_of_the_table(shared, tmp_path):
    invoke("report", shared / "run", "-o", tmp_path / "r.html")
    samples = pd.read_csv(tmp_path / "r.samples.csv")
    loadings = pd.read_csv(shared / "run" / "loadings.csv", index_col=0)
    assert set(samples["factor"]) == set(loadings.columns)
    assert samples["sample"].str.fullmatch(r"p\d\d").all()


def test_another_table_is_one_the_fit_did_not_see(shared, tmp_path, frame):
    frame.iloc[::-1].to_csv(tmp_path / "new.csv")
    done = invoke(
        "report",
        shared / "run",
        "-o",
        tmp_path / "r.html",
        "--table",
        tmp_path / "new.csv",
        "--title",
        "New & old",
    )
    assert done.exit_code == 0, done.stderr
    content = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert content["source"] == {"table": "new.csv", "n_samples": 40, "seen_in_fit": False}
    assert "<title>New &amp; old</title>" in (tmp_path / "r.html").read_text("utf-8")
    same = invoke(
        "report", shared / "run", "-o", tmp_path / "s.html", "--table", shared / "table.csv", "--json"
    )
    assert json.loads(same.stdout)["files"]["page"] == str(tmp_path / "s.html")
    assert json.loads((tmp_path / "s.json").read_text("utf-8"))["source"]["seen_in_fit"] is True


def test_files_are_replaced_with_force_only(shared, tmp_path):
    target = tmp_path / "r.html"
    (tmp_path / "r.json").write_text("mine")
    assert "r.json exists. Add --force" in refusal("report", shared / "run", "-o", target)
    assert files_under(tmp_path) == {"r.json"}
    assert invoke("report", shared / "run", "-o", target, "--force").exit_code == 0
    assert files_under(tmp_path) == FILES


def test_a_run_without_evidence_has_a_page_that_says_so(run, tmp_path):
    (run / "evidence.json").unlink()
    result = invoke("report", run, "-o", tmp_path / "r.html")
    assert result.exit_code == 0
    assert "has no evidence.json" in result.stderr
    assert "made without the data" in (tmp_path / "r.html").read_text("utf-8")


def test_what_is_no_run_or_damaged_is_refused_in_one_sentence(run, tmp_path, shared):
    target = tmp_path / "r.html"
    assert "there is none" in refusal("report", tmp_path / "nowhere", "-o", target)
    assert "ends in .html" in refusal("report", run, "-o", tmp_path / "r.pdf")
    assert "no such file" in refusal("report", run, "-o", target, "--table", tmp_path / "gone.csv")
    (run / "evidence.json").write_text("{", "utf-8")
    assert "cut off or changed" in refusal("report", run, "-o", target)
    (run / "evidence.json").write_text("[]", "utf-8")
    assert "something else" in refusal("report", run, "-o", target)
    (run / "evidence.json").write_text('{"format": 7}', "utf-8")
    assert "evidence of format 1" in refusal("report", run, "-o", target)
    shutil.copy(shared / "run" / "evidence.json", run)
    (run / "stability.json").write_text("{}", "utf-8")
    assert "damaged" in refusal("report", run, "-o", target)
    assert not target.exists()
