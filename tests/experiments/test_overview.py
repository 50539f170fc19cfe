"""The page of all claims: how many hold in which company, and what is still open."""

from __future__ import annotations

import sys

import pytest

from sparsevae.experiments import overview as module
from sparsevae.experiments.overview import overview
from sparsevae.experiments.reproduce import reproduce
from sparsevae.experiments.results import Results
from sparsevae.experiments.runner import run_spec

from .helpers import make_spec

CLAIM = {"text": "PCA is best.", "metric": "mse", "method": "PCA", "reading": "any"}


@pytest.fixture
def spec(monkeypatch):
    spec = make_spec(claims=[CLAIM])
    monkeypatch.setattr(module, "load_specs", lambda: {spec.name: spec})
    return spec


def cells(text):
    return [cell.strip() for cell in text.splitlines()[-1].strip("|").split("|")]


def test_without_rows_there_is_no_page(spec, tmp_path):
    assert overview(tmp_path, "paper") == ""


def test_a_claim_has_a_line_with_its_answer_in_each_company(spec, tmp_path):
    results = Results(tmp_path / spec.name / "paper")
    run_spec(spec, "paper", results, only={"method": ["PCA"]})
    assert overview(tmp_path, "paper") == ""  # nobody to compare with
    run_spec(spec, "paper", results)
    link, text, *answers = cells(overview(tmp_path, "paper"))
    assert link == f"[{spec.name}]({spec.name}/paper/table.md)"
    assert text == "PCA is best."
    n_data = len(spec.data_sets)
    assert len(answers) == 3
    for answer in answers:
        assert answer in {"–", "yes", "**no**", *(f"{held} of {n_data}" for held in range(n_data + 1))}
    assert answers[1] != "–"


def test_remarks_on_claims_follow_the_table(monkeypatch, tmp_path):
    spec = make_spec(claims=[CLAIM | {"remark": "Few rows."}])
    monkeypatch.setattr(module, "load_specs", lambda: {spec.name: spec})
    run_spec(spec, "paper", Results(tmp_path / spec.name / "paper"))
    table, remarks = overview(tmp_path, "paper").split("## What to know about the answers")
    assert "Few rows." not in table
    assert remarks.strip() == "- *PCA is best.* Few rows."


def test_a_claim_is_open_until_every_run_is_there(spec, tmp_path):
    results = Results(tmp_path / spec.name / "paper")
    run_spec(spec, "paper", results, only={"data_set": ["0.0"]})
    first = cells(overview(tmp_path, "paper"))[3:]
    run_spec(spec, "paper", results, only={"method": ["PCA"]})
    second = cells(overview(tmp_path, "paper"))[3:]
    for answer in [*first, *second]:
        assert answer in {"open; 0 of 1 so far", "open; 1 of 1 so far"}


def test_each_reproduction_leaves_the_page(spec, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[reproduce.__module__], "load_spec", lambda _: spec)
    reproduce(spec.name, out=tmp_path, scale="paper", only={"method": ["PCA"]})
    assert not (tmp_path / "claims-paper.md").exists()  # nobody to compare with
    reproduce(spec.name, out=tmp_path, scale="paper")
    assert "/paper/table.md)" in (tmp_path / "claims-paper.md").read_text(encoding="utf-8")


def test_the_smoke_scale_claims_nothing(spec, tmp_path):
    run_spec(spec, "smoke", Results(tmp_path / spec.name / "smoke"))
    assert overview(tmp_path, "smoke") == ""
