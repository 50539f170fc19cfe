"""Overdispersed counts: the density against SciPy, and where floats are short of digits."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats

from sparsevae.likelihoods import NegativeBinomial, negative_binomial_log_prob, poisson_log_prob

from .helpers import FLOAT64, N_FEATURES, N_SAMPLES


@given(st.floats(1e-3, 1e3), st.floats(-10.0, 8.0), st.integers(0, 100_000))
def test_negative_binomial_density_equals_scipy(r, log_mean, x):
    mean = np.exp(log_mean)
    expected = stats.nbinom.logpmf(x, r, r / (r + mean))
    value = negative_binomial_log_prob(*(torch.tensor(v, dtype=FLOAT64) for v in (float(x), log_mean, r)))
    assert value.item() == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_negative_binomial_likelihood_uses_size_and_dispersion(output, size, dispersion, parameters, rng):
    x = rng.poisson(3.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    mean, r = size.numpy()[:, None] * output.exp().numpy(), dispersion.numpy()
    expected = stats.nbinom.logpmf(x, r, r / (r + mean)).sum(-1)
    value = NegativeBinomial().log_prob(torch.from_numpy(x), output, parameters, size=size)
    np.testing.assert_allclose(value, expected, rtol=1e-8)


def test_negative_binomial_approaches_the_poisson_also_in_float32():
    x = torch.arange(0.0, 40.0)
    log_mean = torch.full_like(x, 2.5)
    poisson = poisson_log_prob(x.double(), log_mean.double())
    for r in (1e8, 1e12, 1e20):
        value = negative_binomial_log_prob(x, log_mean, torch.tensor(r))
        torch.testing.assert_close(value.double(), poisson, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("r", [1e-2, 1.0, 50.0, 1e4])
def test_negative_binomial_keeps_its_digits_in_float32(r):
    x = torch.tensor([0.0, 1.0, 7.0, 300.0])
    log_mean = torch.tensor([0.5, -3.0, 2.0, 5.0])
    exact = negative_binomial_log_prob(x.double(), log_mean.double(), torch.tensor(r, dtype=FLOAT64))
    value = negative_binomial_log_prob(x, log_mean, torch.tensor(r))
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-3)


def test_negative_binomial_gradients_are_right():
    x = torch.tensor([[0.0, 3.0, 50.0]], dtype=FLOAT64)
    log_mean = torch.tensor([[0.3, -1.0, 3.0]], dtype=FLOAT64, requires_grad=True)
    r = torch.tensor([0.1, 2.0, 40.0], dtype=FLOAT64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m, r: negative_binomial_log_prob(x, m, r), (log_mean, r))


def test_the_dispersion_of_a_reconstruction_has_the_variance_of_its_errors(rng):
    mean = rng.uniform(2.0, 9.0, size=(4000, N_FEATURES))
    shape = np.array([0.5, 1.0, 3.0, 10.0, 1e9])
    x = rng.poisson(mean * rng.gamma(shape, 1 / shape, size=mean.shape))
    sums = np.square(x - mean).sum(0), mean.sum(0), np.square(mean).sum(0)
    found = NegativeBinomial().parameters_from_residuals(*sums, 4000, x.var(0))["inverse_dispersion"]
    np.testing.assert_allclose(found[:3], shape[:3], rtol=0.2)
    assert found[3] > 5
    assert found[4] > 100  # next to Poisson
