"""Variance explained by a factor, a link and all factors together, where it can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.inspection.outputs import Outputs
from sparsevae.inspection.variance import (
    communalities,
    left_shares,
    order_features,
    signed_strength,
    variance_shares,
)
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation

from .helpers import LOADINGS, column, new_module


def test_variance_shares_are_squared_loadings_over_the_variance(linear):
    module, z, _ = linear
    total = (LOADINGS**2).sum(1) + 0.25
    shares = variance_shares(Outputs(module, z), module.observation.batch(module.decode(z)))
    np.testing.assert_allclose(shares, LOADINGS**2 / total[:, None], rtol=0.1)
    assert (shares[LOADINGS == 0] == 0).all()


def test_communalities_of_real_features_are_what_noise_leaves(linear):
    module, z, _ = linear
    module.mask.weight[1] = 0.0
    shares = communalities(Outputs(module, z), module.observation.batch(torch.zeros(len(z), 4)))
    np.testing.assert_allclose(shares, [0.75, 0.0, 0.75, 0.75])


def made_of_counts(likelihood, size):
    observation = Observation.blank(get_likelihood(likelihood, 4), 4)
    module = new_module(observation, LOADINGS)
    z = torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
    observation.mean_total.fill_(1.0)
    rate = torch.softmax(module.decode(z), -1)
    return module, z, rate * size


@pytest.mark.parametrize("counts", ["poisson", "multinomial"])
def test_communalities_of_counts_are_the_share_reproduced_beyond_the_size_of_rows(counts):
    size = torch.linspace(1.0, 30.0, 200)[:, None]
    module, z, expected = made_of_counts(counts, size)
    if counts == "multinomial":
        batch = module.observation.batch(expected)
        np.testing.assert_allclose(communalities(Outputs(module, z), batch), 1.0, atol=1e-4)
    module.mask.weight.zero_()
    flat = size * torch.tensor([0.1, 0.2, 0.3, 0.4])
    module.mask.weight[0, 0] = 1.0
    z.zero_()  # factors that do not vary explain nothing, however much the rows differ in size
    assert communalities(Outputs(module, z), module.observation.batch(flat))[0] < 0.05


@pytest.mark.parametrize("counts", ["poisson", "negative_binomial", "multinomial"])
def test_shares_of_counts_are_on_the_scale_of_the_outputs(counts):
    """Of a linear model by hand: loading times factor over all of these, and what a count's noise adds."""
    module, z, expected = made_of_counts(counts, torch.full((200, 1), 20.0))
    batch = module.observation.batch(expected)
    shares = variance_shares(Outputs(module, z), batch)
    eta, mean = z @ torch.as_tensor(LOADINGS, dtype=torch.float32).T, expected.mean(0)
    noise = 1.0 / mean + (1.0 if counts == "negative_binomial" else 0.0)  # its dispersion is one at the start
    own = torch.as_tensor(LOADINGS, dtype=torch.float32).square() * z.var(0, unbiased=False)
    np.testing.assert_allclose(shares, own / (eta.var(0) + noise)[:, None], rtol=1e-4)
    assert (shares[LOADINGS == 0] == 0).all()


def test_a_large_row_does_not_decide_what_a_factor_explains():
    module, z, expected = made_of_counts("poisson", torch.full((200, 1), 20.0))
    z[0] = 8.0  # its expected counts are thousands of times those of the others
    of_all = variance_shares(Outputs(module, z), module.observation.batch(expected))
    of_others = variance_shares(Outputs(module, z[1:]), module.observation.batch(expected[1:]))
    links = LOADINGS != 0
    assert np.corrcoef(of_all[links], of_others[links])[0, 1] > 0.9


def test_strength_is_the_signed_root_of_a_share_and_zero_without_a_link():
    mask = np.array([[1.0, 0.0], [-2.0, 0.5]])
    effects = np.array([[-3.0, 0.0], [0.0, 2.0]])
    shares = np.array([[0.25, 0.09], [0.16, 0.0]])
    np.testing.assert_allclose(signed_strength(mask, effects, shares), [[-0.5, 0.0], [0.4, 0.0]])


def test_strength_of_a_linear_model_is_the_standardised_loading(made):
    model, X = made
    k = column(model, 0)
    expected = np.corrcoef(X[:, 0], model.transform(X)[:, k])[0, 1]
    assert model.link_strength()[0, k] == pytest.approx(expected, abs=0.1)
    assert (model.link_strength()[model.mask_ == 0] == 0).all()


def test_a_feature_of_two_factors_comes_after_the_anchors_of_its_stronger_one(made):
    model, _ = made
    order = model.feature_order().tolist()
    assert order.index(2) > min(order.index(0), order.index(1))
    assert sorted(order) == [0, 1, 2, 3]


def test_features_are_ordered_by_factor_then_anchors_then_strength():
    """The second and the fourth are of both factors; the fifth has a link that explains nothing."""
    mask = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    strength = np.array(
        [[0.0, 0.5], [-0.9, 0.3], [0.4, 0.0], [0.2, 0.7], [0.0, 0.0], [0.0, 0.0], [-0.6, 0.0]]
    )
    assert order_features(mask, strength).tolist() == [6, 2, 4, 1, 0, 3, 5]


@pytest.mark.parametrize("counts", ["poisson", "multinomial"])
def test_nothing_is_left_of_an_anchor_whose_other_factors_are_held(counts):
    module, z, expected = made_of_counts(counts, torch.linspace(1.0, 30.0, 200)[:, None])
    left = left_shares(Outputs(module, z), module.observation.batch(expected))
    anchors = np.flatnonzero((LOADINGS != 0).sum(1) == 1)
    assert len(anchors)
    own = (LOADINGS[anchors] != 0).argmax(1)
    np.testing.assert_allclose(left[anchors, own], 0.0, atol=1e-6)
    for j, k in zip(anchors, own, strict=True):
        assert (np.delete(left[j], k) > 0.5).all()
