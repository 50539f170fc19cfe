from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors, make_sparse_factors
from sparsevae.fitting.agreement import agreeing_networks
from sparsevae.fitting.axes import matched_correlations
from sparsevae.metrics import support_f1
from sparsevae.modules.base import Loss


class Rival(torch.nn.Module):
    """A fit of which only its bound is known, the same for every row."""

    n_noise, has_own_threads = 1, False

    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def step(self, batch, noise, n_samples):
        return SimpleNamespace(loss=Loss(torch.tensor(-self.bound), torch.tensor(0.0), torch.tensor(0.0)))


# Without factors and linear: a linear model that predicts worse, better, and about as well.
EASY, HARD, ALIKE = (tuple(map(Rival, bounds)) for bounds in [(-1e6, -1e6), (-50.0, 1e6), (-1e3, -20.0)])


def test_factors_are_matched_whatever_their_order_and_sign():
    z = np.random.default_rng(0).normal(size=(300, 3))
    np.testing.assert_allclose(matched_correlations(z, np.exp(-z[:, [2, 0, 1]])), 1.0)


def test_a_constant_code_matches_nothing():
    z = np.random.default_rng(0).normal(size=(300, 2))
    assert matched_correlations(z, np.column_stack([z[:, 0], np.zeros(300)])).min() < 1e-9


def test_networks_agree_where_there_are_factors_to_identify():
    X = make_anchored_factors(800, 20, 2, random_state=0).X
    settings, data = SparseVAE(4, random_state=0, n_init=4, max_epochs=60).prepare_fit(X)
    [found] = agreeing_networks(settings, data, [2], EASY, None)
    assert found.n_factors == 2


def test_networks_that_predict_little_better_go_on_from_both_halves():
    X = make_anchored_factors(800, 20, 2, random_state=0).X
    settings, data = SparseVAE(4, random_state=0, n_init=4, max_epochs=60).prepare_fit(X)
    both = agreeing_networks(settings, data, [2], (Rival(-1e3), Rival(-15.0)), None)
    assert [found.n_factors for found in both] == [2, 2]


def test_networks_do_not_agree_on_noise():
    X = np.random.default_rng(0).normal(size=(200, 8))
    settings, data = SparseVAE(4, random_state=0, n_init=1, max_epochs=20).prepare_fit(X)
    assert agreeing_networks(settings, data, [3], EASY, None) == []


def test_a_network_must_predict_better_than_the_linear_model():
    X = make_anchored_factors(400, 12, 2, random_state=0).X
    settings, data = SparseVAE(3, random_state=0, n_init=2, max_epochs=40).prepare_fit(X)
    assert agreeing_networks(settings, data, [2], HARD, None) == []


def test_networks_of_ordered_answers_must_predict_much_better():
    X = np.digitize(make_anchored_factors(800, 20, 2, random_state=0).X, [-1.0, 0.0, 1.0]).astype(float)
    model = SparseVAE(4, likelihood="ordinal", random_state=0, n_init=4, max_epochs=60)
    settings, data = model.prepare_fit(X)
    [found] = agreeing_networks(settings, data, [2], EASY, None)
    assert found.n_factors == 2
    settings, data = model.prepare_fit(X)
    assert agreeing_networks(settings, data, [2], ALIKE, None) == []


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_factors_of_the_paper_are_left_to_networks(correlation):
    X = make_sparse_factors(500, correlation=correlation, random_state=0).X
    model = SparseVAE(5, random_state=0).fit(X)
    assert len(model.active_factors_) == 2
    assert "linear" not in " ".join(model.starts_["start"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20, 22, 38])
def test_one_unlucky_network_does_not_hide_what_larger_ones_agree_on(seed):
    data = make_anchored_factors(2000, 60, 6, correlation=0.6, random_state=seed)
    model = SparseVAE(10, random_state=seed).fit(data.X)
    assert len(model.active_factors_) == 6
    assert support_f1(data.mask, model.mask_) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("seed", [21, 102, 103])
def test_curved_small_tables_get_as_many_starts_as_they_need(seed):
    data = make_sparse_factors(500, correlation=0.8, random_state=seed)
    model = SparseVAE(5, random_state=seed).fit(data.X)
    assert len(model.active_factors_) == 2
    assert support_f1(data.mask, model.mask_) > 0.99
