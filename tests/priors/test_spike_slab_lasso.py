from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats

from sparsevae.priors.spike_slab_lasso import (
    inclusion_probability,
    log_inclusion_prior,
    log_prior,
    penalty_weight,
    proximal_step,
    update_inclusion_rate,
)

FLOAT64 = torch.float64
RATES = {"spike_rate": 12.0, "slab_rate": 0.7}

seeds = st.integers(0, 2**31)
slab_rates = st.floats(1e-2, 5.0)
rate_ratios = st.floats(1.0, 1e3)
inclusion_rates = st.floats(1e-4, 1 - 1e-4)


@pytest.fixture
def mask(generator):
    return torch.randn(9, 4, generator=generator, dtype=FLOAT64)


@pytest.fixture
def inclusion_rate():
    return torch.tensor([0.05, 0.3, 0.5, 0.9], dtype=FLOAT64)


def _random_mask(seed, n_features=6, n_factors=3):
    return torch.randn(n_features, n_factors, generator=torch.Generator().manual_seed(seed), dtype=FLOAT64)


def _random_rate(seed, n_factors=3):
    return torch.rand(n_factors, generator=torch.Generator().manual_seed(seed + 1), dtype=FLOAT64)


def test_inclusion_is_bayes_rule_with_laplace_densities(mask, inclusion_rate):
    w, eta = mask.numpy(), inclusion_rate.numpy()
    slab = eta * stats.laplace.pdf(w, scale=1 / RATES["slab_rate"])
    spike = (1 - eta) * stats.laplace.pdf(w, scale=1 / RATES["spike_rate"])

    inclusion = inclusion_probability(mask, inclusion_rate, **RATES)

    np.testing.assert_allclose(inclusion, slab / (slab + spike), rtol=1e-12)


def test_inclusion_at_zero_keeps_the_ratio_of_the_rates():
    inclusion = inclusion_probability(
        torch.zeros(1, 1, dtype=FLOAT64), torch.tensor([0.5], dtype=FLOAT64), **RATES
    )
    assert inclusion.item() == pytest.approx(0.7 / (0.7 + 12.0), rel=1e-12)


def test_inclusion_does_not_overflow_in_float32():
    huge = torch.tensor([[0.0, 1e4]])
    inclusion = inclusion_probability(huge, torch.tensor([1e-6, 1e-6]), spike_rate=1e5, slab_rate=1e-3)
    assert torch.isfinite(inclusion).all()
    assert inclusion[0, 1] == 1.0


def test_rates_may_be_tensors_and_replicates_run_side_by_side(mask, inclusion_rate):
    masks = torch.stack([mask, 2 * mask, -mask])
    spike_rate = torch.tensor([5.0, 10.0, 20.0], dtype=FLOAT64)[:, None, None]

    together = inclusion_probability(masks, inclusion_rate, spike_rate=spike_rate, slab_rate=0.7)
    densities = log_prior(masks, inclusion_rate, spike_rate=spike_rate, slab_rate=0.7)
    weights = penalty_weight(together, spike_rate=spike_rate, slab_rate=0.7)

    assert densities.shape == (3,)
    for i, rate in enumerate([5.0, 10.0, 20.0]):
        rates = {"spike_rate": rate, "slab_rate": 0.7}
        torch.testing.assert_close(together[i], inclusion_probability(masks[i], inclusion_rate, **rates))
        torch.testing.assert_close(densities[i], log_prior(masks[i], inclusion_rate, **rates))
        torch.testing.assert_close(weights[i], penalty_weight(together[i], **rates))


@given(inclusion_rates, slab_rates, rate_ratios, seeds)
def test_inclusion_lies_between_zero_and_one(eta, slab_rate, ratio, seed):
    rate = torch.full((3,), eta, dtype=FLOAT64)
    inclusion = inclusion_probability(
        _random_mask(seed), rate, spike_rate=ratio * slab_rate, slab_rate=slab_rate
    )
    assert ((inclusion >= 0) & (inclusion <= 1)).all()


@given(inclusion_rates, slab_rates, rate_ratios)
def test_inclusion_rises_with_magnitude(eta, slab_rate, ratio):
    magnitudes = torch.linspace(0, 5, 50, dtype=FLOAT64)[:, None]
    rate = torch.tensor([eta], dtype=FLOAT64)
    rates = {"spike_rate": ratio * slab_rate, "slab_rate": slab_rate}
    inclusion = inclusion_probability(magnitudes, rate, **rates)[:, 0]
    assert (inclusion.diff() >= 0).all()
    torch.testing.assert_close(inclusion_probability(-magnitudes, rate, **rates)[:, 0], inclusion)


@given(seeds)
def test_everything_follows_a_permutation_of_features_and_factors(seed):
    shuffle = torch.Generator().manual_seed(seed + 2)
    rows, columns = torch.randperm(6, generator=shuffle), torch.randperm(3, generator=shuffle)
    mask, rate = _random_mask(seed), _random_rate(seed)
    moved, moved_rate = mask[rows][:, columns], rate[columns]

    inclusion = inclusion_probability(mask, rate, **RATES)
    moved_inclusion = inclusion_probability(moved, moved_rate, **RATES)

    torch.testing.assert_close(moved_inclusion, inclusion[rows][:, columns])
    torch.testing.assert_close(
        update_inclusion_rate(moved_inclusion, 1.0, 6.0), update_inclusion_rate(inclusion, 1.0, 6.0)[columns]
    )
    torch.testing.assert_close(log_prior(moved, moved_rate, **RATES), log_prior(mask, rate, **RATES))


def test_rate_update_is_the_papers_formula(mask, inclusion_rate):
    inclusion = inclusion_probability(mask, inclusion_rate, **RATES)
    rate = update_inclusion_rate(inclusion, 2.0, 9.0)
    torch.testing.assert_close(rate, (inclusion.sum(0) + 2.0 - 1.0) / (2.0 + 9.0 + 9 - 2.0))


@pytest.mark.parametrize("a, b", [(1.0, 9.0), (2.5, 1.0), (1.0, 1.0)])
def test_rate_update_maximises_the_expected_log_prior(mask, inclusion_rate, a, b):
    inclusion = inclusion_probability(mask, inclusion_rate, **RATES)

    def expected_log_prior(eta):
        on, off = inclusion.sum(0), (1 - inclusion).sum(0)
        return (on + a - 1) * torch.log(eta) + (off + b - 1) * torch.log1p(-eta)

    best = expected_log_prior(update_inclusion_rate(inclusion, a, b))
    for eta in torch.linspace(0.001, 0.999, 200, dtype=FLOAT64):
        assert (expected_log_prior(eta) <= best + 1e-12).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("a, b", [(1.0, 5.0), (0.1, 1.0), (0.01, 0.01), (5.0, 0.1)])
@pytest.mark.parametrize("value", [0.0, 0.02, 0.98, 1.0])
def test_rate_stays_strictly_inside_the_unit_interval(dtype, a, b, value):
    rate = update_inclusion_rate(torch.full((1, 2), value, dtype=dtype), a, b)
    assert ((rate > 0) & (rate < 1)).all()
    assert torch.isfinite(torch.logit(rate)).all()


@given(seeds, st.floats(1.0, 20.0), st.floats(1.0, 50.0), slab_rates, rate_ratios)
def test_alternating_the_updates_never_lowers_the_log_prior(seed, a, b, slab_rate, ratio):
    mask, rate = _random_mask(seed), _random_rate(seed).clamp(1e-3, 1 - 1e-3)
    rates = {"spike_rate": ratio * slab_rate, "slab_rate": slab_rate}

    def objective(eta):
        return log_prior(mask, eta, **rates) + log_inclusion_prior(eta, a, b)

    value = objective(rate)
    for _ in range(10):
        rate = update_inclusion_rate(inclusion_probability(mask, rate, **rates), a, b)
        new_value = objective(rate)
        assert new_value >= value - 1e-9 * value.abs().clamp(min=1)
        value = new_value


@given(inclusion_rates, slab_rates, rate_ratios, seeds)
def test_penalty_weight_lies_between_the_rates(eta, slab_rate, ratio, seed):
    rates = {"spike_rate": ratio * slab_rate, "slab_rate": slab_rate}
    inclusion = inclusion_probability(_random_mask(seed), torch.full((3,), eta, dtype=FLOAT64), **rates)
    weight = penalty_weight(inclusion, **rates)
    assert (weight >= slab_rate * (1 - 1e-12)).all()
    assert (weight <= rates["spike_rate"] * (1 + 1e-12)).all()


def test_penalty_weight_is_the_slope_of_minus_log_prior(mask, inclusion_rate):
    mask = mask.abs().requires_grad_()
    (slope,) = torch.autograd.grad(-log_prior(mask, inclusion_rate, **RATES), mask)
    weight = penalty_weight(inclusion_probability(mask.detach(), inclusion_rate, **RATES), **RATES)
    torch.testing.assert_close(slope, weight)


def test_log_prior_is_the_mixture_of_laplace_densities(mask, inclusion_rate):
    w, eta = mask.numpy(), inclusion_rate.numpy()
    density = eta * stats.laplace.pdf(w, scale=1 / RATES["slab_rate"])
    density = density + (1 - eta) * stats.laplace.pdf(w, scale=1 / RATES["spike_rate"])
    assert log_prior(mask, inclusion_rate, **RATES).item() == pytest.approx(np.log(density).sum(), rel=1e-12)


def test_log_prior_integrates_to_one():
    grid = torch.linspace(-60, 60, 480_001, dtype=FLOAT64)
    rate = torch.tensor([0.2], dtype=FLOAT64)
    density = log_prior(grid[:, None, None], rate, **RATES).exp()
    assert torch.trapezoid(density, grid).item() == pytest.approx(1.0, abs=1e-6)


def test_equal_rates_make_the_prior_a_lasso_whatever_the_inclusion_rate(mask, inclusion_rate):
    lasso = torch.distributions.Laplace(torch.zeros((), dtype=FLOAT64), 1 / 3.0).log_prob(mask).sum()
    torch.testing.assert_close(log_prior(mask, inclusion_rate, spike_rate=3.0, slab_rate=3.0), lasso)


@pytest.mark.parametrize("a, b", [(1.0, 7.0), (0.2, 1.0), (3.0, 0.5)])
def test_inclusion_prior_is_the_beta_density(inclusion_rate, a, b):
    expected = stats.beta.logpdf(inclusion_rate.numpy(), a, b).sum()
    assert log_inclusion_prior(inclusion_rate, a, b).item() == pytest.approx(expected, rel=1e-12)
    assert log_inclusion_prior(inclusion_rate.expand(2, 5, 4), a, b).shape == (2, 5)


def test_inclusion_prior_is_finite_at_the_ends_where_the_density_is():
    assert log_inclusion_prior(torch.tensor([0.0]), 1.0, 2.0).item() == pytest.approx(np.log(2.0))


@given(seeds, st.floats(0.0, 3.0))
def test_proximal_step_is_soft_thresholding(seed, threshold):
    mask = _random_mask(seed)
    expected = mask.sign() * (mask.abs() - threshold).clamp(min=0)
    torch.testing.assert_close(proximal_step(mask, threshold), expected, rtol=0, atol=1e-15)
    torch.testing.assert_close(
        proximal_step(mask, torch.full_like(mask, threshold)), expected, rtol=0, atol=1e-15
    )


def test_proximal_step_minimises_its_objective(mask):
    threshold, step = 0.4, proximal_step(mask, 0.4)
    for candidate in torch.linspace(-4, 4, 801, dtype=FLOAT64):
        value = 0.5 * (candidate - mask) ** 2 + threshold * candidate.abs()
        assert (0.5 * (step - mask) ** 2 + threshold * step.abs() <= value + 1e-12).all()


def test_proximal_step_leaves_positive_zeros():
    step = proximal_step(torch.tensor([[-0.3, 0.3, -2.0]]), torch.tensor([[0.5, 0.5, 0.5]]))
    assert step.tolist() == [[0.0, 0.0, -1.5]]
    assert not torch.signbit(step[0, 0])
