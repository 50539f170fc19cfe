"""Phases and the two-sided ladder."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.training import Phase
from sparsevae.training.schedule import ladder


def test_the_learning_rate_goes_linearly_from_its_first_to_its_last_value():
    phase = Phase("final", 5, (1.0, 0.2))
    assert [phase.rate_at(epoch) for epoch in range(5)] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])
    assert Phase("final", 1, (1.0, 0.2)).rate_at(0) == 1.0


@given(st.integers(3, 400), st.floats(2.0, 1e4), st.floats(0.1, 2.0))
def test_a_ladder_begins_as_a_lasso_and_ends_as_a_spike_and_slab(epochs, spike, slab):
    phases = ladder(epochs, 3e-3, spike_rate=spike, slab_rate=slab)
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
    phases = ladder(epochs, 3e-3, spike_rate=9.0, slab_rate=1.0)
    assert sum(phase.epochs for phase in phases) == epochs
    assert all(phase.epochs >= 1 for phase in phases)


def test_only_the_last_rung_counts_patience():
    phases = ladder(90, 3e-3, spike_rate=9.0, slab_rate=1.0, patience=7)
    assert [phase.name for phase in phases if phase.patience] == ["final"]


def test_rungs_are_geometric_and_rates_may_differ_between_features():
    spike = torch.tensor([[8.0], [80.0]])
    phases = ladder(90, 3e-3, spike_rate=spike, slab_rate=1.0)
    ratios = torch.stack([b.slab_rate / a.slab_rate for a, b in pairwise(phases)])
    torch.testing.assert_close(ratios, ratios[:1].expand_as(ratios))
    torch.testing.assert_close(phases[-1].slab_rate, torch.ones(2, 1))
