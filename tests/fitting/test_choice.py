"""The choice among candidates: held-out bound, charge per non-zero, one-standard-error rule."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.fitting.choice import (
    drop_lone_factors_,
    held_out_scores,
    importance_bounds,
    null_module,
    parsimonious,
    pays_for_loadings,
    reasons,
    simplest,
)
from sparsevae.fitting.recipes import Looser
from sparsevae.modules import SparseVAEModule
from sparsevae.training import Phase, train
from sparsevae.training.loop import held_out_bound


def bounds_at(*means, spread=0.0, n_rows=100):
    noise = np.random.default_rng(0).normal(size=(len(means), n_rows))
    noise = noise - noise.mean(1, keepdims=True)
    return np.array(means)[:, None] + spread * noise


def test_scores_are_the_bound_of_all_rows_less_half_log_n_per_non_zero():
    _, scores, errors = parsimonious(bounds_at(-2.0, -3.0), np.array([2, 1]), np.array([8, 4]), 500)
    np.testing.assert_allclose(scores, [-1000 - 4 * math.log(500), -1500 - 2 * math.log(500)])
    np.testing.assert_allclose(errors, 0.0, atol=1e-9)


def test_without_noise_the_best_score_is_chosen():
    assert parsimonious(bounds_at(-2.0, -1.9, -2.5), np.array([2, 2, 1]), np.array([8, 9, 2]), 500)[0] == 1


def test_of_near_ties_the_sparsest_is_chosen():
    noisy = bounds_at(-2.00, -1.98, -2.60, spread=0.3)
    chosen, scores, errors = parsimonious(noisy, np.array([2, 2, 1]), np.array([8, 9, 2]), 500)
    assert scores.argmax() == 1
    assert scores[1] - scores[0] < errors[0]
    assert scores[1] - scores[2] > errors[2]
    assert chosen == 0


def test_of_near_ties_fewer_factors_come_before_fewer_non_zeros():
    noisy = bounds_at(-2.00, -1.98, spread=0.5)
    assert parsimonious(noisy, np.array([4, 5]), np.array([41, 40]), 500)[0] == 0


def test_errors_are_those_of_paired_differences():
    rows = bounds_at(-2.0, spread=1.0)
    shifted = np.concatenate([rows, rows - 0.1])
    _, _, errors = parsimonious(shifted, np.array([2, 2]), np.array([5, 4]), 300)
    np.testing.assert_allclose(errors, 0.0, atol=1e-9)


def test_equally_sparse_ties_go_to_the_better_score():
    assert parsimonious(bounds_at(-2.01, -2.0, spread=0.5), np.array([2, 2]), np.array([8, 8]), 500)[0] == 1


def test_a_candidate_that_failed_is_never_chosen():
    bounds = np.concatenate([np.full((1, 100), -np.inf), bounds_at(-2.0)])
    chosen, scores, errors = parsimonious(bounds, np.array([0, 2]), np.array([0, 8]), 500)
    assert chosen == 1
    assert scores[0] == -np.inf
    assert np.isfinite(errors).all()


@pytest.mark.parametrize("n_rows", [1, 2])
def test_few_held_out_rows_are_enough(n_rows):
    chosen, _, errors = parsimonious(
        bounds_at(-2.0, -1.0, n_rows=n_rows), np.array([1, 1]), np.array([3, 3]), 10
    )
    assert chosen == 1
    assert np.isfinite(errors).all()


def test_factors_that_one_feature_alone_uses_are_dropped_unless_known(fit, make_model, make_table):
    module = fit(make_model(n_factors=4), make_table()).module_
    mask = torch.zeros(7, 4)
    mask[:3, 0] = mask[4, 1] = mask[5, 2] = mask[5:, 3] = 1.0
    module.mask.weight.copy_(mask)
    module.mask.frozen[5, 2] = True
    assert drop_lone_factors_(module) == 1
    assert module.active().tolist() == [1, 0, 1, 1]
    assert reasons(module, 3, 1)[1].startswith("one feature alone")


def test_the_candidates_compared_are_shown(fit, make_model, make_table):
    model = fit(make_model(recipe="default", n_init=1), make_table())
    assert list(model.starts_.columns) == [
        "start", "n_active", "n_nonzero", "bound", "score", "standard_error", "chosen",
    ]  # fmt: skip
    assert model.starts_["start"].iloc[-1] == "none"
    assert model.starts_["chosen"].sum() == 1


@pytest.mark.parametrize(
    "gain, spread, n_more, pays",
    [
        (0.02, 0.0, 10, True),  # 2 nats a loading
        (0.009, 0.0, 10, False),  # less than one
        (0.02, 0.06, 10, False),  # 20 nats, of which ten are the price, and ten not two standard errors
        (0.02, 0.03, 10, True),
        (-0.01, 0.0, -20, True),  # a sparser mask that costs less than it saves
    ],
)
def test_a_looser_mask_must_gain_a_nat_per_loading_and_two_standard_errors(gain, spread, n_more, pays):
    reference = np.random.default_rng(0).normal(size=100)
    bounds = reference + gain + spread * np.tile([1.0, -1.0], 50)
    assert pays_for_loadings(Looser(), bounds, reference, n_more, 1000) == pays


def test_a_single_held_out_row_pays_for_nothing():
    assert not pays_for_loadings(Looser(), np.array([5.0]), np.array([0.0]), 1, 1000)


def test_price_and_certainty_are_the_recipes():
    reference = np.random.default_rng(0).normal(size=100)
    bounds = reference + 0.02 + 0.03 * np.tile([1.0, -1.0], 50)  # 20 nats, with a standard error of 3
    offers = [Looser(price=price, clearly=clearly) for price, clearly in ((1, 2), (1, 4), (1.5, 2), (0, 6))]
    assert [pays_for_loadings(offer, bounds, reference, 10, 1000) for offer in offers] == [1, 0, 0, 1]


# -- bounds -------------------------------------------------------------------------------------------------


def test_bounds_of_replicates_are_those_of_their_modules(make_module, make_batches):
    modules = [make_module(seed=seed) for seed in range(2)]
    batches = make_batches(modules[0])
    together = importance_bounds(SparseVAEModule.stack(modules), batches)
    for r, module in enumerate(modules):
        assert_close(together[r], importance_bounds(module, batches), atol=1e-4, rtol=1e-5)


def test_the_importance_bound_is_the_tighter_one(make_module, make_batches):
    module = make_module()
    batches = make_batches(module)
    phase = Phase("final", 10, (0.01, 0.01), spike_rate=20.0, slab_rate=1.0)
    train(module, batches, [phase], generator=torch.Generator().manual_seed(0))
    assert importance_bounds(module, batches).mean() > held_out_bound(module, batches)


@pytest.mark.parametrize("validation_fraction, n_rows", [(0.2, 12), (0.0, 60)])
def test_candidates_are_compared_on_held_out_rows_or_on_all(
    fit, make_model, make_table, validation_fraction, n_rows
):
    model = make_model(recipe="default", n_init=1, validation_fraction=validation_fraction)
    _, data = model.prepare_fit(make_table())
    module = fit(model, make_table()).module_
    chosen, table = held_out_scores([module, null_module(module, data)], data)
    rows = data.training if data.validation is None else data.validation
    assert rows.n_rows == n_rows
    bounds = importance_bounds(module, rows)
    assert len(bounds) == n_rows
    assert table["bound"][0] == pytest.approx(float(bounds.double().mean()))
    assert table["n_nonzero"].tolist() == [int(module.support().sum()), 0]
    assert table["chosen"].tolist() == [chosen == 0, chosen == 1]


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson", "multinomial"])
def test_the_empty_mask_has_every_feature_at_its_mean(fit, make_model, make_table, likelihood):
    X = make_table(likelihood)
    model = make_model(likelihood)
    _, data = model.prepare_fit(X)
    module = fit(model, X).module_
    null = null_module(module, data)
    assert not null.support().any()
    assert module.support().any()  # of the module itself nothing changes
    output = null.decode(torch.randn(3, 2, generator=torch.Generator().manual_seed(0)))
    observation = null.observation
    size = torch.ones(3) if observation.size_columns.any() else None
    total = data.feature_mean.sum().expand(3) if observation.total_columns.any() else None
    mean = observation.to_user_units(observation.likelihood.mean(output, size=size, total=total))
    np.testing.assert_allclose(mean.detach(), np.tile(X.mean(0), (3, 1)), rtol=1e-4)


def test_the_first_candidate_that_keeps_enough_of_the_gain_is_the_simplest():
    noisy = bounds_at(-2.1, -2.0, -4.0, spread=0.1)
    assert simplest(noisy, 0.9) == 0
    assert simplest(noisy, 0.99) == 1


@pytest.mark.parametrize("gain, expected", [(0.05, 2), (0.5, 1)])
def test_a_gain_that_chance_may_have_is_none(gain, expected):
    noisy = bounds_at(-2.0 - gain, -2.0 + gain, -2.0, spread=0.5)
    assert simplest(noisy, 0.9) == expected


def test_rows_of_weight_two_are_rows_that_come_twice():
    noisy = bounds_at(-1.9, -1.85, -2.0, spread=0.6)
    twice = simplest(np.concatenate([noisy, noisy], 1), 0.9)
    assert simplest(noisy, 0.9, np.full(noisy.shape[1], 2.0)) == twice


def test_rows_that_are_impossible_without_factors_too_say_nothing():
    bounds = bounds_at(-1.9, -2.0)
    bounds[:, 3] = -np.inf  # the difference of infinities is no number, and no warning either
    assert simplest(bounds, 0.9) in (0, 1)
