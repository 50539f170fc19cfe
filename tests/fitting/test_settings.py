"""What a fit is asked for: sizes of tables, starts, epochs, and new modules."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch

from sparsevae import SparseVAE
from sparsevae.fitting import RECIPES, FitSettings
from sparsevae.fitting.recipes import Budget
from sparsevae.fitting.settings import new_module, new_vae
from sparsevae.modules import SparseVAEModule


def settings_of(X, **options):
    return SparseVAE(**{"n_factors": 3, "random_state": 0, **options}).prepare_fit(X)


@pytest.mark.parametrize(
    "n_features, hidden_sizes, batch_size, small",
    [
        (32, (64, 64), 128, True),
        (33, (64, 64), 128, False),
        (32, (64, 65), 128, False),  # the widest layer counts
        (130, (32,), 64, False),
        (130, (32,), 63, True),
        (2048, (), 128, True),
        (2049, (), 128, False),
    ],
)
def test_a_table_is_small_by_batch_times_features_times_width(n_features, hidden_sizes, batch_size, small):
    X = np.random.default_rng(0).normal(size=(20, n_features))
    settings, data = settings_of(X, hidden_sizes=hidden_sizes, batch_size=batch_size)
    assert settings.small == FitSettings.is_small(data, hidden_sizes) == small
    recipe = RECIPES["default"]
    assert settings.effort == (recipe.small if small else recipe.large)
    assert settings.n_starts == (40 if small else 4)


def test_a_user_may_say_how_many_starts(make_table):
    assert settings_of(make_table(), n_init=7)[0].n_starts == 7


@pytest.mark.parametrize(
    "options, from_vae",
    [
        ({}, True),
        ({"hidden_sizes": ()}, False),
        ({"init": "rotation"}, False),
        ({"init": "random"}, False),
        ({"init": np.ones((7, 3))}, False),
        ({"recipe": "paper"}, False),
        ({"anchors": {0: 1}}, True),
    ],
)
def test_only_networks_whose_start_is_left_to_the_fit_begin_with_plain_vaes(make_table, options, from_vae):
    assert settings_of(make_table(), **options)[0].from_vae == from_vae


@pytest.mark.parametrize(
    "options, free",
    [
        ({}, True),
        ({"slab_rate": 2.0}, True),
        ({"spike_rate": 9.0}, False),
        ({"expected_features_per_factor": 3}, False),
    ],
)
def test_the_rate_is_free_unless_the_user_has_set_it(make_table, options, free):
    assert settings_of(make_table(), **options)[0].rate_is_free == free


def test_factors_with_anchors_are_named_once_and_in_order(make_table):
    settings, _ = settings_of(make_table(), anchors={"x5": 2, 0: 0, "x1": 2})
    assert settings.anchors == ((5, 2), (0, 0), (1, 2))
    assert settings.named_factors == [0, 2]


def test_epochs_are_those_of_the_recipe_and_of_the_table(make_table):
    settings, data = settings_of(make_table(), batch_size=12)
    assert settings.budget(data) == Budget.of(settings.recipe, None, 4)
    settings, data = settings_of(make_table(), max_epochs=20)
    assert settings.budget(data).total == 20
    with pytest.raises(FrozenInstanceError):
        settings.max_epochs = 21


def test_a_fit_at_one_rate_has_the_epochs_of_a_small_table():
    X = np.random.default_rng(0).normal(size=(50, 130))
    settings, data = settings_of(X, recipe="paper", hidden_sizes=(32,))
    assert not settings.small
    assert settings.budget(data) == replace(settings, small=True).budget(data)


@pytest.mark.parametrize(
    "recipe, expected",
    [
        ("default", {"gauge": True, "linear_path": True, "covariance": "learned", "beta": 1.0}),
        ("paper", {"gauge": False, "linear_path": False, "covariance": "identity", "beta": 1.0}),
        ("authors", {"gauge": False, "covariance": "identity", "beta": 1 / 3, "keep_rate_ratio": False}),
    ],
)
def test_a_recipe_decides_on_the_module(make_table, recipe, expected):
    config = settings_of(make_table(), recipe=recipe)[0].config
    assert {name: getattr(config, name) for name in expected} == expected


@pytest.mark.parametrize("likelihood", ["gaussian", "negative_binomial"])
def test_a_new_vae_has_the_network_of_a_new_module(make_table, likelihood):
    options = {"hidden_sizes": (6, 5), "likelihood": likelihood, "precision": "bfloat16"}
    made = []
    for make in (new_module, new_vae):
        settings, data = settings_of(make_table(likelihood), **options, features_per_step=4)
        made.append(make(settings, data, 2))
    module, vae = made
    assert isinstance(module, SparseVAEModule)
    assert vae.mask is None
    assert module.replicates == vae.replicates == (2,)
    state = module.state_dict()
    for name, value in vae.state_dict().items():
        assert torch.equal(value, state[name]), name
    for name, value in vars(vae.config).items():
        assert getattr(module.config, name) == value
    if likelihood == "gaussian":
        assert torch.equal(vae.nuisance.noise_scale, data.noise_scale)


def test_a_sample_gets_the_steps_of_all_rows_as_far_as_it_has_use_for_them(make_table):
    settings, data = settings_of(make_table(), max_epochs=20)
    usual, own = replace(settings, max_epochs=None).budget(data), settings.budget(data)
    assert own == Budget.of(settings.recipe, 20, data.n_steps)
    assert settings.budget(replace(data, passes=2.0)) == Budget.of(settings.recipe, 40, data.n_steps)
    assert settings.budget(replace(data, passes=1000.0)) == usual
