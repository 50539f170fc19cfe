"""The page of all claims: how many hold in which company, and what is still open."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from sparsevae.reproduction import overview as module
from sparsevae.reproduction.claims import comparisons
from sparsevae.reproduction.overview import render_overview
from sparsevae.reproduction.paper import reproduce
from sparsevae.reproduction.results import Results
from sparsevae.reproduction.runner import run_spec
from sparsevae.reproduction.tables import current_rows

from .helpers import make_spec

CLAIM = {"text": "PCA is best.", "metric": "mse", "method": "PCA"}


@pytest.fixture
def spec(monkeypatch):
    spec = make_spec(claims=[CLAIM])
    monkeypatch.setattr(module, "load_specs", lambda: {spec.name: spec})
    return spec


def cells(text):
    return [cell.strip() for cell in text.splitlines()[-1].strip("|").split("|")]


def test_without_rows_there_is_no_page(spec, tmp_path):
    assert render_overview(tmp_path, "paper") == ""


def test_a_claim_has_a_line_with_its_answer_in_each_company(spec, tmp_path):
    results = Results(tmp_path / spec.name / "paper")
    run_spec(spec, "paper", results, only={"method": ["PCA"]})
    assert render_overview(tmp_path, "paper") == ""  # nobody to compare with
    run_spec(spec, "paper", results)
    link, text, *answers = cells(render_overview(tmp_path, "paper"))
    assert link == f"[{spec.name}]({spec.name}/paper/table.md)"
    assert text == "PCA is best."
    rows = current_rows(spec, "paper", results)
    (claim,) = spec.claims
    held = sum(comparison.holds for comparison in comparisons(spec, "paper", claim, rows))
    assert answers == 3 * [f"{held} of 3, 3 by one run"] + 2 * ["–"]  # linear methods have one recipe


def test_remarks_on_claims_follow_the_table(monkeypatch, tmp_path):
    spec = make_spec(claims=[CLAIM | {"remark": "Few rows."}])
    monkeypatch.setattr(module, "load_specs", lambda: {spec.name: spec})
    run_spec(spec, "paper", Results(tmp_path / spec.name / "paper"))
    table, remarks = render_overview(tmp_path, "paper").split("## What to know about the answers")
    assert "Few rows." not in table
    assert remarks.strip() == "- *PCA is best.* Few rows."


def test_a_claim_is_open_until_every_run_is_there(spec, tmp_path):
    results = Results(tmp_path / spec.name / "paper")
    run_spec(spec, "paper", results, only={"data_set": ["0.0"]})
    first = cells(render_overview(tmp_path, "paper"))[2:5]
    run_spec(spec, "paper", results, only={"method": ["PCA"]})
    second = cells(render_overview(tmp_path, "paper"))[2:5]
    for answer in [*first, *second]:
        assert answer in {"open; 0 of 1, 1 by one run so far", "open; 1 of 1, 1 by one run so far"}


def test_each_reproduction_leaves_the_page(spec, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[reproduce.__module__], "load_spec", lambda _: spec)
    reproduce(spec.name, out=tmp_path, scale="paper", only={"method": ["PCA"]})
    assert not (tmp_path / "claims-paper.md").exists()  # nobody to compare with
    reproduce(spec.name, out=tmp_path, scale="paper")
    assert "/paper/table.md)" in (tmp_path / "claims-paper.md").read_text(encoding="utf-8")


def test_each_recipe_of_the_paper_has_a_column(monkeypatch, tmp_path):
    methods = [
        {"name": name, "estimator": name, "recipes": ["default", "authors"]} for name in ("VAE", "VSC")
    ]
    settings = {"n_factors": 2, "max_epochs": 2, "hidden_sizes": [4]}
    data_sets = [{"name": "0.0", "source": "synthetic", "parameters": {"n_samples": 60}}]
    claim = {"text": "The VAE is best.", "metric": "mse", "method": "VAE"}
    spec = make_spec(methods=methods, settings=settings, data_sets=data_sets, claims=[claim])
    monkeypatch.setattr(module, "load_specs", lambda: {spec.name: spec})
    results = Results(tmp_path / spec.name / "paper")
    run_spec(spec, "paper", results, only={"recipe": ["authors"]})
    assert [answer == "–" for answer in cells(render_overview(tmp_path, "paper"))[2:]] == [
        True,
        True,
        True,
        True,
        False,
    ]
    run_spec(spec, "paper", results)
    *_, paper, authors = cells(render_overview(tmp_path, "paper"))
    assert paper == "–"
    assert authors in {"yes, one run", "**no**, one run"}


def test_rows_of_another_result_that_are_damaged_are_named_and_hinder_nothing(spec, monkeypatch, tmp_path):
    other = replace(spec, name="other")
    monkeypatch.setattr(module, "load_specs", lambda: {spec.name: spec, "other": other})
    run_spec(spec, "paper", Results(tmp_path / spec.name / "paper"))
    damaged = tmp_path / "other" / "paper" / "rows.csv"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("nothing of the kind", "utf-8")
    assert "- Rows of other are there and cannot be read." in render_overview(tmp_path, "paper")


def test_smaller_scales_say_what_their_answers_are_worth(monkeypatch, tmp_path):
    spec = make_spec(claims=[CLAIM | {"remark": "Few rows."}])
    monkeypatch.setattr(module, "load_specs", lambda: {spec.name: spec})
    run_spec(spec, "quick", Results(tmp_path / spec.name / "quick"))
    text = render_overview(tmp_path, "quick")
    assert "its answers mean nothing else" in text
    assert "Few rows." not in text  # remarks are on the numbers of the paper's scale


def test_the_smoke_scale_claims_nothing(spec, tmp_path):
    run_spec(spec, "smoke", Results(tmp_path / spec.name / "smoke"))
    assert render_overview(tmp_path, "smoke") == ""
