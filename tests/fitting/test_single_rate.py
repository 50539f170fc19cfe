"""The paper's algorithm as printed: one pair of rates, one start, and the authors' threshold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from sparsevae.fitting import RECIPES
from sparsevae.fitting.settings import new_module
from sparsevae.fitting.single_rate import train_at_one_rate
from sparsevae.fitting.state import Candidate
from sparsevae.training import TrainingLog


def trained(model, X, *, prepare=lambda module: None):
    """A candidate after its one stretch of training, and the table of starts."""
    settings, data = model.prepare_fit(X)
    module = new_module(settings, data, 1).select(0)
    with torch.no_grad():
        prepare(module)
    candidate = Candidate(module, TrainingLog(), settings.n_factors)
    return candidate, train_at_one_rate(settings, data, candidate, None)


@pytest.mark.parametrize(
    "given, expected",
    [
        ({}, (10.0, 1.0)),
        ({"spike_rate": 20}, (20.0, 1.0)),
        ({"spike_rate": 0.5}, (0.5, 0.5)),  # a slab above the spike would be none
        ({"slab_rate": 3}, (10.0, 3.0)),
        ({"spike_rate": 7.0, "slab_rate": 2.0}, (7.0, 2.0)),
    ],
)
def test_rates_are_the_papers_or_the_users_from_first_to_last(make_model, make_table, given, expected):
    candidate, _ = trained(make_model(**given), make_table())
    history = candidate.log.frame()
    assert set(history["phase"]) == {"final"}
    assert set(zip(history["spike_rate"], history["slab_rate"], strict=True)) == {expected}
    assert candidate.module.mask.rates() == {"spike_rate": expected[0], "slab_rate": expected[1]}
    assert history["learning_rate"].nunique() == 1


def test_the_table_has_the_one_start(make_model, make_table):
    candidate, starts = trained(make_model(), make_table())
    assert list(starts.columns) == [
        "start", "n_active", "n_nonzero", "bound", "score", "standard_error", "chosen",
    ]  # fmt: skip
    [row] = starts.to_dict("records")
    assert (row["start"], row["chosen"]) == ("given", True)
    assert row["n_nonzero"] == int(candidate.module.support().sum())
    assert np.isnan(row["bound"])


@pytest.mark.parametrize("recipe", ["paper", "authors"])
def test_only_proximal_steps_keep_zeros_once_they_are_there(make_model, make_table, recipe):
    """Zeros of the start have a gradient in the first epoch; here one is made after it."""

    def empty(module):
        update = module.update

        def update_and_empty(statistics, n_samples):
            update(statistics, n_samples)
            module.mask.weight.data[0, 0] = 0.0
            module.update = update

        module.update = update_and_empty

    recipe = replace(RECIPES[recipe], read_threshold=0.0, rates=(0.1, 0.1))
    candidate, _ = trained(make_model(recipe=recipe), make_table(), prepare=empty)
    assert bool(candidate.module.support()[0, 0]) == (not recipe.proximal)


def test_entries_up_to_the_threshold_are_read_as_zero_unless_they_are_fixed(make_model, make_table):
    def fix(module):
        module.mask.frozen[3, 1] = True
        module.mask.weight[3, 1] = 0.005

    masks = {}
    for threshold in (0.0, 0.01, 0.964):
        recipe = replace(RECIPES["authors"], read_threshold=threshold, rates=(300.0, 300.0))
        model = make_model(recipe=recipe, max_epochs=12)
        masks[threshold] = trained(model, make_table(), prepare=fix)[0].module.mask
    raw = masks[0.0].weight.detach()
    assert (raw != 0).all()
    for threshold in (0.01, 0.964):
        expected = torch.where((raw.abs() > threshold) | masks[0.0].frozen, raw, 0.0)
        assert torch.equal(masks[threshold].weight, expected)
    assert (masks[0.964].weight == 0).sum() > 3
    assert masks[0.964].weight[3, 1] == np.float32(0.005)


@pytest.mark.parametrize("per_batch", [False, True])
def test_the_penalty_may_be_charged_for_every_batch(make_model, make_table, per_batch, monkeypatch):
    scales = []
    monkeypatch.setattr(
        "sparsevae.fitting.single_rate.train", lambda *_, penalty_scale, **__: scales.append(penalty_scale)
    )
    recipe = replace(RECIPES["paper"], penalty_per_batch=per_batch)
    trained(make_model(recipe=recipe, batch_size=12), make_table())
    assert scales == [4.0 if per_batch else 1.0]
