"""Slopes, variance explained, order and sign, where all of them can be computed by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.estimators.reading import average_slopes, order_factors_, variance_explained
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
    return SimpleNamespace(module_=module, _expected=expected), z, units


def test_slopes_of_a_linear_model_are_its_loadings_in_the_tables_units(linear):
    estimator, z, units = linear
    np.testing.assert_allclose(average_slopes(estimator, z), LOADINGS * units[:, None], atol=2e-3)


def test_variance_explained_is_the_mean_share_of_each_feature(linear):
    estimator, z, _ = linear
    total = (LOADINGS**2).sum(1) + 0.25
    np.testing.assert_allclose(
        variance_explained(estimator, z), (LOADINGS**2 / total[:, None]).mean(0), rtol=0.1
    )


def test_factors_are_ordered_and_signed_by_their_strongest_anchor(linear):
    estimator, z, _ = linear
    before = estimator.module_.decode(z)
    order = order_factors_(estimator, estimator.module_, z)
    assert order.tolist() == [2, 0, 1]
    mask = estimator.module_.mask.numpy()
    np.testing.assert_allclose(mask, LOADINGS[:, [2, 0, 1]] * [-1.0, 1.0, 1.0], rtol=1e-6)
    turned = z[:, order] * torch.tensor([-1.0, 1.0, 1.0])
    assert_close(estimator.module_.decode(turned), before)


def test_a_factor_without_anchors_is_signed_by_its_strongest_feature(linear):
    estimator, z, _ = linear
    estimator.module_.mask.copy_(torch.tensor([[-0.5, 0.2, 0.0]] * 4))
    order_factors_(estimator, estimator.module_, z)
    assert (estimator.module_.mask[:, 0] > 0).all()


def test_factors_that_a_user_has_named_keep_their_place(linear):
    estimator, z, _ = linear
    order = order_factors_(estimator, estimator.module_, z, named=[1])
    assert order.tolist() == [2, 1, 0]
    order = order_factors_(estimator, estimator.module_, z, named=[0, 1, 2])
    assert order.tolist() == [0, 1, 2]
