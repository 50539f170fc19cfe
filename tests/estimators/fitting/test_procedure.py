"""The default recipe as a whole: candidates, history, ingredients that can be left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsevae import SparseVAE
from sparsevae.estimators.fitting import Ingredients
from sparsevae.estimators.fitting.procedure import counts_around


@given(st.integers(1, 60), st.integers(1, 60))
def test_candidates_lie_around_the_linear_count_and_within_what_is_allowed(n_linear, n_factors):
    counts = counts_around(n_linear, n_factors)
    assert counts == sorted(set(counts))
    assert min(counts) >= 1
    assert max(counts) <= n_factors
    assert min(n_linear, n_factors) in counts


@pytest.mark.parametrize("kind", ["gaussian", "mixed", "negative_binomial"])
def test_epochs_are_numbered_through(fit, make_model, make_table, kind):
    history = fit(make_model(kind, recipe="default", n_init=1, max_epochs=12), make_table(kind)).history_
    np.testing.assert_array_equal(history["epoch"], np.arange(1, len(history) + 1))
    phases = list(dict.fromkeys(history["phase"]))
    assert phases == ["dense", "lasso", "ladder", "final", "refine", "polish"]


@pytest.mark.parametrize("left_out", ["gauge", "ladder", "looser", "polish"])
def test_each_ingredient_can_be_left_out(fit, make_table, left_out):
    class Without(SparseVAE):
        _ingredients = replace(Ingredients(), **{left_out: False})

    model = fit(Without(2, hidden_sizes=(5,), n_init=1, max_epochs=12, random_state=0), make_table())
    phases = set(model.history_["phase"])
    assert model.module_.config["gauge"] == (left_out != "gauge")
    assert ("lasso" in phases) == (left_out != "ladder")
    assert ("polish" in phases) == (left_out != "polish")
    if left_out == "looser":
        assert not model.starts_["start"].str.contains("of the rate").any()
    assert np.isfinite(model.score(make_table()))


def test_a_large_table_may_end_without_any_factor(fit):
    noise = np.random.default_rng(0).normal(size=(200, 600))
    settings = {"n_init": 1, "max_epochs": 4, "spike_rate": 1e6, "slab_rate": 1e5, "random_state": 0}
    model = fit(SparseVAE(3, hidden_sizes=(32,), **settings), noise)
    assert len(model.active_factors_) == 0
    assert set(model.dropped_factors_) == {0, 1, 2}
    assert (model.transform(noise) == 0).all()


def test_a_candidate_of_a_large_table_keeps_to_its_number_of_factors(fit):
    """Rare counts: the noise of their gradients exceeds a young penalty, and spare factors would come in."""
    rng = np.random.default_rng(0)
    rates = 0.3 * np.exp(rng.normal(size=(400, 1)) @ rng.choice([0.0, 1.0], size=(1, 80)))
    settings = {"n_init": 1, "max_epochs": 40, "random_state": 0, "likelihood": "poisson"}
    model = fit(SparseVAE(8, **settings), rng.poisson(rates))
    history, tried = model.history_, model.starts_.query("chosen")["start"].item()
    ladder = history[history["phase"].isin(["lasso", "ladder", "final", "refine", "polish"])]
    assert 0 < ladder["n_active"].max() <= int(tried.split(",")[0]) < 8


def linear_table(weak, n_samples=3000):
    """Two factors with six features each, three of which may depend weakly on the other factor too."""
    rng = np.random.default_rng(0)
    loadings = np.repeat(np.eye(2), 6, axis=0)
    loadings[:3, 1] = loadings[6:9, 0] = weak * np.array([1.0, -1.0, 1.0])
    return rng.normal(size=(n_samples, 2)) @ loadings.T + 0.7 * rng.normal(size=(n_samples, 12))


@pytest.mark.parametrize("weak, n_nonzero", [(0.0, 12), (0.12, 18)])
def test_a_looser_rate_is_taken_where_held_out_rows_are_the_better_for_it(fit, weak, n_nonzero):
    model = fit(SparseVAE(2, hidden_sizes=(), random_state=0), linear_table(weak))
    looser = model.starts_["start"].str.contains("of the rate")
    assert model.starts_.loc[looser, "chosen"].any() == (weak > 0)
    assert (model.mask_ != 0).sum() == n_nonzero


def test_a_looser_rate_that_is_tried_in_vain_leaves_no_trace(fit):
    class AtItsOwnRate(SparseVAE):
        _ingredients = replace(Ingredients(), looser=False)

    X = linear_table(0.0, n_samples=300)
    tried, not_tried = (fit(cls(3, hidden_sizes=(), random_state=0), X) for cls in (SparseVAE, AtItsOwnRate))
    np.testing.assert_array_equal(tried.mask_, not_tried.mask_)
    np.testing.assert_array_equal(tried.transform(X), not_tried.transform(X))


@pytest.mark.parametrize("options", [{"spike_rate": 50.0}, {"expected_features_per_factor": 4}])
def test_a_rate_that_the_user_has_set_is_kept(fit, options):
    model = fit(SparseVAE(2, hidden_sizes=(), max_epochs=30, random_state=0, **options), linear_table(0.12))
    assert not model.starts_["start"].str.contains("of the rate").any()


@pytest.mark.parametrize("recipe, usual", [("default", False), ("paper", True), ("authors", True)])
def test_a_literal_fit_begins_as_pytorchs_layers_do(fit, make_model, make_table, recipe, usual, monkeypatch):
    """From the features' means, at the paper's learning rate, the penalty may empty the mask at once."""
    begun = []
    where = "sparsevae.estimators.fitting.procedure."
    monkeypatch.setattr(where + "usual_start_", lambda *_: begun.append("usual"))
    monkeypatch.setattr(where + "initial_outputs_", lambda *_: begun.append("means"))
    fit(make_model(recipe=recipe, init="random", n_init=1, max_epochs=2), make_table())
    assert begun == ["usual" if usual else "means"]
