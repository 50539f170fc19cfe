"""The VAE and the β-VAE: what beta does, what the recipes are, what early stopping and starts choose."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from sparsevae import VAE
from sparsevae.exceptions import ParameterError


def two_factors(n_samples=300, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_samples, 2))
    return z @ np.array(
        [[1.0, 2.0, 1.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 2.0, 1.5]]
    ) + 0.3 * rng.standard_normal((n_samples, 6))


@pytest.fixture(scope="module")
def fitted():
    return VAE(4, hidden_sizes=(16,), max_epochs=120, learning_rate=0.01, random_state=0).fit(two_factors())


def test_held_out_rows_are_explained_better_than_by_independent_features(fitted):
    X, new = two_factors(), two_factors(seed=1)
    independent = norm.logpdf(new, X.mean(0), X.std(0)).sum(1).mean()
    assert fitted.score(new) > independent + 2.0
    reconstruction = fitted.inverse_transform(fitted.transform(new))
    assert np.square(new - reconstruction).mean() < 0.15 * new.var()


def test_the_noise_variance_is_that_of_the_table(fitted):
    assert fitted.noise_variance_.mean() == pytest.approx(0.09, rel=0.4)


def test_effects_are_slopes_in_the_units_of_the_table(fitted):
    Z, effects = fitted.transform(two_factors()), fitted.effects_
    step = np.zeros(4)
    step[fitted.active_factors_[0]] = 0.2
    difference = (fitted.inverse_transform(Z + step) - fitted.inverse_transform(Z - step)).mean(0) / 0.4
    np.testing.assert_allclose(effects[:, fitted.active_factors_[0]], difference, rtol=0.2, atol=0.05)


def test_samples_have_the_covariance_of_the_table(fitted):
    drawn = fitted.sample(4000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(two_factors().T), atol=1.2)


def test_more_beta_means_less_divergence():
    def divergence(beta):
        model = VAE(2, hidden_sizes=(8,), beta=beta, max_epochs=40, learning_rate=0.01, random_state=0)
        return float(model.fit(two_factors()).history_["kl"].iloc[-1]) / beta

    assert divergence(0.2) > divergence(1.0) > divergence(8.0)


def test_score_counts_the_divergence_once_whatever_beta_is(fitted):
    X = two_factors()
    before = fitted.score_samples(X)
    other = copy.deepcopy(fitted)
    other.module_.config = replace(fitted.module_.config, beta=16.0)
    np.testing.assert_array_equal(other.score_samples(X), before)


@pytest.mark.parametrize("recipe, weight", [("default", 3.0), ("paper", 3.0), ("authors", 3.0 / 4)])
def test_the_authors_recipe_divides_the_weight_by_the_number_of_factors(recipe, weight):
    model = VAE(4, hidden_sizes=(4,), beta=3.0, recipe=recipe, max_epochs=2, random_state=0).fit(
        two_factors(40)
    )
    assert model.module_.config.beta == weight
    assert (model.module_.encoder.linear is not None) == (recipe == "default")


def test_literal_recipes_keep_one_learning_rate_and_train_on_training_rows_only():
    model = VAE(2, hidden_sizes=(4,), recipe="paper", max_epochs=5, learning_rate=0.01, random_state=0)
    history = model.fit(two_factors(60)).history_
    assert (history["learning_rate"] == 0.01).all()
    assert (history["phase"] == "train").all()


@pytest.mark.parametrize("recipe", ["default", "paper", "authors"])
def test_only_the_default_begins_at_the_means(recipe, monkeypatch):
    """Without a warm-up, the units of a decoder that begins at the means fall silent for good."""
    begun = []
    monkeypatch.setattr("sparsevae.estimators.neural.start_at_means_", lambda *_: begun.append(True))
    counts = np.random.default_rng(0).poisson(3.0, size=(40, 5)).astype(float)
    options = {"hidden_sizes": (4,), "max_epochs": 1, "random_state": 0}
    VAE(2, likelihood="multinomial", recipe=recipe, **options).fit(counts)
    assert bool(begun) == (recipe == "default")


def test_the_default_warms_up_falls_and_ends_on_all_rows():
    model = VAE(2, hidden_sizes=(4,), max_epochs=32, validation_fraction=0.0, random_state=0)
    history = model.fit(two_factors(60)).history_
    assert len(history) == 32
    assert history["phase"].drop_duplicates().tolist() == ["warm-up", "train", "refine"]
    assert history["learning_rate"].iloc[-1] < 0.1 * history["learning_rate"].iloc[0]
    assert history["validation"].isna().all()


def test_training_stops_where_held_out_rows_stop_gaining():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    model = VAE(
        2, hidden_sizes=(64, 64), max_epochs=400, learning_rate=0.02, validation_fraction=0.3, random_state=0
    )
    history = model.fit(X).history_
    assert len(history) < 400
    assert history["validation"].notna().any()


def test_factors_that_say_nothing_are_not_active():
    X = np.random.default_rng(0).standard_normal((400, 5))
    model = VAE(3, beta=20.0, hidden_sizes=(8,), max_epochs=80, learning_rate=0.01, random_state=0).fit(X)
    assert len(model.active_factors_) == 0
    assert model.effects().shape == (5, 0)


def test_the_best_of_several_starts_is_kept(monkeypatch):
    seen = []

    def quality(self, module, data):
        seen.append(module)
        return [1.0, 3.0, 2.0][len(seen) - 1]

    monkeypatch.setattr(VAE, "_quality", quality)
    model = VAE(2, hidden_sizes=(4,), n_init=3, max_epochs=3, random_state=0).fit(two_factors(40))
    assert model.module_ is seen[1]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"beta": 0}, "Expected beta to be a number above 0"),
        ({"recipe": "literal"}, "Expected recipe to be one of 'default', 'paper', 'authors'"),
        ({"n_init": 0}, "Expected n_init"),
        ({"learning_rate": -1.0}, "Expected learning_rate"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ParameterError, match=message):
        VAE(2, **parameters).fit(two_factors(40))
