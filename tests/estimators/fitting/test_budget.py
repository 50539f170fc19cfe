"""Epochs of a fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.estimators.fitting import Budget


@given(st.integers(1, 2000), st.integers(1, 500))
def test_the_users_epochs_are_spent_to_the_last_and_no_more(max_epochs, n_steps):
    budget = Budget.of(max_epochs, n_steps)
    assert budget.total == max_epochs
    assert budget.ladder >= 1
    assert min(budget.dense, budget.refine, budget.polish) >= 0
    assert budget.polish <= 30


def test_without_a_limit_large_tables_get_fewer_epochs_down_to_a_floor():
    budgets = [Budget.of(None, n_steps) for n_steps in (1, 4, 10, 40, 1000)]
    totals = [budget.total for budget in budgets]
    assert totals == sorted(totals, reverse=True)
    assert budgets[0].dense == 150
    assert budgets[-1].dense == 30
    assert {budget.polish for budget in budgets} == {30}


@given(st.integers(1, 500))
def test_a_ladder_has_its_steps_however_few_there_are_in_an_epoch(n_steps):
    assert Budget.of(None, n_steps).ladder * n_steps >= 400


@pytest.mark.parametrize("max_epochs", [1, 2, 6, 30])
def test_a_fit_takes_no_more_epochs_than_allowed(fit, make_model, make_table, max_epochs):
    model = fit(make_model(recipe="default", n_init=1, max_epochs=max_epochs), make_table())
    assert 1 <= model.n_iter_ <= max_epochs


def test_a_large_table_has_longer_starts_and_shorter_last_steps():
    small, large, masked = (
        Budget.of(None, 16, small=small, from_plain=plain)
        for small, plain in ((True, True), (False, True), (False, False))
    )
    assert large.dense > small.dense == masked.dense
    assert large.ladder == small.ladder == masked.ladder
    assert masked.refine == large.refine < small.refine
    assert masked.polish == large.polish < small.polish
