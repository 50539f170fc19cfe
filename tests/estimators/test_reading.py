"""Slopes, variance explained, order and sign, where all of them can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.estimators.explained import communalities, variance_shares
from sparsevae.estimators.reading import Outputs, average_slopes, order_factors_
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import FactorModule, Observation

LOADINGS = np.array([[0.5, 0.0, 0.0], [0.0, 0.0, -2.0], [0.0, 0.0, 1.0], [0.3, 0.0, -0.4]])


@pytest.fixture
def linear():
    """A linear model, whose slopes are its loadings times the units of the features."""
    units = np.array([1.0, 10.0, 2.0, 1.0])
    observation = Observation(get_likelihood("gaussian", 4), np.ones(4), units, np.zeros(4), np.ones(4))
    module = FactorModule(observation, 3, (), generator=torch.Generator().manual_seed(0))
    module.requires_grad_(False)
    module.mask.copy_(torch.as_tensor(LOADINGS))
    module.noise_variance.fill_(0.25)

    z = torch.randn(5000, 3, generator=torch.Generator().manual_seed(1))
    z = z / z.square().mean(0).sqrt()
    return module, z, units


def ordered(module, z, named=()):
    outputs = Outputs(module, z)
    shares = variance_shares(outputs, outputs.given)
    effects, slopes = average_slopes(outputs, module.observation.to_user_units, lambda output: output)
    return order_factors_(module, shares.mean(0), effects, slopes, named)


def slopes_of_outputs(module, z):
    [slopes] = average_slopes(Outputs(module, z), lambda output: output)
    return slopes


def test_outputs_with_a_factor_changed_are_those_of_decoding_all_features_again():
    observation = Observation.blank(get_likelihood("gaussian", 9), 9)
    generator = torch.Generator().manual_seed(0)
    module = FactorModule(observation, 3, (8, 8), generator=generator).requires_grad_(False)
    module.mask.copy_(torch.randn(9, 3, generator=generator) * (torch.rand(9, 3, generator=generator) < 0.5))
    z = torch.randn(20, 3, generator=generator)
    outputs = Outputs(module, z)
    for k in range(3):
        changed = z.clone()
        changed[:, k] = z[:, k] - 0.3
        assert_close(outputs.changed(k, z[:, k] - 0.3), module.decode(changed))
    assert_close(outputs.given, module.decode(z))


def test_effects_turn_with_the_factors_that_are_turned(linear):
    module, z, _ = linear
    before = slopes_of_outputs(module, z)
    order, sign = ordered(module, z)
    after = slopes_of_outputs(module, z[:, order.copy()] * torch.as_tensor(sign))
    np.testing.assert_allclose(before[:, order] * sign, after, atol=1e-5)


def test_slopes_of_a_linear_model_are_its_loadings_in_the_tables_units(linear):
    module, z, units = linear
    [slopes] = average_slopes(Outputs(module, z), module.observation.to_user_units)
    np.testing.assert_allclose(slopes, LOADINGS * units[:, None], atol=2e-3)


def test_variance_shares_are_squared_loadings_over_the_variance(linear):
    module, z, _ = linear
    x = module.decode(z)
    total = (LOADINGS**2).sum(1) + 0.25
    shares = variance_shares(Outputs(module, z), x)
    np.testing.assert_allclose(shares, LOADINGS**2 / total[:, None], rtol=0.1)
    assert (shares[LOADINGS == 0] == 0).all()


def test_communalities_of_real_features_are_what_noise_leaves(linear):
    module, z, _ = linear
    module.mask[1] = 0.0
    shares = communalities(Outputs(module, z), torch.zeros(len(z), 4))
    np.testing.assert_allclose(shares, [0.75, 0.0, 0.75, 0.75])


def made_of_counts(likelihood, size):
    observation = Observation.blank(get_likelihood(likelihood, 4), 4)
    module = FactorModule(observation, 3, (), generator=torch.Generator().manual_seed(0))
    module.requires_grad_(False)
    module.mask.copy_(torch.as_tensor(LOADINGS))
    z = torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
    observation.mean_total.fill_(1.0)
    rate = torch.softmax(module.decode(z), -1)
    return module, z, rate * size


@pytest.mark.parametrize("counts", ["poisson", "multinomial"])
def test_communalities_of_counts_are_the_share_reproduced_beyond_the_size_of_rows(counts):
    size = torch.linspace(1.0, 30.0, 200)[:, None]
    module, z, expected = made_of_counts(counts, size)
    if counts == "multinomial":
        np.testing.assert_allclose(communalities(Outputs(module, z), expected), 1.0, atol=1e-4)
    module.mask.zero_()
    flat = size * torch.tensor([0.1, 0.2, 0.3, 0.4])
    module.mask[0, 0] = 1.0
    z.zero_()  # factors that do not vary explain nothing, however much the rows differ in size
    assert communalities(Outputs(module, z), flat)[0] < 0.05


def test_factors_are_ordered_and_signed_by_their_strongest_anchor(linear):
    module, z, _ = linear
    before = module.decode(z)
    order, _ = ordered(module, z)
    assert order.tolist() == [2, 0, 1]
    mask = module.mask.numpy()
    np.testing.assert_allclose(mask, LOADINGS[:, [2, 0, 1]] * [-1.0, 1.0, 1.0], rtol=1e-6)
    turned = z[:, order] * torch.tensor([-1.0, 1.0, 1.0])
    assert_close(module.decode(turned), before)


def test_an_anchor_that_falls_and_rises_does_not_decide_the_sign():
    """|z| has the larger entry in the mask, and a slope that is an accident of the sample."""
    observation = Observation.blank(get_likelihood("gaussian", 2), 2)
    module = FactorModule(observation, 1, (2,), generator=torch.Generator().manual_seed(0))
    module.requires_grad_(False)
    module.mask.copy_(torch.tensor([[3.0], [1.0]]))
    module.decoder.first.copy_(torch.tensor([[1.0], [-1.0]]))
    module.decoder.heads.copy_(torch.tensor([[1.0, 1.0], [-0.5, 0.5]]))  # 3|z| and -z/2
    module.decoder.intercept.zero_()
    z = torch.cat([torch.linspace(-1, 1, 99), torch.tensor([2.0, 2.0])])[:, None]
    before = slopes_of_outputs(module, z)
    assert 0 < before[0, 0] < 0.5
    order_factors_(module, np.ones(1), before, before)
    turned = slopes_of_outputs(module, -z)
    assert turned[0, 0] < 0
    assert turned[1, 0] == pytest.approx(0.5)


def test_a_factor_without_anchors_is_signed_by_its_strongest_feature(linear):
    module, z, _ = linear
    module.mask.copy_(torch.tensor([[-0.5, 0.2, 0.0]] * 4))
    ordered(module, z)
    assert (module.mask[:, 0] > 0).all()


def test_factors_that_a_user_has_named_keep_their_place(linear):
    module, z, _ = linear
    order, _ = ordered(module, z, [1])
    assert order.tolist() == [2, 1, 0]
    order, _ = ordered(module, z, [0, 1, 2])
    assert order.tolist() == [0, 1, 2]
