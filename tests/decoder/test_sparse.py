from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from sparsevae.decoder import decode_literal, decode_sparse, plan_mask

NON_ZEROS = {
    "anchors": (1,),
    "anchors and others": (1, 1, 2, 3),
    "empty and others": (0, 0, 2, 3),
    "all empty": (0,),
    "no zeros": (5,),
    "a bit of each": (0, 1, 2, 5),
}


@pytest.mark.parametrize("non_zeros", NON_ZEROS.values(), ids=NON_ZEROS)
@pytest.mark.parametrize("hidden_sizes", [(), (8,), (8, 6), (8, 6, 5)])
def test_equals_the_loop_for_all_but_the_gradient_of_zero_entries(
    make_problem, outcome, assert_same, without_zero_entries, hidden_sizes, non_zeros
):
    problem = make_problem(9, 12, 5, hidden_sizes, non_zeros=non_zeros)
    expected = without_zero_entries(outcome(decode_literal, problem), problem.mask)
    assert_same(outcome(decode_sparse, problem), expected, 1e-10)


@given(
    n=st.integers(1, 30),
    k=st.integers(1, 8),
    hidden_sizes=st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple),
    non_zeros=st.lists(st.integers(0, 8), min_size=1, max_size=30).map(tuple),
    seed=st.integers(0, 2**31),
)
def test_equals_the_loop_for_any_pattern_of_zeros(
    make_problem, outcome, assert_same, without_zero_entries, n, k, hidden_sizes, non_zeros, seed
):
    problem = make_problem(n, len(non_zeros), k, hidden_sizes, non_zeros=non_zeros, seed=seed)
    expected = without_zero_entries(outcome(decode_literal, problem), problem.mask)
    assert_same(outcome(decode_sparse, problem), expected, 1e-10)


@pytest.mark.parametrize("hidden_sizes", [(100,), (100, 100), (60, 70, 80)])
def test_float32_is_within_rounding_of_the_loop(
    make_problem, outcome, assert_same, without_zero_entries, hidden_sizes
):
    problem = make_problem(64, 50, 20, hidden_sizes, non_zeros=(0, 1, 1, 1, 2, 3), dtype=torch.float32)
    expected = without_zero_entries(outcome(decode_literal, problem), problem.mask)
    assert_same(outcome(decode_sparse, problem), expected, 1e-5)


@pytest.mark.parametrize("hidden_sizes", [(8,), (8, 6), (8, 6, 5)])
def test_empty_features_lose_no_gradient_when_zero_entries_need_theirs(
    make_problem, outcome, assert_same, hidden_sizes
):
    problem = make_problem(9, 12, 5, hidden_sizes, non_zeros=(0, 1, 2, 0))
    plan = plan_mask(problem.mask, zero_gradients=True)
    assert len(plan.empty) == 6
    assert_same(outcome(decode_sparse, problem, plan=plan), outcome(decode_literal, problem), 1e-10)


def test_a_plan_serves_every_mask_with_the_same_support(
    make_problem, outcome, assert_same, without_zero_entries
):
    problem = make_problem(9, 12, 5, non_zeros=(0, 1, 1, 3))
    plan = plan_mask(problem.mask)
    flipped = problem._replace(mask=-2 * problem.mask.detach())
    expected = without_zero_entries(outcome(decode_literal, flipped), flipped.mask)
    assert_same(outcome(decode_sparse, flipped, plan=plan), expected, 1e-10)


def test_factors_at_exactly_zero_have_the_gradient_of_the_loop(
    make_problem, outcome, assert_same, without_zero_entries
):
    problem = make_problem(9, 12, 5, non_zeros=(1, 2))
    problem.z.data[::2] = 0
    expected = without_zero_entries(outcome(decode_literal, problem), problem.mask)
    assert_same(outcome(decode_sparse, problem), expected, 1e-10)


@pytest.mark.parametrize("hidden_sizes", [(8,), (8, 6)])
def test_a_feature_depends_only_on_the_factors_of_its_row(make_problem, hidden_sizes):
    mask, z, weights, _ = make_problem(hidden_sizes=hidden_sizes, non_zeros=(0, 1, 2))
    jacobian = torch.autograd.functional.jacobian(lambda z: decode_sparse(mask, z, weights).sum(0), z)
    assert torch.equal(jacobian.abs().amax(1) > 0, mask != 0)
