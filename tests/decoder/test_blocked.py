from __future__ import annotations

import subprocess
import sys

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from sparsevae.decoder import blocked, decode_blocked, decode_literal, layout

HIDDEN_SIZES = [(), (8,), (8, 6), (8, 6, 5)]
shapes = {
    "n": st.integers(1, 40),
    "g": st.integers(1, 40),
    "k": st.integers(1, 8),
    "hidden_sizes": st.lists(st.integers(1, 12), min_size=0, max_size=3).map(tuple),
    "seed": st.integers(0, 2**31),
}


@given(**shapes)
def test_values_and_all_gradients_are_those_of_the_loop(
    make_problem, outcome, assert_same, n, g, k, hidden_sizes, seed
):
    problem = make_problem(n, g, k, hidden_sizes, seed=seed)
    assert_same(outcome(decode_blocked, problem), outcome(decode_literal, problem), 1e-10)


@pytest.mark.parametrize("hidden_sizes", [(100,), (100, 100), (60, 70, 80)])
def test_float32_is_within_rounding_of_the_loop(make_problem, outcome, assert_same, hidden_sizes):
    problem = make_problem(64, 50, 20, hidden_sizes, dtype=torch.float32)
    assert_same(outcome(decode_blocked, problem), outcome(decode_literal, problem), 1e-5)


@pytest.mark.parametrize("hidden_sizes", HIDDEN_SIZES)
@pytest.mark.parametrize("n_samples, cache_bytes", [(5, 2000), (37, 2000), (37, 20_000)])
def test_the_cut_into_blocks_does_not_show(
    monkeypatch, make_problem, outcome, assert_same, hidden_sizes, n_samples, cache_bytes
):
    monkeypatch.setattr(layout, "_CACHE_BYTES", cache_bytes)
    monkeypatch.setattr(layout, "_MIN_ROWS", 8)
    problem = make_problem(n_samples, 23, 4, hidden_sizes)
    assert_same(outcome(decode_blocked, problem), outcome(decode_literal, problem), 1e-10)


@pytest.mark.parametrize("keep_bytes", [0, 5000])
def test_activations_computed_again_are_those_kept(
    monkeypatch, make_problem, outcome, assert_same, keep_bytes
):
    problem = make_problem(20, 30, 4, (8, 6, 5))
    kept = outcome(decode_blocked, problem)
    monkeypatch.setattr(blocked, "_KEEP_BYTES", keep_bytes)
    assert_same(outcome(decode_blocked, problem), kept, 0.0)


@settings(max_examples=5)
@given(depth=st.integers(1, 3), seed=st.integers(0, 2**31))
def test_gradients_pass_torchs_own_check(make_problem, depth, seed):
    problem = make_problem(3, 4, 2, (4, 3, 3)[:depth], seed=seed)

    def decode(*tensors):
        named = dict(zip(problem.inputs(), tensors, strict=True))
        hidden = tuple((named[f"weight {i}"], named[f"bias {i}"]) for i in range(2, depth + 1))
        weights = type(problem.weights)(named["first"], hidden, named["heads"], named["intercept"])
        return decode_blocked(named["mask"], named["z"], weights)

    assert torch.autograd.gradcheck(decode, tuple(problem.inputs().values()))


@pytest.mark.parametrize("hidden_sizes", [(8,), (8, 6)])
def test_a_feature_depends_only_on_the_factors_of_its_row(make_problem, hidden_sizes):
    mask, z, weights, _ = make_problem(hidden_sizes=hidden_sizes, non_zeros=(0, 1, 2))
    jacobian = torch.autograd.functional.jacobian(lambda z: decode_blocked(mask, z, weights).sum(0), z)
    assert torch.equal(jacobian.abs().amax(1) > 0, mask != 0)


def test_the_number_of_threads_does_not_change_a_bit(make_problem, outcome, assert_same):
    problem = make_problem(64, 60, 6, (16, 16), dtype=torch.float32)
    before = torch.get_num_threads()
    try:
        results = []
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            results.append(outcome(decode_blocked, problem))
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
    for result in results[1:]:
        # The sum over the batch for the intercept is torch's own and may be cut differently.
        assert_same({**result, "intercept": results[0]["intercept"]}, results[0], 0.0)


def test_gradients_can_be_taken_twice_from_one_graph(make_problem):
    mask, z, weights, grad_output = make_problem()
    output = decode_blocked(mask, z, weights)
    first, second = (torch.autograd.grad(output, mask, grad_output, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_scoring_then_training_share_memory_without_harm(make_problem, outcome, assert_same):
    problem = make_problem(dtype=torch.float32)
    with torch.inference_mode():
        scored = decode_blocked(problem.mask, problem.z, problem.weights)
    trained = outcome(decode_blocked, problem)
    assert torch.equal(scored, trained["output"])
    assert_same(trained, outcome(decode_literal, problem), 1e-5)


def test_autocast_around_it_changes_nothing(make_problem, outcome, assert_same):
    problem = make_problem(dtype=torch.float32)
    expected = outcome(decode_blocked, problem)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(outcome(decode_blocked, problem), expected, 0.0)


def test_output_is_laid_out_sample_by_sample(make_problem):
    mask, z, weights, _ = make_problem(n_samples=50, n_features=30)
    assert decode_blocked(mask, z, weights).is_contiguous()


@pytest.mark.parametrize("n_samples, n_features", [(0, 4), (4, 0)])
def test_nothing_to_decode_is_an_empty_output(make_problem, outcome, n_samples, n_features):
    problem = make_problem(max(n_samples, 1), max(n_features, 1))
    weights = problem.weights._replace(
        heads=problem.weights.heads[:n_features], intercept=problem.weights.intercept[:n_features]
    )
    problem = problem._replace(
        mask=problem.mask[:n_features],
        z=problem.z[:n_samples],
        weights=weights,
        grad_output=problem.grad_output[:n_samples, :n_features],
    )
    result = outcome(decode_blocked, problem)
    assert result["output"].shape == (n_samples, n_features)
    assert torch.all(result["first"] == 0)


PEAK = """
import sys, torch

def kilobytes(field):  # not ru_maxrss, which a process inherits from the one that started it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(field))
"""

DECODE = """
from sparsevae.decoder import MaskedDecoder, decode

decoder = MaskedDecoder(20_000, 30, [128] * int(sys.argv[1]))
mask = torch.randn(20_000, 30, requires_grad=True)
z = torch.randn(128, 30, requires_grad=True)
before = kilobytes("VmRSS")
output = decode(mask, z, decoder.weights())
output.backward(torch.ones_like(output))
print((kilobytes("VmHWM") - before) * 1024)
"""

STEP = """
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation, SparseVAEConfig, SparseVAEModule
from sparsevae.training.optimizer import ProximalAdam

before = kilobytes("VmRSS")
observation = Observation.blank(get_likelihood("gaussian", 20_000), 20_000)
config = SparseVAEConfig(n_factors=30, hidden_sizes=(128,) * int(sys.argv[1]))
module = SparseVAEModule(observation, config)
optimizer = ProximalAdam(module, 1000)
for _ in range(2):
    optimizer.zero_grad()
    batch = observation.batch(torch.randn(128, 20_000))
    loss, statistics = module.step(batch, torch.randn(128, 30), 1000)
    (loss.reconstruction + loss.kl).backward()
    optimizer.step(1e-3)
    module.update(statistics, 1000)
print((kilobytes("VmHWM") - before) * 1024)
"""


# All activations of one layer are 1.3 GB.
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "program, depth, limit",
    [
        (DECODE, 1, 0.9e9),
        pytest.param(DECODE, 2, 0.9e9, marks=pytest.mark.slow),
        pytest.param(STEP, 2, 2e9, marks=pytest.mark.slow),
    ],
    ids=["decode-1", "decode-2", "step-2"],
)
def test_memory_stays_bounded_for_twenty_thousand_features(program, depth, limit):
    command = [sys.executable, "-c", PEAK + program, str(depth)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 0 < int(run.stdout) < limit
