"""What is expected of each stage: proportions, and seconds before a fit begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsevae import SparseVAE
from sparsevae.fitting.plan import expected_seconds, plan_fit
from sparsevae.fitting.procedure import STAGES
from sparsevae.fitting.state import FitState

NAMES = [stage.__name__ for stage in STAGES]


@pytest.fixture(scope="module")
def prepared():
    X = np.random.default_rng(0).normal(size=(300, 12))
    return SparseVAE(3, random_state=0).prepare_fit(X)


def test_a_fit_takes_longer_with_more_cells_and_in_proportion_to_them():
    small, large, larger = (expected_seconds(n, 1000) for n in (100, 100_000, 200_000))
    assert small < large
    assert larger / large == pytest.approx(2.0, rel=0.05)


def test_the_way_with_networks_that_agree_is_longer_and_known_after_the_axes(prepared):
    settings, data = prepared
    plain = plan_fit(settings, data, NAMES, FitState())
    agreed = plan_fit(settings, data, NAMES, FitState(networks_agree=True))
    assert plain.before["find_axes"] < plain.seconds["find_axes"] < agreed.seconds["find_axes"]
    assert plain.seconds["polish"] == 0.0
    assert agreed.seconds["climb"] > plain.seconds["climb"]
    assert agreed.total > plain.total
    assert agreed.epochs["climb"] > plain.epochs["climb"] > 0


def test_without_a_spine_the_fit_begins_with_its_starts(prepared):
    settings, data = prepared
    plan = plan_fit(replace(settings, gain_kept=1.0), data, NAMES, FitState())
    assert plan.epochs["find_axes"] == 0
    assert plan.seconds["find_starts"] > 0


def test_a_linear_fit_has_no_network_to_wait_for(prepared):
    settings, data = prepared
    linear = replace(settings, config=replace(settings.config, hidden_sizes=()))
    plan = plan_fit(linear, data, NAMES, FitState())
    assert plan.total < 0.5 * plan_fit(settings, data, NAMES, FitState()).total
    assert plan.epochs["climb"] == 0
