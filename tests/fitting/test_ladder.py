"""The ladder: Laplace rates, what sets them, what a user may say instead, and the phases between them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.fitting.ladder import default_spike_rate, ladder_phases, shrinkage_for
from sparsevae.fitting.recipes import RECIPES, Ladder
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation, SparseVAEConfig, SparseVAEModule

N_FEATURES, N_FACTORS = 6, 3
SHRINKAGE = RECIPES["default"].shrinkage


def new_module(hidden_sizes):
    observation = Observation.blank(get_likelihood("gaussian", N_FEATURES), N_FEATURES)
    config = SparseVAEConfig(n_factors=N_FACTORS, hidden_sizes=hidden_sizes)
    return SparseVAEModule(observation, config, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def module():
    return new_module((4,))


def test_the_rate_is_a_share_of_the_samples_over_the_noise(module):
    module.noise_variance.fill_(0.5)
    rate = default_spike_rate(module, 10_000, torch.zeros(N_FEATURES))
    torch.testing.assert_close(rate, torch.full((N_FEATURES, 1), SHRINKAGE * 10_000 / 0.5))


def test_where_data_are_few_the_rate_is_the_largest_gradient_of_entries_without_effect(module):
    rate = default_spike_rate(module, 50, torch.zeros(N_FEATURES))
    expected = math.sqrt(2 * 50 * math.log(N_FEATURES * N_FACTORS))
    assert expected > SHRINKAGE * 50
    torch.testing.assert_close(rate, torch.full((N_FEATURES, 1), expected))


def test_the_median_serves_all_features(module):
    module.noise_variance.copy_(torch.tensor([1.0, 1.0, 1.0, 1.0, 0.9, 4.0]))
    rate = default_spike_rate(module, 100_000, torch.zeros(N_FEATURES))
    torch.testing.assert_close(rate, torch.full((N_FEATURES, 1), SHRINKAGE * 100_000))


def test_of_a_linear_model_the_loadings_above_the_shrinkage_are_as_many_as_expected():
    module = new_module(())
    x = torch.randn(200, N_FEATURES, generator=torch.Generator().manual_seed(1))
    batch = module.observation.batch(x)
    with torch.no_grad():
        spread = module.encode(batch)[0].square().mean(0).sqrt()
        module.encoder.transform_factors_(torch.diag(1.0 / spread))  # factors with E[z²] = 1
        values = torch.linspace(0.9, 0.05, N_FEATURES * N_FACTORS)
        module.mask.weight.copy_(values.reshape(N_FACTORS, N_FEATURES).T)
    for expected in (1, 2, 5):
        shrinkage = float(shrinkage_for(module, batch, expected))
        assert shrinkage == pytest.approx(float(values[expected * N_FACTORS - 1]), rel=1e-4)
        assert int((module.mask.weight >= shrinkage * 0.999).sum()) == expected * N_FACTORS


def test_fewer_features_expected_give_a_sparser_mask(fit, make_model):
    rng = np.random.default_rng(0)
    size = np.linspace(0.05, 0.9, 12)
    X = rng.normal(size=(500, 1)) * size + rng.normal(size=(500, 12)) * np.sqrt(1 - size**2)
    counts = []
    for expected in (3, 9, 12):
        settings = {"n_factors": 1, "hidden_sizes": (), "max_epochs": 150}
        model = make_model(recipe="default", **settings, expected_features_per_factor=expected)
        counts.append(int((fit(model, X).mask_ != 0).sum()))
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_whole_numbers_are_rates_too(fit, make_model, make_table, recipe):
    model = fit(make_model(recipe=recipe, n_init=1, spike_rate=20, slab_rate=2), make_table())
    assert float(model.module_.mask.spike_rate) == 20.0


@pytest.mark.parametrize("rates", [{"spike_rate": 0.5}, {"slab_rate": 1e6}])
def test_one_rate_alone_keeps_the_slab_below_the_spike(fit, make_model, make_table, rates):
    module = fit(make_model(recipe="default", n_init=1, **rates), make_table()).module_
    slab, spike = (np.asarray(rate) for rate in (module.mask.slab_rate, module.mask.spike_rate))
    assert (slab <= spike * (1 + 1e-6)).all()


# -- phases -------------------------------------------------------------------------------------------------


@given(st.integers(3, 400), st.floats(2.0, 1e4), st.floats(0.1, 2.0))
def test_a_ladder_begins_as_a_lasso_and_ends_as_a_spike_and_slab(epochs, spike, slab):
    phases = ladder_phases(Ladder(), epochs, 3e-3, spike_rate=spike, slab_rate=slab)
    assert phases[0].name == "lasso"
    assert phases[-1].name == "final"
    assert phases[0].spike_rate == phases[0].slab_rate == spike
    assert phases[-1].spike_rate == pytest.approx(spike)
    assert phases[-1].slab_rate == pytest.approx(slab)
    rates = [phase.slab_rate for phase in phases]
    assert rates == sorted(rates, reverse=True)
    assert all(phase.slab_rate <= phase.spike_rate * (1 + 1e-9) for phase in phases)


@given(st.integers(1, 400))
def test_a_ladder_has_the_epochs_asked_for(epochs):
    phases = ladder_phases(Ladder(), epochs, 3e-3, spike_rate=9.0, slab_rate=1.0)
    assert sum(phase.epochs for phase in phases) == epochs
    assert all(phase.epochs >= 1 for phase in phases)


def test_only_the_last_rung_counts_patience():
    phases = ladder_phases(Ladder(), 90, 3e-3, spike_rate=9.0, slab_rate=1.0, patience=7)
    assert [phase.name for phase in phases if phase.patience] == ["final"]


@given(st.integers(1, 400))
def test_zeros_may_return_at_any_time_during_the_lasso_only(epochs):
    phases = ladder_phases(Ladder(), epochs, 3e-3, spike_rate=9.0, slab_rate=1.0)
    assert all(phase.zeros_may_return == (phase.name == "lasso") for phase in phases)


def test_the_ladder_of_a_recipe_sets_lengths_rungs_and_warm_up():
    phases = ladder_phases(
        Ladder(lasso=0.5, climb=0.2, n_rungs=4, penalty_warmup=3), 100, 3e-3, spike_rate=9.0, slab_rate=1.0
    )
    assert [phase.name for phase in phases] == ["lasso", "ladder", "ladder", "ladder", "final"]
    assert [phase.epochs for phase in phases] == [50, 6, 7, 7, 30]
    assert [phase.penalty_warmup for phase in phases] == [3, 0, 0, 0, 0]


def test_rungs_are_geometric_and_rates_may_differ_between_features():
    spike = torch.tensor([[8.0], [80.0]])
    phases = ladder_phases(Ladder(), 90, 3e-3, spike_rate=spike, slab_rate=1.0)
    ratios = torch.stack([b.slab_rate / a.slab_rate for a, b in pairwise(phases)])
    torch.testing.assert_close(ratios, ratios[:1].expand_as(ratios))
    torch.testing.assert_close(phases[-1].slab_rate, torch.ones(2, 1))
