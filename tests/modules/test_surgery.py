"""Surgery changes how a module is written down, never what it says of the data."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from sparsevae.modules.gauge import first_layer_norm, fix_gauge_
from sparsevae.modules.surgery import change_basis_, masked_copy, permute_factors_, select, stack

DEPTHS = pytest.mark.parametrize("hidden_sizes", [(), (5,), (5, 4), (5, 4, 3)])


def outputs(module, x):
    with torch.no_grad():
        mean, log_variance = module.encode(x)
        return mean, log_variance, module.decode(mean)


@DEPTHS
@pytest.mark.parametrize("likelihood", ["gaussian", "negative_binomial"])
def test_a_selected_replicate_is_that_replicate(make_module, make_rows, hidden_sizes, likelihood):
    several = make_module(likelihood, hidden_sizes=hidden_sizes, replicates=(3,))
    several.spike_rate = torch.rand(3, 6, 1, dtype=torch.float64)
    x = make_rows(likelihood)
    for r in range(3):
        one = select(several, r)
        assert one.replicates == ()
        assert torch.equal(one.spike_rate, several.spike_rate[r])
        for got, all_of_them in zip(outputs(one, x), outputs(several, x), strict=True):
            assert_close(got, all_of_them[r])


def test_a_list_of_replicates_keeps_their_dimension(make_module, make_rows):
    several, x = make_module(replicates=(3,)), make_rows()
    two = select(several, [2, 0])
    for got, before in zip(outputs(two, x), outputs(several, x), strict=True):
        assert_close(got, before[[2, 0]])


def test_a_selection_is_a_copy(make_module):
    module = make_module()
    copy = select(module, 0)
    with torch.no_grad():
        copy.mask.zero_()
        copy.encoder.mean_weight.zero_()
        copy.noise_variance.zero_()
    assert module.mask.any()
    assert module.encoder.mean_weight.any()
    assert module.noise_variance.any()


@DEPTHS
def test_stacked_modules_are_replicates(make_module, make_rows, hidden_sizes):
    modules = [make_module(hidden_sizes=hidden_sizes, seed=seed) for seed in range(3)]
    stacked, x = stack(modules), make_rows()
    assert stacked.replicates == (3,)
    for r, module in enumerate(modules):
        for got, expected in zip(outputs(stacked, x), outputs(module, x), strict=True):
            assert_close(got[r], expected)


def test_stack_and_select_undo_each_other_to_the_last_bit(make_module):
    modules = [make_module(seed=seed).float() for seed in range(2)]
    for r, module in enumerate(modules):
        again = select(stack(modules), r)
        for name, value in module.state_dict().items():
            assert torch.equal(again.state_dict()[name], value), name


@DEPTHS
def test_reordered_factors_are_the_same_model(make_module, make_rows, hidden_sizes):
    module, x = make_module(hidden_sizes=hidden_sizes), make_rows()
    with torch.no_grad():
        module.mask[2, 0] = 0.0
    mean, log_variance, output = outputs(module, x)
    before = {
        "penalties": module.penalties(10),
        "inclusion": module.inclusion(),
        "covariance": module.factor_covariance.clone(),
        "kl": module.kl(mean, log_variance).detach(),
    }
    order, sign = torch.tensor([2, 0, 1]), torch.tensor([-1.0, 1.0, -1.0])
    permute_factors_(module, order, sign)
    new_mean, new_log_variance, new_output = outputs(module, x)
    assert_close(new_mean, sign * mean[:, order])
    assert_close(new_log_variance, log_variance[:, order])
    assert_close(new_output, output)
    assert_close(module.kl(new_mean, new_log_variance), before["kl"])
    assert_close(module.inclusion(), before["inclusion"][:, order])
    assert_close(module.penalties(10), before["penalties"])
    assert_close(module.factor_covariance, torch.outer(sign, sign) * before["covariance"][order][:, order])
    assert (module.mask[2, 1] == 0).all()


def test_reordering_takes_frozen_entries_and_used_factors_along(make_module):
    module = make_module()
    module.frozen[4, 0] = True
    module.used[0] = False
    permute_factors_(module, torch.tensor([1, 2, 0]), torch.ones(3, dtype=torch.float64))
    assert module.frozen.nonzero().tolist() == [[4, 2]]
    assert module.used.tolist() == [True, True, False]


@pytest.mark.parametrize("hidden_sizes", [(5,), (5, 4), (5, 4, 3)])
def test_a_change_of_basis_leaves_what_is_decoded_and_the_prior_of_the_data(
    make_module, make_rows, hidden_sizes, generator
):
    module, x = make_module(hidden_sizes=hidden_sizes, learned_mask=False), make_rows()
    basis = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    basis = basis / torch.linalg.vector_norm(basis, dim=0)
    mean, _, output = outputs(module, x)
    covariance = module.factor_covariance.clone()
    first = module.decoder.first.detach().clone()
    norm = change_basis_(module, basis)
    new_mean, _ = module.encode(x)
    assert_close(new_mean, mean @ basis)
    # The gauge took the norms out of the first layer; a mask with these columns puts them back.
    assert_close(module.decoder.weights().first, first @ torch.linalg.inv(basis).T / norm)
    assert_close(
        torch.linalg.vector_norm(module.decoder.first, dim=0),
        torch.full((3,), first_layer_norm(module.decoder), dtype=torch.float64),
    )
    masked = masked_copy(module, 0, norm.expand(6, 3))
    assert_close(masked.decode(new_mean), output)
    assert_close(module.factor_covariance, basis.T @ covariance @ basis)


def test_a_masked_copy_learns_its_mask(make_module):
    module = make_module(learned_mask=False)
    mask = torch.rand(6, 3, dtype=torch.float64)
    copy = masked_copy(module, 0, mask)
    assert copy.mask.requires_grad
    assert copy.config["learned_mask"]
    assert torch.equal(copy.mask.detach(), mask)
    assert not module.config["learned_mask"]


def test_the_gauge_commutes_with_the_order_of_factors(make_module):
    module = make_module()
    fix_gauge_(module.decoder)
    permute_factors_(module, torch.tensor([1, 2, 0]), torch.tensor([1.0, -1.0, 1.0]))
    before = module.decoder.first.detach().clone()
    fix_gauge_(module.decoder)
    assert_close(module.decoder.first.detach(), before)
