"""Masks: priors against their formulas, closed forms, proximal steps, and what stays where it is."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Beta, Laplace
from torch.testing import assert_close

from sparsevae.modules import GroupMask, SpikeSlabMask
from sparsevae.priors import proximal_step

FLOAT64 = torch.float64


def spike_slab(replicates=(), seed=0, **options):
    """A mask with entries and rates of inclusion that are not at their start."""
    generator = torch.Generator().manual_seed(seed)
    mask = SpikeSlabMask(6, 3, replicates=replicates, **options).double()
    with torch.no_grad():
        mask.weight.add_(0.2 * torch.randn(mask.weight.shape, generator=generator, dtype=FLOAT64))
        mask.inclusion_rate.uniform_(0.1, 0.9, generator=generator)
    return mask


def grouped(replicates=(), seed=0, penalty=3.0, **options):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(*replicates, 4, 2, 3, generator=generator, dtype=FLOAT64)
    return GroupMask(weight, penalty, **options)


# -- the spike-and-slab prior -------------------------------------------------------------------------------


def test_the_penalty_is_minus_the_log_prior_over_the_number_of_samples():
    mask = spike_slab(inclusion_prior=(2.0, 5.0))
    mask.set_rates(spike_rate=20.0, slab_rate=0.5)
    eta, w = mask.inclusion_rate, mask.weight
    slab = Laplace(0.0, 1 / 0.5).log_prob(w).exp()
    spike = Laplace(0.0, 1 / 20.0).log_prob(w).exp()
    log_prior = torch.log(eta * slab + (1 - eta) * spike).sum()
    log_prior = log_prior + Beta(2.0, 5.0).log_prob(eta).sum()
    assert_close(mask.penalty(50), -log_prior.detach() / 50)


def test_the_penalty_of_the_mask_is_that_of_its_module(make_module):
    module = make_module(inclusion_prior=(2.0, 5.0))
    module.mask.set_rates(spike_rate=20.0, slab_rate=0.5)
    assert module.mask.inclusion_prior == (2.0, 5.0)
    assert torch.equal(module.penalties(50)["mask_penalty"], module.mask.penalty(50))


def test_inclusion_follows_bayes_rule():
    mask = spike_slab()
    mask.spike_rate, mask.slab_rate = 30.0, 2.0
    w, eta = mask.weight, mask.inclusion_rate
    slab = eta * 2.0 / 2 * torch.exp(-2.0 * w.abs())
    spike = (1 - eta) * 30.0 / 2 * torch.exp(-30.0 * w.abs())
    assert_close(mask.inclusion(), (slab / (slab + spike)).detach())
    weight = (2.0 * slab + 30.0 * spike) / (slab + spike)
    assert_close(mask.proximal_weight(40), weight.detach() / 40)


def test_the_published_arithmetic_leaves_the_rates_ratio_out():
    mask = spike_slab(keep_rate_ratio=False)
    mask.spike_rate, mask.slab_rate = 30.0, 2.0
    w, eta = mask.weight, mask.inclusion_rate
    slab, spike = eta * torch.exp(-2.0 * w.abs()), (1 - eta) * torch.exp(-30.0 * w.abs())
    assert_close(mask.inclusion(), (slab / (slab + spike)).detach())


def test_the_inclusion_rate_moves_only_once_spike_and_slab_differ():
    mask = spike_slab(inclusion_prior=(2.0, 7.0))
    before = mask.inclusion_rate.clone()
    mask.spike_rate, mask.slab_rate = 2.9, 1.0
    mask.update_inclusion()
    assert torch.equal(mask.inclusion_rate, before)
    mask.spike_rate = 30.0
    expected = (mask.inclusion().sum(0) + 1.0) / (2.0 + 7.0 + 6 - 2.0)
    mask.update_inclusion()
    assert_close(mask.inclusion_rate, expected)


@pytest.mark.parametrize("prior", [(0.5 / 3, 1.0), (1.0, 6.0), (3.0, 3.0)])
def test_any_beta_prior_keeps_rates_inside_zero_and_one(prior):
    mask = spike_slab(inclusion_prior=prior)
    mask.spike_rate, mask.slab_rate = 50.0, 1.0
    with torch.no_grad():
        mask.weight[:, 0] = 0.0
    for _ in range(20):
        mask.update_inclusion()
    assert ((mask.inclusion_rate > 0) & (mask.inclusion_rate < 1)).all()
    assert mask.penalty(10).isfinite()


def test_the_beta_prior_knows_the_number_of_features_unless_given():
    assert spike_slab().inclusion_prior == (1.0, 6.0)


def test_entries_known_to_be_there_cost_nothing():
    mask = spike_slab()
    mask.set_rates(spike_rate=30.0, slab_rate=2.0)
    free = mask.proximal_weight(40)
    mask.known[2, 1] = True
    weight = mask.proximal_weight(40)
    assert weight[2, 1] == 0
    assert (free > 0).all()
    assert torch.equal(weight[~mask.known], free[~mask.known])


def test_rates_come_back_as_they_were_set():
    mask, other = spike_slab(), spike_slab()
    mask.set_rates(spike_rate=30.0, slab_rate=2.0)
    other.set_rates(**mask.rates())
    assert other.rates() == {"spike_rate": 30.0, "slab_rate": 2.0}
    assert torch.equal(other.inclusion(), mask.inclusion())


def test_rates_of_replicates_are_selected_where_each_has_its_own():
    mask = spike_slab(replicates=(3,))
    rates = torch.rand(3, 6, 1, dtype=FLOAT64)
    mask.set_rates(spike_rate=rates, slab_rate=2.0)
    mask.select_rates_([2, 0])
    assert torch.equal(mask.spike_rate, rates[[2, 0]])
    assert mask.slab_rate == 2.0
    mask.select_rates_(1)
    assert torch.equal(mask.spike_rate, rates[0])


def test_a_rate_per_feature_is_common_to_all_replicates():
    mask, rates = spike_slab(replicates=(3,)), torch.rand(6, 1, dtype=FLOAT64)
    mask.set_rates(spike_rate=rates, slab_rate=2.0)
    mask.select_rates_(1)
    assert mask.spike_rate is rates


def test_scaled_columns_leave_frozen_entries():
    mask = spike_slab()
    mask.frozen[1] = True
    before = mask.weight.detach().clone()
    scale = torch.tensor([2.0, 1.0, 0.5], dtype=FLOAT64)
    mask.scale_(scale)
    assert torch.equal(mask.weight[1].detach(), before[1])
    assert_close(mask.weight[0].detach(), scale * before[0])


def test_reordered_columns_take_along_what_is_known_of_them():
    mask = spike_slab()
    mask.frozen[4, 0] = mask.known[5, 1] = True
    weight, rate = mask.weight.detach().clone(), mask.inclusion_rate.clone()
    order = torch.tensor([1, 2, 0])
    mask.permute_(order)
    assert torch.equal(mask.weight.detach(), weight[:, order])
    assert torch.equal(mask.inclusion_rate, rate[order])
    assert mask.frozen.nonzero().tolist() == [[4, 2]]
    assert mask.known.nonzero().tolist() == [[5, 0]]


# -- the group lasso ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicates", [(), (2,)])
def test_the_group_lasso_charges_norms_of_columns(replicates):
    mask = grouped(replicates)
    norms = torch.linalg.vector_norm(mask.weight.detach(), dim=-2)
    assert_close(mask.norms(), norms)
    assert_close(mask.penalty(50), 3.0 * norms.sum((-2, -1)) / 50)
    assert_close(mask.proximal_weight(50), torch.full((*replicates, 4, 1, 3), 3.0 / 50, dtype=FLOAT64))


def test_the_group_lasso_can_be_charged_for_every_sample():
    once, each = grouped(), grouped(samples_per_penalty=1.0)
    assert_close(each.penalty(50), 50 * once.penalty(50))
    assert_close(each.proximal_weight(50), 50 * once.proximal_weight(50))


def test_a_group_mask_takes_no_notice_of_rates_and_inclusion():
    mask = grouped()
    before = mask.penalty(50)
    mask.set_rates(spike_rate=30.0, slab_rate=2.0)
    mask.update_inclusion()
    mask.select_rates_(0)
    assert mask.rates() == {}
    assert torch.equal(mask.penalty(50), before)


# -- what every mask keeps ----------------------------------------------------------------------------------

MASKS = pytest.mark.parametrize("make", [spike_slab, grouped], ids=["spike and slab", "groups"])


@MASKS
@pytest.mark.parametrize("replicates", [(), (2,)])
def test_the_support_is_where_entries_are_and_factors_without_any_are_inactive(make, replicates):
    mask = make(replicates)
    with torch.no_grad():
        mask.weight[..., 1] = 0.0
        mask.weight[..., 0, 2] = 0.0  # an entry of a spike-and-slab mask, one of two entries of a group
    assert mask.support().dtype == torch.bool
    assert mask.active().tolist() == torch.tensor([1.0, 0.0, 1.0]).expand(*replicates, 3).tolist()
    norms = mask.norms() if isinstance(mask, GroupMask) else mask.weight
    assert torch.equal(mask.support(), norms != 0)


@MASKS
@pytest.mark.parametrize("replicates", [(), (2,)])
def test_a_step_makes_exact_zeros_of_whole_groups(make, replicates):
    mask = make(replicates)
    moved = mask.weight.detach().clone()
    step = torch.full_like(mask.weight.sum(mask.group_dims, keepdim=True), 0.5)
    mask.shrink_(moved, step, 1, 0.9 if isinstance(mask, GroupMask) else 1.9)
    zero = mask.weight == 0
    assert zero.any()
    assert not zero.all()
    for dim in mask.group_dims:
        assert torch.equal(zero.any(dim), zero.all(dim))


def test_a_step_is_the_proximal_step_of_its_weight_and_scale():
    mask = spike_slab()
    mask.set_rates(spike_rate=30.0, slab_rate=2.0)
    moved = torch.randn(6, 3, generator=torch.Generator().manual_seed(3), dtype=FLOAT64)
    threshold = 0.3 * mask.proximal_weight(5) * 0.7
    mask.shrink_(moved, torch.full((6, 3), 0.3, dtype=FLOAT64), 5, 0.7)
    assert_close(mask.weight.detach(), proximal_step(moved, threshold))


@MASKS
def test_frozen_entries_stay(make):
    mask = make()
    mask.frozen[1] = True
    before = mask.weight.detach().clone()
    mask.shrink_(before + 1.0, torch.full_like(before, 1e-3), 10, 1.0)
    assert torch.equal(mask.weight[1].detach(), before[1])
    assert (mask.weight[0] != before[0]).all()


@MASKS
@pytest.mark.parametrize("may_return", [True, False])
def test_zeros_return_only_where_they_may(make, may_return):
    mask = make()
    mask.zeros_may_return = may_return
    with torch.no_grad():
        mask.weight[2] = 0.0
    mask.shrink_(mask.weight + 1.0, torch.full_like(mask.weight, 1e-3), 10, 1.0)
    assert bool((mask.weight[2] != 0).all()) == may_return
    assert (mask.weight[0] != 0).all()
