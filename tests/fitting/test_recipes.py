"""Recipes: their names, values of them in place of a name, and the epochs that they give."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.fitting import RECIPES, get_recipe
from sparsevae.fitting.recipes import Budget, Effort, Ladder, Lengths

DEFAULT = RECIPES["default"]


@given(st.integers(1, 2000), st.integers(1, 500))
def test_the_users_epochs_are_spent_to_the_last_and_no_more(max_epochs, n_steps):
    budget = Budget.of(DEFAULT, max_epochs, n_steps)
    assert budget.total == max_epochs
    assert budget.ladder >= 1
    assert min(budget.dense, budget.refine, budget.polish) >= 0
    assert budget.polish <= 30


def test_without_a_limit_large_tables_get_fewer_epochs_down_to_a_floor():
    budgets = [Budget.of(DEFAULT, None, n_steps) for n_steps in (1, 4, 10, 40, 1000)]
    totals = [budget.total for budget in budgets]
    assert totals == sorted(totals, reverse=True)
    assert budgets[0].dense == 150
    assert budgets[-1].dense == 30
    assert {budget.polish for budget in budgets} == {30}


@given(st.integers(1, 500))
def test_a_ladder_has_its_steps_however_few_there_are_in_an_epoch(n_steps):
    assert Budget.of(DEFAULT, None, n_steps).ladder * n_steps >= 400


@pytest.mark.parametrize("max_epochs", [1, 2, 6, 30])
def test_a_fit_takes_no_more_epochs_than_allowed(fit, make_model, make_table, max_epochs):
    model = fit(make_model(recipe="default", n_init=1, max_epochs=max_epochs), make_table())
    assert 1 <= model.n_iter_ <= max_epochs


def test_a_large_table_has_longer_starts_and_shorter_last_steps():
    small, large, masked = (
        Budget.of(DEFAULT, None, 16, small=small, from_vae=plain)
        for small, plain in ((True, True), (False, True), (False, False))
    )
    assert large.dense > small.dense == masked.dense
    assert large.ladder == small.ladder == masked.ladder
    assert masked.refine == large.refine < small.refine
    assert masked.polish == large.polish < small.polish


def test_epochs_are_those_of_the_recipe():
    lengths = Lengths(100, 2, 50)
    assert [lengths.epochs(n_steps) for n_steps in (1, 4, 30, 1000)] == [50, 25, 4, 2]
    recipe = replace(
        DEFAULT, small=Effort(2, 1.0, lengths, Lengths(10, 1, 9), 7), ladder=Ladder(lengths, least_steps=200)
    )
    assert Budget.of(recipe, None, 4) == Budget(dense=25, ladder=50, refine=3, polish=7)


# -- names and values ---------------------------------------------------------------------------------------


def test_a_recipe_is_called_by_its_name_or_given_as_a_value():
    assert [get_recipe(name).name for name in RECIPES] == ["default", "paper", "authors"]
    other = replace(DEFAULT, name="mine", shrinkage=0.2)
    assert get_recipe(other) is other


@pytest.mark.parametrize("unknown", ["papers", "", None, 3, ["default"]])
@pytest.mark.parametrize("estimator", [SparseVAE, VAE, VSC, OIVAE])
def test_an_unknown_recipe_is_refused_in_the_usual_words(make_table, estimator, unknown):
    with pytest.raises(ParameterError) as refused:
        estimator(2, recipe=unknown).fit(make_table())
    assert str(refused.value) == (
        f"Expected recipe to be one of 'default', 'paper', 'authors'; got {unknown!r}. Pass recipe='default'."
    )


def test_the_authors_recipe_is_the_papers_but_for_their_arithmetic():
    paper, authors = RECIPES["paper"], RECIPES["authors"]
    differ = {f.name for f in fields(paper) if getattr(paper, f.name) != getattr(authors, f.name)}
    assert differ == {
        "name", "standard_normal_mask", "proximal", "keep_rate_ratio", "kl_per_factor", "penalty_per_batch",
        "read_threshold",
    }  # fmt: skip


@pytest.mark.parametrize(
    "left_out",
    [{"gauge": False}, {"ladder": None}, {"looser": None}, {"polish": False}],
    ids=lambda d: next(iter(d)),
)
def test_each_ingredient_can_be_left_out(fit, make_table, left_out):
    recipe = replace(DEFAULT, spine=None, **left_out)
    options = {"hidden_sizes": (5,), "n_init": 1, "max_epochs": 12, "random_state": 0}
    model = SparseVAE(2, recipe=recipe, **options)
    fit(model, make_table())
    phases = set(model.history_["phase"])
    assert model.module_.config.gauge == ("gauge" not in left_out)
    assert ("lasso" in phases) == ("ladder" in phases) == ("ladder" not in left_out)
    assert ("polish" in phases) == ("refine" in phases) == ("polish" not in left_out)
    if "looser" in left_out:
        assert not model.starts_["start"].str.contains("of the rate").any()
    assert np.isfinite(model.score(make_table()))


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_as_a_value_fits_as_its_name_does(fit, make_model, make_table, name):
    named, valued = (
        fit(make_model(recipe=recipe, n_init=1), make_table()) for recipe in (name, RECIPES[name])
    )
    np.testing.assert_array_equal(named.mask_, valued.mask_)
    np.testing.assert_array_equal(named.transform(make_table()), valued.transform(make_table()))


def test_a_recipe_as_a_value_is_a_parameter_like_any_other(fit, make_model, make_table):
    with_ladder = replace(DEFAULT, spine=None)
    recipe = replace(with_ladder, ladder=None)
    model = make_model(recipe=recipe, n_init=1)
    assert model.get_params()["recipe"] is recipe
    copy = clone(model)
    assert copy.recipe == recipe
    assert "ladder=None" in repr(copy.recipe)
    np.testing.assert_array_equal(fit(copy, make_table()).mask_, fit(model, make_table()).mask_)
    assert "lasso" in set(fit(clone(model).set_params(recipe=with_ladder), make_table()).history_["phase"])


def test_two_recipes_are_equal_if_their_numbers_are():
    assert replace(DEFAULT, ladder=Ladder()) == DEFAULT
    assert replace(DEFAULT, ladder=Ladder(n_rungs=3)) != DEFAULT
    assert len({DEFAULT, replace(DEFAULT), RECIPES["paper"]}) == 2
