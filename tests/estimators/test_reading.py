"""Slopes, variance explained, order and sign, where all of them can be computed by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.estimators.explained import communalities, variance_shares
from sparsevae.estimators.reading import average_slopes, order_factors_
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

    def expected(z):
        return observation.to_user_units(module.decode(z))

    z = torch.randn(5000, 3, generator=torch.Generator().manual_seed(1))
    z = z / z.square().mean(0).sqrt()
    return SimpleNamespace(module_=module, _expected=expected), z, units


def ordered(estimator, z, named=()):
    shares = variance_shares(estimator.module_, z, estimator.module_.decode(z))
    return order_factors_(estimator, estimator.module_, z, shares.mean(0), named)


def test_slopes_of_a_linear_model_are_its_loadings_in_the_tables_units(linear):
    estimator, z, units = linear
    np.testing.assert_allclose(average_slopes(estimator, z), LOADINGS * units[:, None], atol=2e-3)


def test_variance_shares_are_squared_loadings_over_the_variance(linear):
    estimator, z, _ = linear
    x = estimator.module_.decode(z)
    total = (LOADINGS**2).sum(1) + 0.25
    shares = variance_shares(estimator.module_, z, x)
    np.testing.assert_allclose(shares, LOADINGS**2 / total[:, None], rtol=0.1)
    assert (shares[LOADINGS == 0] == 0).all()


def test_communalities_of_real_features_are_what_noise_leaves(linear):
    estimator, z, _ = linear
    estimator.module_.mask[1] = 0.0
    shares = communalities(estimator.module_, z, torch.zeros(len(z), 4))
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
        np.testing.assert_allclose(communalities(module, z, expected), 1.0, atol=1e-4)
    module.mask.zero_()
    flat = size * torch.tensor([0.1, 0.2, 0.3, 0.4])
    module.mask[0, 0] = 1.0
    z.zero_()  # factors that do not vary explain nothing, however much the rows differ in size
    assert communalities(module, z, flat)[0] < 0.05


def test_factors_are_ordered_and_signed_by_their_strongest_anchor(linear):
    estimator, z, _ = linear
    before = estimator.module_.decode(z)
    order = ordered(estimator, z)
    assert order.tolist() == [2, 0, 1]
    mask = estimator.module_.mask.numpy()
    np.testing.assert_allclose(mask, LOADINGS[:, [2, 0, 1]] * [-1.0, 1.0, 1.0], rtol=1e-6)
    turned = z[:, order] * torch.tensor([-1.0, 1.0, 1.0])
    assert_close(estimator.module_.decode(turned), before)


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
    estimator = SimpleNamespace(module_=module, _expected=module.decode)
    assert 0 < average_slopes(estimator, z)[0, 0] < 0.5
    order_factors_(estimator, module, z, np.ones(1))
    turned = average_slopes(estimator, -z)
    assert turned[0, 0] < 0
    assert turned[1, 0] == pytest.approx(0.5)


def test_a_factor_without_anchors_is_signed_by_its_strongest_feature(linear):
    estimator, z, _ = linear
    estimator.module_.mask.copy_(torch.tensor([[-0.5, 0.2, 0.0]] * 4))
    ordered(estimator, z)
    assert (estimator.module_.mask[:, 0] > 0).all()


def test_factors_that_a_user_has_named_keep_their_place(linear):
    estimator, z, _ = linear
    order = ordered(estimator, z, [1])
    assert order.tolist() == [2, 1, 0]
    order = ordered(estimator, z, [0, 1, 2])
    assert order.tolist() == [0, 1, 2]
