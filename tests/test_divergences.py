from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from sparsevae.divergences import kl_correlated_normal, kl_standard_normal

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
