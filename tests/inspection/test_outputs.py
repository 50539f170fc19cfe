"""Outputs when one factor changes, slopes, order and sign, where all of them can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.inspection.outputs import Outputs, average_slopes, order_factors_
from sparsevae.inspection.variance import variance_shares
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation

from .helpers import LOADINGS, new_module


def ordered(module, z, named=()):
    outputs = Outputs(module, z)
    shares = variance_shares(outputs, module.observation.batch(outputs.given))
    effects, slopes = average_slopes(outputs, module.observation.to_user_units, lambda output: output)
    return order_factors_(module, shares.mean(0), effects, slopes, named)


def slopes_of_outputs(module, z):
    [slopes] = average_slopes(Outputs(module, z), lambda output: output)
    return slopes


def test_outputs_with_a_factor_changed_are_those_of_decoding_all_features_again():
    observation = Observation.blank(get_likelihood("gaussian", 9), 9)
    rng = np.random.default_rng(0)
    module = new_module(observation, rng.normal(size=(9, 3)) * (rng.random((9, 3)) < 0.5), (8, 8))
    z = torch.as_tensor(rng.normal(size=(20, 3)), dtype=torch.float32)
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


def test_factors_are_ordered_and_signed_by_their_strongest_anchor(linear):
    module, z, _ = linear
    before = module.decode(z)
    order, _ = ordered(module, z)
    assert order.tolist() == [2, 0, 1]
    mask = module.mask.weight.numpy()
    np.testing.assert_allclose(mask, LOADINGS[:, [2, 0, 1]] * [-1.0, 1.0, 1.0], rtol=1e-6)
    turned = z[:, order] * torch.tensor([-1.0, 1.0, 1.0])
    assert_close(module.decode(turned), before)


def test_an_anchor_that_falls_and_rises_does_not_decide_the_sign():
    """|z| has the larger entry in the mask, and a slope that is an accident of the sample."""
    observation = Observation.blank(get_likelihood("gaussian", 2), 2)
    module = new_module(observation, np.array([[3.0], [1.0]]), (2,))
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
    module.mask.weight.copy_(torch.tensor([[-0.5, 0.2, 0.0]] * 4))
    ordered(module, z)
    assert (module.mask.weight[:, 0] > 0).all()


def test_factors_that_a_user_has_named_keep_their_place(linear):
    module, z, _ = linear
    order, _ = ordered(module, z, [1])
    assert order.tolist() == [2, 1, 0]
    order, _ = ordered(module, z, [0, 1, 2])
    assert order.tolist() == [0, 1, 2]
