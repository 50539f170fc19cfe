"""The units of the columns do not decide a fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.exceptions import DataWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TINY = {"n_factors": 3, "max_epochs": 12, "hidden_sizes": (6,), "random_state": 0}
ESTIMATORS = {
    "SparseVAE": SparseVAE(**TINY, n_init=2),
    "SparseVAE, linear": SparseVAE(**{**TINY, "hidden_sizes": ()}),
    "VAE": VAE(**TINY),
    "VSC": VSC(**TINY, n_pseudo_inputs=3),
    "OIVAE": OIVAE(**TINY),
}
UNITS = {
    "one column, a billionth": np.r_[1e-9, np.ones(11)],
    "one column, a billion": np.r_[1e9, np.ones(11)],
    "every column its own": 10.0 ** np.linspace(-9, 9, 12),
}


@pytest.fixture(scope="module")
def X():
    return make_anchored_factors(150, 12, 3, random_state=0).X


def noise_in_model_units(model):
    return model.noise_variance_ / model.module_.observation.scale.double().numpy() ** 2


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("units", UNITS)
def test_other_units_give_the_same_fit(name, units, X):
    model = ESTIMATORS[name]
    expected, moved = model.fit(X).transform(X), X * UNITS[units]
    noise = noise_in_model_units(model)
    np.testing.assert_allclose(model.fit(moved).transform(moved), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(noise_in_model_units(model), noise, rtol=1e-4)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_powers_of_two_change_no_bit(name, X):
    model, units = ESTIMATORS[name], 2.0 ** np.arange(-24, 24, 4)
    expected, score = model.fit(X).transform(X), model.score_samples(X)
    history = model.history_.select_dtypes("number").to_numpy()
    model.fit(X * units)
    np.testing.assert_array_equal(model.transform(X * units), expected)
    np.testing.assert_array_equal(model.history_.select_dtypes("number").to_numpy(), history)
    np.testing.assert_allclose(model.score_samples(X * units), score - np.log(units).sum(), rtol=1e-5)


@pytest.mark.parametrize("units", UNITS)
def test_a_default_fit_finds_the_same_links_in_any_unit(units, X):
    model = SparseVAE(n_factors=5, max_epochs=60, n_init=4, random_state=0)
    Z, mask = model.fit(X).transform(X), model.mask_ != 0
    moved = X * UNITS[units]
    other, n_active = model.fit(moved).transform(moved), len(model.active_factors_)
    correlation = np.abs(np.corrcoef(Z[:, :n_active].T, other[:, :n_active].T)[:n_active, n_active:])
    rows, columns = linear_sum_assignment(-correlation)
    assert n_active == mask.any(0).sum()
    assert correlation[rows, columns].min() >= 0.999
    np.testing.assert_array_equal(model.mask_[:, columns] != 0, mask[:, rows])


@pytest.mark.parametrize("recipe", ["paper", "authors"])
def test_the_papers_noise_prior_has_units_and_says_so(recipe, X):
    units = np.r_[1e-4, np.ones(11)]
    with pytest.warns(DataWarning, match="features in small units are taken for noise"):
        SparseVAE(**TINY, recipe=recipe).fit(X * units)


@pytest.mark.parametrize("estimator", [SparseVAE, VAE, VSC, OIVAE])
def test_noise_variances_of_huge_numbers_are_finite(estimator, X):
    model = estimator(2, max_epochs=2, hidden_sizes=(4,), random_state=0).fit(1e25 * X)
    assert np.isfinite(model.noise_variance_).all()
