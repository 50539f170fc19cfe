"""Closed form throughout: a linear Gaussian model, whose evidence and posterior are known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics import elbo, gaussian_kl, heldout_nll, importance_weighted_bound, posterior_nll

LOADINGS = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 2.0]])
COVARIANCE = np.array([[1.0, 0.4], [0.4, 1.0]])
VARIANCE = np.array([0.5, 1.0, 0.2])
MODEL = {"likelihood": "gaussian", "noise_variance": VARIANCE}
X = np.random.default_rng(0).normal(size=(5, 3))


def decode(z):
    return z @ LOADINGS.T


def evidence(covariance):
    return multivariate_normal(np.zeros(3), LOADINGS @ covariance @ LOADINGS.T + np.diag(VARIANCE)).logpdf(X)


@pytest.fixture
def posterior():
    """The exact one, which is diagonal for independent factors with one loading per feature."""
    precision = np.eye(2) + LOADINGS.T @ np.diag(1 / VARIANCE) @ LOADINGS
    mean = X @ np.diag(1 / VARIANCE) @ LOADINGS @ np.linalg.inv(precision)
    return mean, np.tile(np.sqrt(1 / np.diag(precision)), (5, 1))


def test_kl_to_the_standard_normal_is_the_known_sum():
    mean, sd = np.array([[1.0, -2.0]]), np.array([[0.5, 2.0]])
    expected = sum(0.5 * (s**2 + m**2 - 1) - np.log(s) for m, s in zip(mean[0], sd[0], strict=True))
    assert gaussian_kl(mean, sd) == pytest.approx(expected)


def test_kl_to_a_correlated_prior_is_that_of_drawn_densities():
    mean, sd = np.array([[0.3, -0.2]]), np.array([[0.5, 0.8]])
    z = mean + sd * np.random.default_rng(0).standard_normal((200_000, 2))
    log_ratio = norm(mean, sd).logpdf(z).sum(axis=1) - multivariate_normal([0, 0], COVARIANCE).logpdf(z)
    assert gaussian_kl(mean, sd, COVARIANCE)[0] == pytest.approx(log_ratio.mean(), abs=0.01)


def test_kl_of_the_prior_to_itself_is_zero():
    np.testing.assert_allclose(gaussian_kl(np.zeros((3, 2)), np.ones((3, 2))), 0, atol=1e-12)


def test_elbo_at_the_exact_posterior_is_the_evidence(posterior):
    values = elbo(X, decode, *posterior, n_samples=4000, per_sample=True, **MODEL)
    np.testing.assert_allclose(values, evidence(np.eye(2)), atol=0.1)


def test_importance_weights_are_exact_at_the_exact_posterior(posterior):
    values = importance_weighted_bound(X, decode, *posterior, n_samples=1, per_sample=True, **MODEL)
    np.testing.assert_allclose(values, evidence(np.eye(2)))


def test_importance_weighting_closes_the_gap_of_a_poor_posterior(posterior):
    mean, sd = posterior
    poor = (0.5 * mean, 1.5 * sd)
    options = {"factor_covariance": COVARIANCE, **MODEL}
    truth = evidence(COVARIANCE).mean()
    low = elbo(X, decode, *poor, n_samples=2000, **options)
    tight = importance_weighted_bound(X, decode, *poor, n_samples=5000, **options)
    assert low < tight - 0.1
    assert tight == pytest.approx(truth, abs=0.03)


def test_nll_at_the_mean_is_that_of_the_decoded_mean(posterior):
    mean, _ = posterior
    assert posterior_nll(X, decode, mean, code="mean", **MODEL) == heldout_nll(X, decode(mean), **MODEL)


def test_nll_at_a_sample_is_that_of_one_decoded_sample(posterior):
    mean, sd = posterior
    z = mean + sd * np.random.default_rng(7).standard_normal(mean.shape)
    assert posterior_nll(X, decode, mean, sd, random_state=7, **MODEL) == heldout_nll(X, decode(z), **MODEL)


def test_a_sample_costs_more_than_the_mean_on_average(posterior):
    sampled = np.mean([posterior_nll(X, decode, *posterior, random_state=s, **MODEL) for s in range(50)])
    assert sampled > posterior_nll(X, decode, posterior[0], code="mean", **MODEL)


def test_unusable_input_is_refused(posterior):
    mean, sd = posterior
    with pytest.raises(ParameterError, match="'sample' or 'mean'"):
        posterior_nll(X, decode, mean, sd, code="mode", **MODEL)
    with pytest.raises(ParameterError, match="posterior_sd to draw"):
        posterior_nll(X, decode, mean, **MODEL)
    with pytest.raises(DataError, match="sd above 0"):
        elbo(X, decode, mean, 0 * sd, **MODEL)
    with pytest.raises(DataError, match="2 x 2 factor_covariance"):
        gaussian_kl(mean, sd, np.eye(3))
    with pytest.raises(DataError, match="positive definite"):
        gaussian_kl(mean, sd, np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(DataError, match="same shape"):
        gaussian_kl(mean, sd[:, :1])
