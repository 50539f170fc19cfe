"""Laplace rates: what sets them, and what a user may say instead."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sparsevae.estimators.fitting.rates import SHRINKAGE, default_spike_rate, shrinkage_for
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import FactorModule, Observation

N_FEATURES, N_FACTORS = 6, 3


@pytest.fixture
def module():
    observation = Observation.blank(get_likelihood("gaussian", N_FEATURES), N_FEATURES)
    return FactorModule(observation, N_FACTORS, (4,))


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
    observation = Observation.blank(get_likelihood("gaussian", N_FEATURES), N_FEATURES)
    module = FactorModule(observation, N_FACTORS, (), generator=torch.Generator().manual_seed(0))
    x = torch.randn(200, N_FEATURES, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        spread = module.encode(x)[0].square().mean(0).sqrt()
        module.encoder.transform_factors_(torch.diag(1.0 / spread))  # factors with E[z²] = 1
        values = torch.linspace(0.9, 0.05, N_FEATURES * N_FACTORS)
        module.mask.copy_(values.reshape(N_FACTORS, N_FEATURES).T)
    for expected in (1, 2, 5):
        shrinkage = float(shrinkage_for(module, x, expected))
        assert shrinkage == pytest.approx(float(values[expected * N_FACTORS - 1]), rel=1e-4)
        assert int((module.mask >= shrinkage * 0.999).sum()) == expected * N_FACTORS


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
    assert float(model.module_.spike_rate) == 20.0


@pytest.mark.parametrize("rates", [{"spike_rate": 0.5}, {"slab_rate": 1e6}])
def test_one_rate_alone_keeps_the_slab_below_the_spike(fit, make_model, make_table, rates):
    module = fit(make_model(recipe="default", n_init=1, **rates), make_table()).module_
    slab, spike = (np.asarray(rate) for rate in (module.slab_rate, module.spike_rate))
    assert (slab <= spike * (1 + 1e-6)).all()
