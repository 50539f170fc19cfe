from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from sparsevae import SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.report import build_content


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


def test_a_page_has_the_ending_of_a_page(model, tmp_path):
    with pytest.raises(ParameterError, match=r"Expected path to end in .html; got 'page.txt'"):
        model.report(tmp_path / "page.txt")
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize(
    "n_linear, n_returning, n_allowed, words",
    [
        (5, None, 2, "A linear analysis shows 5 factors and 2 were allowed: raise n_factors"),
        (5, 2, 8, "shows 5 factors; 2 are kept, because the others do not return in halves of the rows."),
        (20, 2, 8, "shows 20 factors; 2 are kept"),
        (5, None, 8, ""),  # networks settled the axes: the candidates say why
        (5, 5, 8, ""),  # what returned was emptied later
        (2, 2, 8, ""),
    ],
)
def test_a_sentence_says_why_there_are_fewer_factors_than_shown(
    linear_model, capsys, n_linear, n_returning, n_allowed, words
):
    factors = np.random.default_rng(0).normal(size=(60, 2))
    loadings = np.repeat(np.eye(2), 3, 0) * 0.9
    X = factors @ loadings.T + 0.3 * np.random.default_rng(1).normal(size=(60, 6))
    model = linear_model(X, factors, loadings, verbose=1)
    model.n_factors_, model.n_linear_factors_ = n_allowed, n_linear
    if n_returning is not None:
        model.n_returning_factors_ = n_returning
    assert words in model.number_note()
    assert bool(words) == bool(model.number_note())
    model._announce()
    assert capsys.readouterr().err.strip() == model.number_note()
    assert (model.number_note() in build_content(model)["summary"]) == bool(words)
