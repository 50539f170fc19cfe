"""NMF: scikit-learn's solution under the old parameter, exact codes, and scores against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.stats import bernoulli, multinomial, nbinom, norm, poisson
from sklearn.decomposition import NMF as Reference

from sparsevae import NMF
from sparsevae.exceptions import ConvergenceWarning, DataError, ParameterError


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    rates = rng.gamma(1.0, 2.0, size=(50, 2)) @ rng.gamma(0.5, 1.0, size=(2, 7))
    return rng.poisson(rates + 0.2).astype(float)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_components_are_scikit_learns_under_the_old_meaning_of_alpha(counts, alpha):
    n_samples, n_features = counts.shape
    model = NMF(2, alpha=alpha, random_state=0).fit(counts)
    reference = Reference(
        2, alpha_W=alpha / n_features, alpha_H=alpha / n_samples, random_state=0, max_iter=400
    ).fit(counts)
    np.testing.assert_allclose(model.components_, reference.components_)
    np.testing.assert_allclose(model.transform(counts), reference.transform(counts), rtol=0.05, atol=0.02)


def test_alpha_of_one_is_half_the_squared_norms(counts):
    """The minimised function, written down: any small step away from the solution raises it."""
    model = NMF(2, alpha=1.0, max_iter=5000, random_state=0).fit(counts)
    H = model.components_
    Z = model.transform(counts)

    def objective(Z, H):
        return 0.5 * np.square(counts - Z @ H).sum() + 0.5 * (np.square(Z).sum() + np.square(H).sum())

    rng, best = np.random.default_rng(0), objective(Z, H)
    for scale in (0.97, 1.03):
        assert objective(Z * scale, H) > best - 1e-6
        assert objective(Z, H * scale) > best - 0.02
    for _ in range(20):
        step = np.maximum(Z + 0.01 * rng.standard_normal(Z.shape), 0.0)
        assert objective(step, H) > best - 1e-6


@pytest.mark.parametrize("alpha", [0.0, 1.0, 10.0])
def test_codes_solve_the_penalised_least_squares_problem_of_each_row(counts, alpha):
    model = NMF(2, alpha=alpha, random_state=0).fit(counts)
    codes = model.transform(counts)
    design = np.vstack([model.components_.T, np.sqrt(alpha) * np.eye(2)])
    for x, code in zip(counts, codes, strict=True):
        solution, _ = nnls(design, np.append(x, [0.0, 0.0]))
        np.testing.assert_allclose(code, solution, atol=1e-5)


def test_scores_are_those_of_scipy(counts):
    fits = {name: NMF(2, likelihood=name, random_state=0) for name in ("gaussian", "poisson", "multinomial")}
    for model in fits.values():
        model.fit(counts)
    model = fits["gaussian"]
    mean = model.inverse_transform(model.transform(counts))
    expected = norm.logpdf(counts, mean, np.sqrt(model.noise_variance_)).sum(1)
    np.testing.assert_allclose(model.score_samples(counts), expected)
    expected = poisson.logpmf(counts, np.maximum(mean, 1e-6)).sum(1)
    np.testing.assert_allclose(fits["poisson"].score_samples(counts), expected)
    filled = counts.sum(1) > 0
    share = mean[filled] / mean[filled].sum(1, keepdims=True) + 1e-6
    expected = multinomial.logpmf(counts[filled], counts[filled].sum(1), share / share.sum(1, keepdims=True))
    np.testing.assert_allclose(fits["multinomial"].score_samples(counts)[filled], expected)


def test_zeros_and_ones_and_overdispersed_counts_have_their_own_likelihoods(counts):
    binary = (counts > 1).astype(float)
    model = NMF(2, likelihood="bernoulli", random_state=0).fit(binary)
    chance = np.clip(model.inverse_transform(model.transform(binary)), 1e-6, 1 - 1e-6)
    np.testing.assert_allclose(model.score_samples(binary), bernoulli.logpmf(binary, chance).sum(1))

    wild = np.random.default_rng(1).negative_binomial(1, 0.2, size=(200, 4)).astype(float)
    model = NMF(1, likelihood="negative_binomial", random_state=0).fit(wild)
    r, mean = model.inverse_dispersion_, model.inverse_transform(model.transform(wild))
    assert (r < 20).all()
    expected = nbinom.logpmf(wild, r, r / (r + np.maximum(mean, 1e-6))).sum(1)
    np.testing.assert_allclose(model.score_samples(wild), expected)


def test_loadings_are_the_components_with_names(counts):
    model = NMF(2, random_state=0).fit(counts)
    loadings = model.loadings()
    assert list(loadings.columns) == ["nmf0", "nmf1"]
    np.testing.assert_array_equal(loadings.to_numpy(), model.components_.T)
    assert not hasattr(model, "sample")


def test_an_overwhelming_penalty_leaves_no_factor(counts):
    model = NMF(2, alpha=1e6, l1_ratio=1.0, random_state=0).fit(counts)
    assert len(model.active_factors_) == 0
    assert (model.transform(counts) == 0).all()
    assert np.isfinite(model.score(counts))


def test_negative_values_are_refused_whatever_the_likelihood(counts):
    with pytest.raises(DataError, match="Negative values in data passed to NMF"):
        NMF(2).fit(counts - 3.0)


def test_a_factorisation_cut_short_says_so(counts):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        NMF(2, max_iter=1, random_state=0).fit(counts)


@pytest.mark.parametrize("parameters", [{"alpha": -1.0}, {"l1_ratio": 2.0}, {"max_iter": 0}])
def test_bad_parameters_are_refused(counts, parameters):
    with pytest.raises(ParameterError, match=f"Expected {next(iter(parameters))}"):
        NMF(2, **parameters).fit(counts)
