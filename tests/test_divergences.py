from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch.distributions import Bernoulli, Independent, MultivariateNormal, Normal, kl_divergence

from sparsevae.divergences import kl_bernoulli, kl_correlated_normal, kl_spike_slab, kl_standard_normal

FLOAT64 = torch.float64
seeds = st.integers(0, 2**31)


def _posterior(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(*shape, generator=generator, dtype=FLOAT64)
    return mean, torch.randn(*shape, generator=generator, dtype=FLOAT64)


def _covariance(seed, *shape):
    root = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=FLOAT64)
    return root @ root.mT + 0.1 * torch.eye(shape[-1], dtype=FLOAT64)


@given(seeds)
def test_standard_normal_equals_torch_distributions(seed):
    mean, log_variance = _posterior(seed, 2, 5, 3)
    q = Independent(Normal(mean, (0.5 * log_variance).exp()), 1)
    p = Independent(Normal(torch.zeros_like(mean), torch.ones_like(mean)), 1)
    torch.testing.assert_close(kl_standard_normal(mean, log_variance), kl_divergence(q, p))


@given(seeds)
def test_correlated_normal_equals_torch_distributions(seed):
    mean, log_variance = _posterior(seed, 5, 3)
    covariance = _covariance(seed + 1, 3, 3)
    q = MultivariateNormal(mean, torch.diag_embed(log_variance.exp()))
    p = MultivariateNormal(torch.zeros(3, dtype=FLOAT64), covariance)
    torch.testing.assert_close(
        kl_correlated_normal(mean, log_variance, covariance), kl_divergence(q, p), rtol=1e-8, atol=1e-8
    )


def test_identity_covariance_gives_the_standard_divergence():
    mean, log_variance = _posterior(0, 4, 3)
    torch.testing.assert_close(
        kl_correlated_normal(mean, log_variance, torch.eye(3, dtype=FLOAT64)),
        kl_standard_normal(mean, log_variance),
    )


def test_replicates_have_covariances_of_their_own():
    mean, log_variance = _posterior(1, 2, 4, 3)
    covariance = _covariance(2, 2, 3, 3)
    together = kl_correlated_normal(mean, log_variance, covariance)
    assert together.shape == (2, 4)
    for i in range(2):
        torch.testing.assert_close(together[i], kl_correlated_normal(mean[i], log_variance[i], covariance[i]))


@given(seeds)
def test_divergences_are_not_negative_and_follow_a_permutation_of_factors(seed):
    mean, log_variance = _posterior(seed, 6, 4)
    covariance = _covariance(seed + 1, 4, 4)
    order = torch.randperm(4, generator=torch.Generator().manual_seed(seed))

    divergence = kl_correlated_normal(mean, log_variance, covariance)
    moved = kl_correlated_normal(mean[:, order], log_variance[:, order], covariance[order][:, order])

    assert (divergence > -1e-9).all()
    assert (kl_standard_normal(mean, log_variance) >= 0).all()
    torch.testing.assert_close(moved, divergence, rtol=1e-8, atol=1e-8)


def test_posterior_equal_to_the_prior_diverges_by_exactly_nothing():
    zeros = torch.zeros(3, 2)
    assert (kl_standard_normal(zeros, zeros) == 0).all()


def test_small_divergences_survive_float32():
    log_variance = torch.full((1, 1), 1e-3)
    exact = kl_standard_normal(torch.zeros(1, 1, dtype=FLOAT64), log_variance.double())
    assert kl_standard_normal(torch.zeros(1, 1), log_variance).item() == pytest.approx(exact.item(), rel=1e-3)


def test_gradients_are_right():
    mean, log_variance = _posterior(3, 3, 2)
    covariance = _covariance(4, 2, 2)
    inputs = tuple(t.requires_grad_() for t in (mean, log_variance, covariance))

    def symmetrised(mean, log_variance, covariance):
        return kl_correlated_normal(mean, log_variance, 0.5 * (covariance + covariance.mT))

    assert torch.autograd.gradcheck(symmetrised, inputs)


def _spike_slab(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*shape, generator=generator, dtype=FLOAT64) for _ in range(3))


@given(seeds)
def test_coins_diverge_as_in_torch_distributions(seed):
    logits, prior_logits, _ = _spike_slab(seed, 7)
    expected = kl_divergence(Bernoulli(logits=logits), Bernoulli(logits=prior_logits))
    torch.testing.assert_close(kl_bernoulli(logits, prior_logits), expected, rtol=1e-8, atol=1e-12)


def test_coins_that_are_certain_diverge_finitely():
    certain = torch.tensor([-200.0, 200.0])
    divergence = kl_bernoulli(certain, torch.zeros(2))
    torch.testing.assert_close(divergence, torch.full((2,), math.log(2.0)))
    assert kl_bernoulli(torch.zeros(2), certain).isfinite().all()


@pytest.mark.parametrize("seed", range(4))
def test_spike_and_slab_equals_the_monte_carlo_mean_of_its_log_ratio(seed):
    posterior, prior = _spike_slab(seed, 3), _spike_slab(seed + 100, 3)
    generator = torch.Generator().manual_seed(seed)
    n_draws = 200_000
    mean, log_variance, logits = posterior
    open_ = torch.rand(n_draws, 3, generator=generator, dtype=FLOAT64) < torch.sigmoid(logits)
    noise = torch.randn(n_draws, 3, generator=generator, dtype=FLOAT64)
    z = mean + torch.exp(0.5 * log_variance) * noise
    slab = _normal(mean, log_variance).log_prob(z) - _normal(*prior[:2]).log_prob(z)
    slab = slab + torch.nn.functional.logsigmoid(logits) - torch.nn.functional.logsigmoid(prior[2])
    spike = torch.nn.functional.logsigmoid(-logits) - torch.nn.functional.logsigmoid(-prior[2])
    ratio = torch.where(open_, slab, spike).sum(-1)

    error = ratio.std() / n_draws**0.5
    assert abs(kl_spike_slab(*posterior, *prior) - ratio.mean()) < 4 * error


@given(seeds)
def test_spike_and_slab_divergence_is_not_negative_and_nothing_between_equals(seed):
    posterior, prior = _spike_slab(seed, 5, 3), _spike_slab(seed + 1, 5, 3)
    assert (kl_spike_slab(*posterior, *prior) >= 0).all()
    torch.testing.assert_close(kl_spike_slab(*posterior, *posterior), torch.zeros(5, dtype=FLOAT64))


@pytest.mark.parametrize("variance, divergence", [(2.0, 0.005), (100.0, 0.09)])
def test_spike_probability_weighs_the_whole_slab(variance, divergence):
    """Cases in which a formula whose γ misses the quadratic term turns negative."""
    zero, gamma = torch.zeros(1), torch.logit(torch.tensor([0.05]))
    value = kl_spike_slab(zero, zero, gamma, zero, torch.tensor([variance]).log(), gamma)
    assert value.item() == pytest.approx(divergence, abs=0.002)


def test_an_open_gate_leaves_the_gaussian_divergence():
    mean, log_variance, _ = _spike_slab(0, 6, 2)
    open_, zero = torch.full_like(mean, 40.0), torch.zeros_like(mean)
    torch.testing.assert_close(
        kl_spike_slab(mean, log_variance, open_, zero, zero, open_), kl_standard_normal(mean, log_variance)
    )


def test_spike_and_slab_gradients_are_right():
    inputs = tuple(t.requires_grad_() for t in (*_spike_slab(1, 3, 2), *_spike_slab(2, 3, 2)))
    assert torch.autograd.gradcheck(kl_spike_slab, inputs)


def _normal(mean, log_variance):
    return Normal(mean, torch.exp(0.5 * log_variance))
