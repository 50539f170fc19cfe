"""Densities against SciPy, and where floats are short of digits."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats

from sparsevae.likelihoods import (
    Bernoulli,
    Gaussian,
    NegativeBinomial,
    Poisson,
    bernoulli_log_prob,
    gaussian_log_prob,
    multinomial_log_prob,
    negative_binomial_log_prob,
    poisson_log_prob,
)

from .helpers import FLOAT64, N_FEATURES, N_SAMPLES


def test_gaussian_density_equals_scipy(output, dispersion, rng):
    x = rng.normal(size=(N_SAMPLES, N_FEATURES))
    expected = stats.norm.logpdf(x, output.numpy(), np.sqrt(dispersion.numpy()))
    np.testing.assert_allclose(
        gaussian_log_prob(torch.from_numpy(x), output, dispersion), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        Gaussian().log_prob(torch.from_numpy(x), output, dispersion=dispersion), expected.sum(-1), rtol=1e-12
    )


def test_bernoulli_density_equals_scipy(output, rng):
    x = rng.integers(0, 2, size=(N_SAMPLES, N_FEATURES)).astype(float)
    expected = stats.bernoulli.logpmf(x, 1 / (1 + np.exp(-output.numpy())))
    np.testing.assert_allclose(bernoulli_log_prob(torch.from_numpy(x), output), expected, rtol=1e-10)
    np.testing.assert_allclose(
        Bernoulli().log_prob(torch.from_numpy(x), output), expected.sum(-1), rtol=1e-10
    )


def test_poisson_density_equals_scipy(output, size, rng):
    x = rng.poisson(3.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    np.testing.assert_allclose(
        poisson_log_prob(torch.from_numpy(x), output),
        stats.poisson.logpmf(x, output.exp().numpy()),
        rtol=1e-10,
    )
    expected = stats.poisson.logpmf(x, size.numpy()[:, None] * output.exp().numpy()).sum(-1)
    np.testing.assert_allclose(
        Poisson().log_prob(torch.from_numpy(x), output, size=size), expected, rtol=1e-10
    )


@given(st.floats(1e-3, 1e3), st.floats(-10.0, 8.0), st.integers(0, 100_000))
def test_negative_binomial_density_equals_scipy(r, log_mean, x):
    mean = np.exp(log_mean)
    expected = stats.nbinom.logpmf(x, r, r / (r + mean))
    value = negative_binomial_log_prob(*(torch.tensor(v, dtype=FLOAT64) for v in (float(x), log_mean, r)))
    assert value.item() == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_negative_binomial_likelihood_uses_size_and_dispersion(output, size, dispersion, rng):
    x = rng.poisson(3.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    mean, r = size.numpy()[:, None] * output.exp().numpy(), dispersion.numpy()
    expected = stats.nbinom.logpmf(x, r, r / (r + mean)).sum(-1)
    value = NegativeBinomial().log_prob(torch.from_numpy(x), output, size=size, dispersion=dispersion)
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


def test_multinomial_density_equals_scipy_with_its_coefficient(output, rng):
    x = rng.poisson(2.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    x[0] = 0.0
    shares = torch.softmax(output, -1).numpy()
    expected = [stats.multinomial.logpmf(row, row.sum(), share) for row, share in zip(x, shares, strict=True)]
    np.testing.assert_allclose(
        multinomial_log_prob(torch.from_numpy(x), output), expected, rtol=1e-10, atol=1e-12
    )


@given(st.floats(-1e4, 1e4), st.integers(0, 2**31))
def test_multinomial_ignores_a_shift_of_all_outputs(shift, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 9, (3, 4), generator=generator).double()
    logits = torch.randn(3, 4, generator=generator, dtype=FLOAT64)
    torch.testing.assert_close(
        multinomial_log_prob(x, logits + shift), multinomial_log_prob(x, logits), rtol=1e-7, atol=1e-7
    )


def test_a_missing_word_leaves_the_softmax(output, rng):
    x = torch.from_numpy(rng.poisson(2.0, size=(N_SAMPLES, N_FEATURES)).astype(float))
    observed = torch.ones(N_SAMPLES, N_FEATURES, dtype=torch.bool)
    observed[:, 2] = False
    kept = [0, 1, 3, 4]
    torch.testing.assert_close(
        multinomial_log_prob(x, output, observed), multinomial_log_prob(x[:, kept], output[:, kept])
    )


@pytest.mark.parametrize(
    "log_prob",
    [bernoulli_log_prob, poisson_log_prob, lambda x, o: multinomial_log_prob(x, o)],
    ids=["bernoulli", "poisson", "multinomial"],
)
def test_extreme_outputs_stay_finite_in_float32(log_prob):
    outputs = torch.tensor([[-80.0, 80.0, 0.0]], requires_grad=True)
    value = log_prob(torch.tensor([[1.0, 1.0, 0.0]]), outputs).sum()
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(outputs.grad).all()
