from __future__ import annotations

import copy
import json

import pytest

from sparsevae import SparseVAE


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted("mixed"))


def test_a_page_is_written_from_python(model, make_table, tmp_path):
    table = make_table("mixed").set_axis([f"person {i}" for i in range(60)])
    model.name_factors({0: "zeal"})
    page = model.report(tmp_path / "new" / "page.html", table, title="All of us")
    assert page == tmp_path / "new" / "page.html"
    text = page.read_text("utf-8")
    assert "All of us" in text
    assert "zeal" in text
    content = json.loads((tmp_path / "new" / "page.json").read_text("utf-8"))
    assert content["factors"][0]["samples"]["strongest"][0]["sample"].startswith("person ")
    assert content["certificate"]


def test_a_page_without_the_table_says_so(model, tmp_path):
    assert "made without the data" in model.report(tmp_path / "page.html").read_text("utf-8")


def test_a_notebook_shows_the_factors(model):
    model.name_factors({0: "<b>zeal</b>"})
    shown = model._repr_mimebundle_()["text/html"]
    assert "&lt;b&gt;zeal&lt;/b&gt;" in shown
    assert "<b>zeal</b>" not in shown
    assert "strongest features" in shown
    assert "strongest features" in model._repr_html_()


def test_a_model_that_is_not_fitted_shows_its_parameters():
    shown = SparseVAE(n_factors=7)._repr_html_()
    assert "sparsevae-summary" not in shown
    assert "SparseVAE" in shown
