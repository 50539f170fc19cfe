from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats

from sparsevae.priors.noise import calibrate_noise_scale, map_noise_variance, noise_log_prior

FLOAT64 = torch.float64


@given(st.floats(1.0, 30.0), st.floats(0.01, 0.5), st.floats(0.5, 0.99), st.integers(0, 2**31))
def test_calibration_puts_the_quantile_of_the_variances_at_the_priors_coverage(nu, quantile, coverage, seed):
    variances = np.random.default_rng(seed).uniform(0.1, 10, size=40)
    xi = calibrate_noise_scale(variances, nu, quantile, coverage)
    prior = stats.invgamma(nu / 2, scale=nu * xi / 2)
    assert prior.cdf(np.quantile(variances, quantile)) == pytest.approx(coverage, rel=1e-8)


def test_calibration_with_the_papers_settings_is_about_a_fifth_of_the_quantile():
    assert calibrate_noise_scale(np.ones(10)) == pytest.approx(0.195, abs=5e-4)


def test_calibration_takes_tensors_and_scales_with_the_data(rng):
    variances = rng.uniform(0.1, 2, size=30)
    xi = calibrate_noise_scale(variances)
    assert calibrate_noise_scale(torch.from_numpy(variances)) == xi
    assert calibrate_noise_scale(9 * variances) == pytest.approx(9 * xi)


def test_calibration_leaves_constant_features_out():
    assert calibrate_noise_scale([0.0, 0.0, 2.0, 3.0]) == calibrate_noise_scale([2.0, 3.0])


def test_calibration_refuses_a_table_in_which_nothing_varies():
    with pytest.raises(ValueError, match="at least one feature that varies; got 3 features"):
        calibrate_noise_scale(np.zeros(3))


def test_log_prior_is_the_inverse_gamma_density(rng):
    variance = rng.uniform(0.1, 3, size=(2, 6))
    xi = rng.uniform(0.1, 1, size=6)
    expected = stats.invgamma.logpdf(variance, 1.5, scale=1.5 * xi).sum(-1)

    log_density = noise_log_prior(torch.from_numpy(variance), 3.0, torch.from_numpy(xi))

    np.testing.assert_allclose(log_density, expected, rtol=1e-12)


def test_log_prior_takes_a_number_for_xi():
    variance = torch.tensor([0.5, 2.0], dtype=FLOAT64)
    expected = stats.invgamma.logpdf(variance.numpy(), 1.5, scale=1.5 * 0.4).sum()
    assert noise_log_prior(variance, 3.0, 0.4).item() == pytest.approx(expected, rel=1e-12)


def test_map_variance_maximises_likelihood_times_prior(rng):
    residual = torch.from_numpy(rng.normal(size=(50, 4)) * [0.5, 1.0, 2.0, 0.1])
    xi = torch.tensor([0.2, 0.3, 0.4, 0.5], dtype=FLOAT64)
    variance = map_noise_variance(residual.square().sum(0), 50, 3.0, xi).requires_grad_()

    log_likelihood = torch.distributions.Normal(0.0, variance.sqrt()).log_prob(residual).sum()
    (slope,) = torch.autograd.grad(log_likelihood + noise_log_prior(variance, 3.0, xi), variance)

    torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-10)


def test_map_variance_takes_a_count_per_feature_and_replicates():
    sums = torch.tensor([[4.0, 9.0], [8.0, 18.0]], dtype=FLOAT64)
    variance = map_noise_variance(sums, torch.tensor([10.0, 20.0], dtype=FLOAT64), 3.0, 0.5)
    torch.testing.assert_close(
        variance, torch.tensor([[5.5 / 15, 10.5 / 25], [9.5 / 15, 19.5 / 25]], dtype=FLOAT64)
    )
