"""Whether claims hold: on shared runs, against rivals only, open as long as a run is missing."""

from __future__ import annotations

import pandas as pd
import pytest

from sparsevae.reproduction.claims import verdict
from sparsevae.reproduction.results import FAILED

from .helpers import make_spec

CLAIM = {"text": "PCA is best.", "metric": "mse", "method": "PCA"}
FA, PCA, NMF = "Factor analysis", "PCA", "NMF"


def make_rows(values, data_set="0.0", metric="mse"):
    """Rows from {(method, recipe): value by seed}; a value may be missing, or None for a run without it."""
    rows = [
        {"method": method, "recipe": recipe, "data_set": data_set, "seed": str(seed), "split": "0"}
        | {"metric": metric, "value": value}
        for (method, recipe), by_seed in values.items()
        for seed, value in by_seed.items()
    ]
    return pd.DataFrame(rows, dtype=object)


def lines_of(text, data_set="0.0", recipe=None):
    """The lines of a data set in a recipe, the first if it is not named: from company to the other cells."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    rows = [row for row in rows if row[1:2] == [data_set]]
    return {row[2]: row[3:] for row in rows if row[0] == (recipe or rows[0][0])}


@pytest.fixture
def spec():
    return make_spec(n_seeds=3, claims=[CLAIM])


@pytest.fixture
def with_a_simple_method():
    """Two methods of the paper, and NMF beside them."""
    methods = [
        {"name": PCA, "estimator": PCA},
        {"name": FA, "estimator": "FactorAnalysis"},
        {"name": NMF, "estimator": NMF, "added": True},
    ]
    return make_spec(methods=methods, claims=[CLAIM], n_seeds=2)


def check(spec, rows, **which):
    return lines_of(verdict(spec, "paper", spec.claims[0], rows), **which)


def test_a_claim_is_checked_against_the_best_other_run_by_run(spec):
    rows = make_rows({(PCA, "any"): {0: 1.0, 1: 3.0, 2: 2.0}, (FA, "any"): {0: 2.5, 1: 3.5, 2: 3.0}})
    expected = ["yes", "3 of 3", "2.000", "3.000 (Factor analysis)", "-1.0000 (0.4082)"]
    assert check(spec, rows)["the paper's methods"] == expected
    (claim,) = make_spec(claims=[{**CLAIM, "method": FA}]).claims
    assert lines_of(verdict(spec, "paper", claim, rows))["the paper's methods"][0] == "**no**"


def test_only_runs_that_both_have_count_and_the_question_is_open(spec):
    rows = make_rows({(PCA, "any"): {0: 1.0, 1: 1.0, 2: 5.0}, (FA, "any"): {2: 4.0}})
    assert check(spec, rows)["the paper's methods"] == [
        *("open; **no**, one run so far", "1 of 3", "5.000", "4.000 (Factor analysis)", "1.0000")
    ]


def test_a_failed_rival_leaves_the_question_open(spec):
    rows = make_rows({(PCA, "any"): {0: 1.0, 1: 1.0, 2: 1.0}, (FA, "any"): {0: 2.0, 1: 2.0}})
    rows = pd.concat([rows, make_rows({(FA, "any"): {2: None}}, metric=FAILED)])
    assert check(spec, rows)["the paper's methods"][:2] == ["open; yes so far", "2 of 3"]


def test_a_run_without_a_number_leaves_the_question_open(spec):
    rows = make_rows({(PCA, "any"): {0: 1.0, 1: None, 2: None}, (FA, "any"): {0: 2.0, 1: 2.0, 2: 2.0}})
    assert check(spec, rows)["the paper's methods"][:2] == ["open; yes, one run so far", "1 of 3"]


def test_a_method_without_the_quantity_is_no_rival():
    methods = [{"name": name, "estimator": name} for name in (PCA, NMF)]
    methods.append({"name": FA, "estimator": "FactorAnalysis"})
    spec = make_spec(methods=methods, claims=[CLAIM])
    rows = make_rows({(PCA, "any"): {0: 1.0}, (FA, "any"): {0: 2.0}, (NMF, "any"): {0: None}})
    assert check(spec, rows)["the paper's methods (without NMF)"][0] == "yes, one run"


def test_a_reference_and_the_methods_own_other_recipes_are_no_rivals():
    methods = [
        {"name": "VAE", "estimator": "VAE"},
        {"name": "VSC", "estimator": "VSC"},
        {"name": PCA, "estimator": PCA, "reference": True},
    ]
    spec = make_spec(methods=methods, claims=[{**CLAIM, "method": "VAE"}])
    recipes = ("default", "paper", "authors")
    rows = make_rows(
        {("VAE", recipe): {0: value} for recipe, value in zip(recipes, (2.0, 1.0, 1.0), strict=True)}
        | {("VSC", recipe): {0: value} for recipe, value in zip(recipes, (3.0, 4.0, 1.5), strict=True)}
        | {(PCA, "any"): {0: 0.5}}
    )
    lines = check(spec, rows)
    assert lines["the paper's methods"][:4] == [
        "yes, one run",
        "1 of 1",
        "2.000",
        "3.000 (VSC, default)",
    ]
    assert lines["all, in all recipes"][:4] == ["**no**, one run", "1 of 1", "2.000", "1.500 (VSC, authors)"]
    published = {
        "paper": ("yes, one run", "4.000 (VSC, paper)"),
        "authors": ("yes, one run", "1.500 (VSC, authors)"),
    }
    for recipe, (answer, other) in published.items():  # in the same recipe only
        ((company, cells),) = check(spec, rows, recipe=recipe).items()
        assert (company, cells[0], cells[3]) == ("the paper's methods", answer, other)


def test_the_papers_own_methods_are_a_company_of_their_own(with_a_simple_method):
    rows = make_rows(
        {(PCA, "any"): {0: 2.0, 1: 2.0}, (FA, "any"): {0: 3.0, 1: 3.0}, (NMF, "any"): {0: 1.0, 1: 1.0}}
    )
    assert {company: cells[0] for company, cells in check(with_a_simple_method, rows).items()} == {
        "the paper's methods": "yes",
        "the paper's and simple methods": "**no**",
    }


def test_a_larger_company_without_a_closer_rival_says_it_for_the_smaller(with_a_simple_method):
    rows = make_rows(
        {(PCA, "any"): {0: 1.0, 1: 1.0}, (FA, "any"): {0: 2.0, 1: 2.0}, (NMF, "any"): {0: 3.0, 1: 3.0}}
    )
    assert {company: cells[3] for company, cells in check(with_a_simple_method, rows).items()} == {
        "the paper's and simple methods": "2.000 (Factor analysis)"
    }


def test_a_difference_of_less_than_two_standard_errors_is_within_noise(spec):
    rows = make_rows({(PCA, "any"): {0: 1.0, 1: 3.0, 2: 2.0}, (FA, "any"): {0: 1.0, 1: 3.0, 2: 3.0}})
    assert check(spec, rows)["the paper's methods"][0] == "yes, within noise"  # 1/3, standard error 1/3
    rows = make_rows({(PCA, "any"): {0: 1.0, 1: 3.0, 2: 2.0}, (FA, "any"): {0: 0.9, 1: 2.9, 2: 1.8}})
    assert check(spec, rows)["the paper's methods"][0] == "**no**"  # 0.133, standard error 0.033


def test_a_recipe_of_which_fewer_splits_are_run_is_no_rival():
    methods = [
        {"name": "VAE", "estimator": "VAE"},
        {"name": "VSC", "estimator": "VSC", "splits": {"authors": 1}},
    ]
    claim = {**CLAIM, "method": "VAE"}
    spec = make_spec(methods=methods, n_seeds=2, claims=[claim])
    rows = make_rows(
        {("VAE", "default"): {0: 1.0, 1: 1.0}}
        | {("VSC", "default"): {0: 2.0, 1: 2.0}, ("VSC", "paper"): {0: 3.0, 1: 3.0}}
        | {("VSC", "authors"): {0: 0.5}}
    )
    assert check(spec, rows)["all, in all recipes"][0] == "yes"
    assert check(spec, rows, recipe="authors") == {}


def test_a_recipe_of_the_methods_own_may_have_fewer_splits():
    methods = [
        {"name": "VAE", "estimator": "VAE", "splits": {"paper": 1}},
        {"name": "VSC", "estimator": "VSC"},
    ]
    spec = make_spec(methods=methods, n_splits=3, claims=[{**CLAIM, "method": "VAE"}])
    rows = make_rows({("VAE", "paper"): {0: 1.0}, ("VSC", "paper"): {0: 2.0}})
    assert check(spec, rows)["the paper's methods"][:2] == ["open; yes, one run so far", "1 of 1"]


def test_higher_may_be_better():
    spec = make_spec(claims=[{**CLAIM, "metric": "dci"}])
    rows = make_rows({(PCA, "any"): {0: 0.9}, (FA, "any"): {0: 0.8}}, metric="dci")
    assert check(spec, rows)["the paper's methods"][0] == "yes, one run"


def test_a_remark_follows_the_verdict(spec):
    (claim,) = make_spec(n_seeds=3, claims=[{**CLAIM, "remark": "Few rows."}]).claims
    rows = make_rows({("PCA", "any"): {0: 1.0}, (FA, "any"): {0: 2.0}})
    plain = verdict(spec, "paper", spec.claims[0], rows)
    assert verdict(spec, "paper", claim, rows) == f"{plain}\n\nFew rows."


def test_a_claim_without_rows_says_so(spec):
    rows = make_rows({(FA, "any"): {0: 1.0}})
    assert verdict(spec, "paper", spec.claims[0], rows) == "**PCA is best.** Not measured yet."
