from __future__ import annotations

import pytest
import torch

from sparsevae.decoder import decode, decode_literal

NON_ZEROS = [None, (0, 1, 1, 2), (1,), (0,)]
LARGE = {"n_samples": 60, "n_features": 80, "n_factors": 6, "hidden_sizes": (60, 60)}
SMALL = {"n_samples": 5, "n_features": 8, "n_factors": 3, "hidden_sizes": (6, 6)}


@pytest.mark.parametrize("non_zeros", NON_ZEROS)
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("zero_gradients", [True, False])
def test_every_path_gives_the_numbers_of_the_loop(
    make_problem, outcome, assert_same, without_zero_entries, non_zeros, size, zero_gradients
):
    problem = make_problem(**size, non_zeros=non_zeros)
    expected, result = (
        outcome(decode_literal, problem),
        outcome(decode, problem, zero_gradients=zero_gradients),
    )
    if not zero_gradients:  # which of the two an unneeded gradient is depends on the path
        expected = without_zero_entries(expected, problem.mask)
        result = without_zero_entries(result, problem.mask)
    assert_same(result, expected, 1e-10)


def test_no_mask_is_one_forward_pass(paths, make_problem):
    _, z, weights, _ = make_problem(**LARGE)
    decode(None, z, weights)
    assert paths == ["decode_shared"]


def test_small_problems_replicates_and_the_linear_model_are_dense(paths, make_problem):
    for size in (SMALL, {**LARGE, "hidden_sizes": ()}):
        mask, z, weights, _ = make_problem(**size)
        decode(mask, z, weights)
    mask, z, weights, _ = make_problem(**LARGE)
    batched = type(weights)(
        weights.first[None],
        tuple((weight[None], bias[None]) for weight, bias in weights.hidden),
        weights.heads[None],
        weights.intercept[None],
    )
    torch.testing.assert_close(decode(mask[None], z[None], batched)[0], decode_literal(mask, z, weights))
    assert paths == ["decode_dense"] * 3


def test_dense_masks_are_decoded_in_blocks(paths, make_problem):
    mask, z, weights, _ = make_problem(**LARGE)
    decode(mask, z, weights)
    decode(mask, z, weights, zero_gradients=False)
    assert paths == ["decode_blocked"] * 2


def test_anchors_wait_until_zero_entries_need_no_gradient(paths, make_problem):
    mask, z, weights, _ = make_problem(**LARGE, non_zeros=(1, 1, 2))
    decode(mask, z, weights)
    decode(mask, z, weights, zero_gradients=False)
    with torch.no_grad():
        decode(mask, z, weights)
    decode(mask.detach(), z, weights)
    assert paths == ["decode_blocked", "decode_sparse", "decode_sparse", "decode_sparse"]


def test_empty_features_always_leave(paths, make_problem):
    mask, z, weights, _ = make_problem(**LARGE, non_zeros=(0, 6))
    decode(mask, z, weights)
    assert paths == ["decode_sparse"]


def test_factors_not_in_use_leave_where_they_cost_something(paths, make_problem, outcome, assert_same):
    size = {"n_samples": 120, "n_features": 60, "n_factors": 30, "hidden_sizes": (40, 40)}
    problem = make_problem(**size)
    with torch.no_grad():
        problem.mask[:, 5:] = 0.0
    expected = outcome(decode_literal, problem)
    expected["mask"][:, 5:] = 0.0
    assert_same(outcome(decode, problem, zero_gradients=False), expected, 1e-10)
    outcome(decode, problem, zero_gradients=True)
    with torch.no_grad():
        decode(problem.mask, problem.z, problem.weights)
    assert paths == ["decode_sparse", "decode_blocked", "decode_sparse"]


def test_factors_fixed_at_zero_leave_and_the_other_zeros_have_their_gradients(
    paths, make_problem, outcome, assert_same
):
    size = {"n_samples": 120, "n_features": 60, "n_factors": 30, "hidden_sizes": (40, 40)}
    problem = make_problem(**size, non_zeros=(3,))
    fixed = torch.zeros_like(problem.mask, dtype=torch.bool)
    fixed[:, 5:] = True
    with torch.no_grad():
        problem.mask[:, 5:] = 0.0
        problem.mask[:, 0] = 1.0
    expected = outcome(decode_literal, problem)
    assert (expected["mask"][:, :5][problem.mask[:, :5] == 0] != 0).any()
    expected["mask"][:, 5:] = 0.0
    assert_same(outcome(decode, problem, fixed=fixed), expected, 1e-10)
    assert paths == ["decode_sparse"]
