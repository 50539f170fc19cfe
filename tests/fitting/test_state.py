"""The state of a fit between two stages: what it holds, and that it can be written and read."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch

from sparsevae.fitting import FitState, fit_module
from sparsevae.fitting.state import Candidate
from sparsevae.persistence.codec import decode, encode
from sparsevae.training import Phase, RowSource, TrainingLog, train

from ..training.helpers import assert_equal_states, make_batches, make_module
from .resuming import prepare


def written_and_read(values):
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(encode(values, arrays, "state"))
    return decode(json.loads(text), arrays)


@pytest.fixture
def candidate():
    """With a foot, tensors for rates, and a history with and without a held-out bound."""
    module = make_module(n_factors=3)
    with torch.no_grad():
        module.mask.frozen[0, 1] = module.mask.known[1, 0] = True
        module.mask.weight[2] = 0.0
    foot = Candidate(module.clone(), TrainingLog(), 2)
    batches = make_batches(module)
    rates = {"spike_rate": torch.linspace(2.0, 9.0, 5).unsqueeze(-1), "slab_rate": torch.ones(5, 1)}
    phases = [Phase("ladder", 1, (0.01, 0.01), **rates), Phase("final", 2, (0.01, 0.01), **rates, patience=5)]
    log = train(
        module, batches, phases, generator=torch.Generator().manual_seed(0), validation=make_batches(module)
    )
    return Candidate(module, log, 2, rate=0.3, n_lone=1, foot=foot, bounds=np.array([0.1, -np.inf, np.nan]))


def rows_of(module):
    return RowSource(np.zeros((2, module.n_features), dtype=np.float32), module.observation)


def test_a_candidate_is_read_as_it_was_written(candidate):
    read = Candidate.from_dict(written_and_read(candidate.to_dict()), rows_of(make_module()))
    assert_equal_states(read.module, candidate.module)
    assert read.module.config == candidate.module.config
    for name, rate in candidate.module.mask.rates().items():
        assert torch.equal(read.module.mask.rates()[name], rate)
    pd.testing.assert_frame_equal(read.log.frame(), candidate.log.frame(), check_exact=True)
    np.testing.assert_array_equal(read.bounds, candidate.bounds)
    assert (read.n_factors, read.rate, read.n_lone) == (2, 0.3, 1)
    assert read.label == candidate.label == "2, 0.3 of the rate"
    assert_equal_states(read.foot.module, candidate.foot.module)
    assert read.foot.foot is None
    assert read.foot.label == "2"


def test_what_is_read_is_independent_of_what_was_written(candidate):
    before = candidate.module.clone()
    values = written_and_read(candidate.to_dict())
    first, second = (Candidate.from_dict(values, rows_of(make_module())) for _ in range(2))
    with torch.no_grad():
        first.module.mask.weight.fill_(7.0)
    first.log.epochs.append(first.log.epochs[0])
    for other in (candidate, second):
        assert_equal_states(other.module, before)
        assert len(other.log.epochs) == 3


@pytest.mark.parametrize(
    "n_factors, rate, label", [(0, 1.0, "none"), (3, 1.0, "3"), (3, 0.5, "3, 0.5 of the rate")]
)
def test_the_table_of_starts_calls_candidates_by_factors_and_rate(make_module, n_factors, rate, label):
    assert Candidate(make_module(), TrainingLog(), n_factors, rate=rate).label == label


def test_a_state_is_read_as_it_was_written():
    settings, data = prepare("small")
    states = []
    fit_module(settings, data, on_stage=lambda state: states.append(written_and_read(state.to_dict())))
    for values in states:
        state = FitState.from_dict(values, prepare("small")[1])
        assert state.stage == values["stage"]
        assert not state.candidates or state.winner is state.candidates[state.chosen]
        assert written_and_read(state.to_dict()).keys() == values.keys()
    named = {values["stage"]: values for values in states}
    assert named["climb"]["starts"] is None
    assert list(named["choose"]["starts"]["start"])[-1] == "none"
    assert named["loosen"]["optimizer"] is None
    assert named["refine"]["optimizer"]["adam.steps"] > 0
    assert all(values["candidates"][0]["foot"] is not None for values in states[2:])


def test_randomness_is_put_back_to_the_end_of_the_stage():
    _, data = prepare("small")
    state = FitState().completed("climb", data)
    expected = torch.rand(3, generator=data.generator), data.random_state.randint(1000, size=3)
    _, other = prepare("small")
    other.random_state.randint(7)
    torch.rand(11, generator=other.generator)
    FitState.from_dict(written_and_read(state.to_dict()), other).restore_randomness_(other)
    assert torch.equal(torch.rand(3, generator=other.generator), expected[0])
    np.testing.assert_array_equal(other.random_state.randint(1000, size=3), expected[1])


def test_a_state_before_the_first_stage_leaves_randomness_alone():
    _, data = prepare("small")
    before = data.generator.get_state()
    FitState().restore_randomness_(data)
    assert torch.equal(data.generator.get_state(), before)


def test_a_candidate_that_has_diverged_is_read_too(candidate):
    with torch.no_grad():
        candidate.module.mask.weight[0, 0] = torch.nan
    read = Candidate.from_dict(written_and_read(candidate.to_dict()), rows_of(make_module()))
    assert read.module.mask.weight[0, 0].isnan()
