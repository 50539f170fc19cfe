"""What a report says is what the model says."""

from __future__ import annotations

import copy
import csv
import json
import re

import numpy as np
import pandas as pd
import pytest

from sparsevae.exceptions import DataError
from sparsevae.identifiability import Stability
from sparsevae.io.spreadsheet import neutralise_text
from sparsevae.report import build_content, render_html, write_report
from sparsevae.report.text import shorten
from sparsevae.report.words import factor_label, summarise

from .conftest import HOSTILE


@pytest.fixture(scope="module")
def refits(model):
    names = model.get_feature_names_out()[model.active_factors_]
    rows = [(r, name, 0, 0.9, 0.95, True) for r in range(4) for name in names]
    columns = ["refit", "factor", "partner", "overlap", "rank_correlation", "returned"]
    return Stability(
        reproducibility=pd.Series([1.0, 0.25], index=names),
        selection_probability=pd.DataFrame(0.75 * (model.mask_ != 0), index=HOSTILE, columns=names),
        matches=pd.DataFrame(rows, columns=columns),
        refits=pd.DataFrame({"failure": [""] * 4, "n_active": [2] * 4}),
        how="bootstrap",
    )


def test_links_are_the_non_zeros_of_the_mask(content, model):
    links = content["links"]
    mask = np.zeros_like(model.mask_)
    mask[links["feature"], links["factor"]] = links["weight"]
    np.testing.assert_allclose(mask, model.mask_, rtol=1e-3)
    effects = np.zeros_like(mask)
    effects[links["feature"], links["factor"]] = links["effect"]
    np.testing.assert_allclose(effects, model.effects_, rtol=1e-3)


def test_factors_name_their_anchors_first(content, model):
    for factor, (name, anchors) in zip(content["factors"], model.anchor_features().items(), strict=True):
        assert factor["name"] == name
        found = [content["features"][content["links"]["feature"][link]]["name"] for link in factor["anchors"]]
        assert found == anchors


def test_views_are_on_the_page_where_features_have_some(content, model, evidence, tmp_path):
    assert content["views"] is None
    assert "by view" not in render_html(content)
    views = ["<b>one</b>"] * 3 + ["two"] * 5
    known = copy.deepcopy(model).set_views(views)
    told = build_content(known, evidence=evidence)
    assert told["views"]["names"] == ["<b>one</b>", "two"]
    assert told["views"]["n_features"] == [3, 5]
    table = known.explained_by_view()
    np.testing.assert_allclose([*told["views"]["explained"], told["views"]["together"]], table, rtol=1e-3)
    files = write_report(told, tmp_path / "page.html")
    page = files["page"].read_text("utf-8")
    assert "Variance explained by view" in page
    assert "<b>one</b>" not in page
    assert pd.read_csv(files["features"])["view"].tolist() == views


def test_groups_are_on_the_page_with_the_factors_that_each_has(content):
    assert "Factors by group" not in render_html(content)
    first, second = (factor["name"] for factor in content["factors"])
    groups = {
        "names": ["<i>men</i>", "women"],
        "roles": {first: "shared", second: "women"},
        "deviations": [[0.91, 1.08], [0.0, 1.0]],
    }
    page = render_html({**content, "groups": groups})
    part = page[page.index("Factors by group") : page.index('id="mask"')]
    assert "<i>men" not in part
    cells = re.findall(r"<td[^>]*>(.*?)</td>", part)
    assert [re.sub("<.*?>", "", cell) for cell in cells] == ["shared", "0.91", "1.1", "women", "", "1.0"]


def test_samples_at_the_ends_are_the_extremes(content, model, table):
    codes = model.transform(table)
    for k, factor in enumerate(content["factors"]):
        ends = factor["samples"]
        assert ends["strongest"][0]["sample"] == f"<b>sample {codes[:, k].argmax()}</b>"
        assert ends["weakest"][0]["sample"] == f"<b>sample {codes[:, k].argmin()}</b>"
        first = table.iloc[codes[:, k].argmax(), ends["features"]]
        np.testing.assert_allclose(ends["strongest"][0]["values"], first, rtol=1e-3)


def test_a_factor_costs_what_its_features_lose(content):
    for factor in content["factors"]:
        assert factor["ablation"]["cost"] > 3 * factor["ablation"]["standard_error"] > 0


def test_the_summary_is_in_words(content):
    assert content["summary"][0].startswith("2 factors explain ")
    assert "8 features" in content["summary"][0]
    assert "1 on none" in content["summary"][1]


def test_everything_is_plain_json(content):
    assert json.loads(json.dumps(content, allow_nan=False)) == content


def test_without_data_a_report_says_what_is_missing(model):
    content = build_content(model)
    assert content["certificate"] is None
    html = render_html(content)
    assert "This page was made without the data" in html
    assert "not examined" in html


def test_refits_change_the_verdict(model, evidence, refits):
    content = build_content(model, evidence=evidence, stability=refits)
    second = content["factors"][1]
    assert second["certificate"]["verdict"] == "not identified"
    assert "25%" in second["certificate"]["reason"]
    assert second["stability"]["reproducibility"] == 0.25
    assert set(content["links"]["selected"]) == {0.75}
    html = render_html(content)
    assert "returned in <strong>25%</strong> of 4 refits" in html
    assert "selection probability" in html


def test_refits_of_another_fit_are_refused(model, evidence, refits):
    wrong = Stability(
        refits.reproducibility, refits.selection_probability.iloc[:3], refits.matches, refits.refits, "seed"
    )
    with pytest.raises(DataError, match="on 8 features"):
        build_content(model, evidence=evidence, stability=wrong)


@pytest.mark.parametrize("change", [{"format": 99}, {"curves": {"another": []}}])
def test_evidence_of_another_fit_or_format_is_refused(model, evidence, change):
    with pytest.raises(DataError, match="Give the table"):
        build_content(model, evidence={**evidence, **change})


def test_a_fit_without_factors_has_a_page(table, linear_model):
    model = linear_model(table, np.zeros((len(table), 2)), np.zeros((8, 2)))
    content = build_content(model, evidence=model.evidence(table))
    assert content["summary"] == ["No factor was found in 8 features: no feature uses it."]
    html = render_html(content)
    assert 'id="features"' in html
    assert 'id="cards"' not in html


def test_the_page_is_one_file(written):
    html = written["page"].read_text("utf-8")
    for sign in ("http://", "https://", '<link rel="stylesheet', "src="):
        assert sign not in html.replace("&lt;img src=x", "").replace("\\u003cimg src=x", "")
    assert "default-src 'none'" in html


def test_the_page_says_why_percentages_need_not_add_up(written):
    assert "Percentages need not add up to the total" in written["page"].read_text("utf-8")


def test_no_name_is_markup(written):
    html = written["page"].read_text("utf-8")
    assert "<script>window" not in html
    assert "<img" not in html
    assert "<em>strangers" not in html
    assert "<b>sample" not in html
    assert "<i>table" not in html
    assert "49" not in html.split("<style>")[0]


def test_json_and_csv_have_the_same_content(written, content):
    assert json.loads(written["json"].read_text("utf-8")) == content
    with written["links"].open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(content["links"]["feature"])
    assert {row["feature"] for row in rows} <= {neutralise_text(name) for name in HOSTILE}
    factors = pd.read_csv(written["factors"])
    assert factors["factor"].tolist() == [factor["name"] for factor in content["factors"]]
    assert factors["verdict"].notna().all()
    features = pd.read_csv(written["features"])
    assert features["feature"].tolist() == [neutralise_text(name) for name in HOSTILE]
    samples = pd.read_csv(written["samples"])
    assert set(samples["end"]) == {"strongest", "weakest"}


def test_a_report_is_written_whole_or_not_at_all(content, tmp_path, monkeypatch):
    target = tmp_path / "deep" / "report.html"
    write_report(content, target)
    before = target.read_bytes()
    monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_report(content, target)
    assert target.read_bytes() == before
    assert not [path for path in target.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("family", ["poisson", "multinomial", "bernoulli"])
def test_every_likelihood_has_a_page(linear_model, family):
    rng = np.random.default_rng(1)
    factors = rng.standard_normal((80, 2))
    loadings = np.array([[0.9, 0.0], [0.8, 0.0], [0.0, 0.9], [0.0, 0.7], [0.5, 0.5]])
    output = factors @ loadings.T
    X = (output > 0) * 1.0 if family == "bernoulli" else rng.poisson(np.exp(output + 1.0)) * 1.0
    model = linear_model(X, factors, loadings, likelihood=family)
    content = build_content(model, evidence=model.evidence(X))
    assert "not proved" in " ".join(content["certificate"]["notes"])
    assert render_html(content)


def test_answers_on_a_scale_have_no_section_of_typical_features(linear_model):
    """No answer means "does not occur", so that how often answers occur together says nothing."""
    rng = np.random.default_rng(1)
    factors = rng.standard_normal((80, 1))
    loadings = np.array([[0.9], [0.8], [0.7]])
    X = 1.0 + np.clip(np.round(factors @ loadings.T + 2.0), 0.0, 4.0)
    model = linear_model(X, factors, loadings, likelihood="ordinal")
    content = build_content(model, evidence=model.evidence(X))
    assert content["factors"][0]["words"] is None
    assert 'id="words"' not in render_html(content)


def test_a_factor_with_few_anchors_is_known_by_its_strongest_features_too(content):
    factor, links, features = content["factors"][0], content["links"], content["features"]
    names = [features[links["feature"][link]]["name"] for link in factor["links"]]
    one_anchor = {**factor, "anchors": factor["links"][1:2]}
    label = factor_label(one_anchor, links, features)
    assert label == ", ".join(shorten(names[i], 36) for i in (1, 0, 2))
    assert factor_label({**factor, "links": factor["links"][:1], "anchors": []}, links, features) == shorten(
        names[0], 36
    )


def test_the_largest_factor_is_the_one_that_explains_most_wherever_it_stands(content):
    """Factors with known anchors keep their places."""
    first, second = content["factors"]
    for shares, largest in (((0.2, 0.3), second), ((0.3, 0.2), first), ((None, 0.1), second)):
        pair = zip((first, second), shares, strict=True)
        factors = [{**factor, "variance_explained": share} for factor, share in pair]
        words = summarise({**content, "factors": factors})[-1]
        assert words.startswith(f"The largest factor, {largest['name']}, explains ")


def test_a_fit_in_which_nothing_is_identified_says_so(content):
    table = [{**row, "verdict": "not identified"} for row in content["certificate"]["table"]]
    factors = [{**factor, "anchors": []} for factor in content["factors"]]
    features = [{**feature, "links": [0, 1]} for feature in content["features"]]
    words = summarise({**content, "certificate": {"table": table}, "factors": factors, "features": features})
    assert "No feature depends on one factor alone." in words[1]
    assert words[2] == "Neither of the two factors is identified: the cards say why."
    assert " shows most in " in words[-1]
