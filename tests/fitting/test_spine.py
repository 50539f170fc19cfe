from dataclasses import replace

import numpy as np
import pytest
import torch

from sparsevae import SparseVAE
from sparsevae.factor_analysis import LinearFactors
from sparsevae.fitting.procedure import linear_candidate, train_network
from sparsevae.fitting.spine import (
    Spine,
    find_spine,
    linear_module,
    network_module,
    sparse_loadings,
)
from sparsevae.fitting.state import Candidate
from sparsevae.training import TrainingLog

from .resuming import count_table, linear_table


@pytest.fixture(scope="module")
def prepared():
    """Settings and rows of a table of two factors with six features each."""
    return SparseVAE(4, hidden_sizes=(8,), random_state=0).prepare_fit(linear_table(0.0))


@pytest.fixture(scope="module")
def spine(prepared):
    return find_spine(*prepared)


def test_the_blocks_are_found_with_exact_zeros(spine):
    support = spine.factors.loadings != 0
    assert support.shape == (12, 2)
    np.testing.assert_array_equal(support.sum(1), 1)
    assert len(set(support[:6].argmax(1))) == len(set(support[6:].argmax(1))) == 1


def test_the_sparsest_point_that_keeps_the_gain_is_taken(spine, prepared):
    best = max(gain for _, gain, _ in spine.path)
    kept = [s for s, gain, _ in spine.path if gain >= prepared[0].gain_kept * best]
    assert spine.shrinkage == max(kept)
    links = [n for _, _, n in spine.path]
    assert links == sorted(links, reverse=True)


def test_a_stricter_rate_keeps_fewer_links():
    loadings = np.random.default_rng(0).uniform(-0.6, 0.6, size=(50, 3))
    factors = LinearFactors(loadings, np.eye(3), np.full(50, 0.5))
    links = [(sparse_loadings(factors, 5000, rate).loadings != 0).sum() for rate in (0.0, 0.1, 0.3)]
    assert links[0] > links[1] > links[2] > 0


def test_strong_loadings_are_selected_and_not_shrunk():
    loadings = np.kron(np.eye(2), np.full((5, 1), 0.8)) + 0.01
    factors = LinearFactors(loadings, np.eye(2), np.full(10, 0.36))
    sparse = sparse_loadings(factors, 2000, 0.1)
    np.testing.assert_array_equal(sparse.loadings != 0, loadings > 0.5)
    np.testing.assert_allclose(sparse.loadings[sparse.loadings != 0], 0.81, atol=0.01)
    assert (sparse.uniqueness >= factors.uniqueness).all()


def test_uncorrelated_axes_make_each_loading_a_problem_of_its_own():
    rng = np.random.default_rng(0)
    factors = LinearFactors(rng.normal(size=(40, 3)), np.eye(3), np.full(40, 0.5))
    sparse = sparse_loadings(factors, 500, 0.3)
    kept = sparse.loadings != 0
    assert np.abs(factors.loadings[kept]).min() > np.abs(factors.loadings[~kept]).max()


def test_a_spine_is_read_as_it_was_written(spine):
    again = Spine.from_dict(spine.to_dict())
    np.testing.assert_array_equal(again.factors.loadings, spine.factors.loadings)
    assert again.path == spine.path


def test_the_encoder_of_the_linear_module_is_the_posterior(prepared, spine):
    settings, data = prepared
    module = linear_module(settings, data, spine)
    batch = data.everything.spread(50)
    mean, log_variance = module.encode(batch)
    expected = batch.x.double().numpy() @ spine.factors.maps()
    np.testing.assert_allclose(mean[:, :2].detach(), expected, atol=1e-5)
    variances = np.diag(spine.factors.posterior_covariance())
    np.testing.assert_allclose(log_variance.exp()[:, :2].detach(), np.tile(variances, (50, 1)), rtol=1e-4)


def test_the_network_begins_as_the_linear_model(prepared, spine):
    settings, data = prepared
    linear = linear_module(settings, data, spine)
    network = network_module(settings, data, linear, spine)
    batch = data.everything.spread(50)
    z = linear.encode(batch)[0]
    torch.testing.assert_close(network.encode(batch)[0], z)
    torch.testing.assert_close(network.decode(z), linear.decode(z))
    assert network.config.spine == 1.0


def test_a_contrast_of_counts_keeps_its_signs_and_is_on_the_scale_of_logarithms():
    # Relative to the size of a row, features that take turns with two factors show one contrast.
    settings, data = SparseVAE(2, likelihood="poisson", random_state=0).prepare_fit(count_table())
    spine = find_spine(settings, data)
    candidate = linear_candidate(settings, data, spine, None)
    weights = candidate.module.mask.weight.detach().numpy()[:, 0]
    assert len(set(np.sign(weights[::2]))) == len(set(np.sign(weights[1::2]))) == 1
    assert np.sign(weights[0]) != np.sign(weights[1])
    assert np.abs(weights).min() > 0.3
    np.testing.assert_array_equal(weights != 0, spine.factors.loadings[:, 0] != 0)


def test_counts_that_add_up_get_parts():
    rng = np.random.default_rng(0)
    X = rng.poisson(5 * rng.gamma(0.5, size=(500, 8)) @ np.kron(np.eye(8), np.ones(4)) + 0.5)
    settings, data = SparseVAE(10, likelihood="poisson", random_state=0).prepare_fit(X)
    loadings = find_spine(settings, data).factors.loadings
    assert (loadings >= 0).all()
    assert (loadings > 0).any()


@pytest.mark.parametrize("X", [np.ones((5, 4)), np.random.default_rng(0).normal(size=(30, 2))])
def test_tables_too_small_for_a_factor_analysis_have_no_spine(X):
    settings, data = SparseVAE(2, hidden_sizes=(4,)).prepare_fit(X + np.arange(len(X))[:, None])
    assert find_spine(settings, data) is None


def test_constant_features_have_no_loadings():
    X = np.column_stack([linear_table(0.0, 300), np.ones(300)])
    with pytest.warns(UserWarning, match="constant"):
        settings, data = SparseVAE(3, hidden_sizes=(4,), random_state=0).prepare_fit(X)
    assert not find_spine(settings, data).factors.loadings[-1].any()


def test_what_the_user_gives_of_the_mask_keeps_its_meaning():
    X = linear_table(0.0, 100)
    asked = [{}, {"gain_kept": 1.0}, {"anchors": {0: 0}}, {"init": "rotation"}, {"spike_rate": 20.0},
             {"hidden_sizes": ()}, {"recipe": "paper"}, {"expected_features_per_factor": 4}]  # fmt: skip
    first = [SparseVAE(2, **options).prepare_fit(X)[0].spine_first for options in asked]
    assert first == [options in ({}, {"gain_kept": 1.0}, {"hidden_sizes": ()}) for options in asked]


def test_without_the_recipes_spine_the_ladder_is_climbed():
    settings, _ = SparseVAE(2).prepare_fit(linear_table(0.0, 100))
    assert not replace(settings, recipe=replace(settings.recipe, spine=None)).spine_first


def test_training_a_network_leaves_the_axes_alone(prepared, spine):
    settings, data = prepared
    linear = linear_candidate(settings, data, spine, None)
    candidate = Candidate(network_module(settings, data, linear.module, spine), TrainingLog(), 2)
    batch = data.everything.spread(50)
    before = candidate.module.encode(batch)[0].clone()
    train_network(settings, data, candidate, None)
    after = candidate.module.encode(batch)[0]
    correlations = [np.corrcoef(before[:, k].detach(), after[:, k].detach())[0, 1] for k in range(2)]
    np.testing.assert_allclose(correlations, 1.0, atol=1e-6)


def test_where_many_values_are_missing_the_encoder_learns():
    X = linear_table(0.0)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    settings, data = SparseVAE(3, hidden_sizes=(4,), random_state=0).prepare_fit(X)
    module = linear_module(settings, data, find_spine(settings, data))
    assert not module.config.held_means


def test_what_sparse_links_cost_is_known(spine):
    best = max(gain for _, gain, _ in spine.path)
    [own] = [gain for shrinkage, gain, _ in spine.path if shrinkage == spine.shrinkage]
    assert spine.gain_kept == pytest.approx(own / best)
    assert spine.n_linear == 2


def test_the_links_of_every_point_are_kept_and_those_of_the_chosen_one_are_its_own(spine):
    shrinkages = [shrinkage for shrinkage, _, _ in (*spine.path, *spine.stricter)]
    assert shrinkages == sorted(shrinkages)
    assert len(spine.supports) == len(shrinkages) > len(spine.path)
    chosen = spine.supports[shrinkages.index(spine.shrinkage)]
    np.testing.assert_array_equal(chosen, spine.factors.loadings != 0)
    again = Spine.from_dict(spine.to_dict())
    np.testing.assert_array_equal(again.supports, spine.supports)
    assert again.stricter == spine.stricter


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
def test_no_seed_moves_the_axes(likelihood):
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(400, 3)) @ np.kron(np.eye(3), np.ones(6))
    X = (
        rng.poisson(np.exp(1 + 0.7 * signal))
        if likelihood == "poisson"
        else signal + rng.normal(size=(400, 18))
    )
    options = {"likelihood": likelihood, "hidden_sizes": (), "size_factors": False}
    first, second = (
        find_spine(*SparseVAE(4, random_state=seed, **options).prepare_fit(X)) for seed in (0, 1)
    )
    np.testing.assert_array_equal(first.supports, second.supports)
    np.testing.assert_allclose(first.factors.correlation, second.factors.correlation, atol=1e-6)
