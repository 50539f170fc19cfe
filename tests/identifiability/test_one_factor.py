from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparsevae.identifiability.one_factor import (
    factor_correlation,
    find_combinations,
    group_loadings,
    structured_rows,
)

GROUPS = [np.array([0, 1, 2]), np.array([3, 4])]
LOADINGS = [np.array([0.9, -0.4, 0.6]), np.array([0.8, 0.5])]


def population(between=0.5):
    """Two groups, and three features of both factors."""
    full = np.zeros((8, 2))
    full[:3, 0], full[3:5, 1] = LOADINGS
    full[5:] = [[0.5, 0.3], [0.2, -0.6], [-0.4, 0.4]]
    correlation = full @ np.array([[1.0, between], [between, 1.0]]) @ full.T
    np.fill_diagonal(correlation, 1.0)
    return correlation


@example([0.95, 0.2, 0.2])  # weak companions of a strong feature are approached slowly
@given(st.lists(st.floats(0.2, 0.95), min_size=3, max_size=6))
def test_loadings_of_an_isolated_group_are_those_that_generated_it(loadings):
    h = np.array(loadings)
    correlation = np.outer(h, h)
    np.fill_diagonal(correlation, 1.0)
    np.testing.assert_allclose(group_loadings(correlation, np.arange(len(h))), h, atol=2e-3)


def test_two_anchors_get_their_loadings_from_other_features():
    np.testing.assert_allclose(group_loadings(population(), GROUPS[1]), LOADINGS[1], atol=2e-3)


def test_signs_within_a_group_are_kept():
    np.testing.assert_allclose(group_loadings(population(), GROUPS[0]), LOADINGS[0], atol=2e-3)


def test_correlation_of_the_factors_is_free_of_noise():
    between = factor_correlation(population(0.5), GROUPS, LOADINGS)
    np.testing.assert_allclose(between, [[1.0, 0.5], [0.5, 1.0]], atol=1e-9)


def test_structure_reproduces_the_correlations_that_have_it():
    correlation = population()
    members, rows = structured_rows(correlation, GROUPS, LOADINGS)
    expected = correlation[members].copy()
    expected[np.arange(5), members] = np.concatenate(LOADINGS) ** 2
    np.testing.assert_allclose(rows, expected, atol=1e-9)


def mixed_correlation(rho, weights):
    directions = np.vstack([np.eye(2), np.atleast_2d(weights)])
    correlation = directions @ np.array([[1.0, rho], [rho, 1.0]]) @ directions.T
    scale = np.sqrt(correlation.diagonal())
    return correlation / np.outer(scale, scale)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, -0.5)])
def test_a_smaller_group_between_two_others_is_a_combination(rho, weights):
    assert find_combinations(mixed_correlation(rho, weights), [5, 5, 2]).tolist() == [False, False, True]


def test_among_groups_of_one_size_the_inner_one_is_the_combination():
    assert find_combinations(mixed_correlation(0.2, (1.0, 1.0)), [2, 2, 2]).tolist() == [False, False, True]


def test_correlated_groups_are_no_combinations():
    correlation = np.full((4, 4), 0.6)
    np.fill_diagonal(correlation, 1.0)
    assert not find_combinations(correlation, [2, 2, 2, 2]).any()


def test_two_curves_of_one_factor_are_no_combination():
    correlation = np.array([[1.0, 0.97, 0.2], [0.97, 1.0, 0.2], [0.2, 0.2, 1.0]])
    assert not find_combinations(correlation, [4, 2, 3]).any()


def test_no_groups_have_no_combinations():
    assert find_combinations(np.eye(0), []).shape == (0,)


def slow_structured_rows(correlation, groups, loadings):
    """Block by block, as the structure is defined."""
    members = np.concatenate(groups)
    rows = np.empty((len(members), len(correlation)))
    edges = np.cumsum([0, *map(len, groups)])
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    for block, g, h in zip(blocks, groups, loadings, strict=True):
        rows[block] = np.outer(h, h @ correlation[g] / (h @ h))
    for g, h in zip(groups, loadings, strict=True):
        rows[:, g] = np.outer(rows[:, g] @ h / (h @ h), h)
    for block, g, h in zip(blocks, groups, loadings, strict=True):
        rows[block][:, g] = np.outer(h, h)
    return members, rows


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_structure_at_once_equals_structure_block_by_block(rng, dtype, tolerance):
    correlation = np.corrcoef(rng.standard_normal((40, 30)).T @ rng.standard_normal((40, 40))).astype(dtype)
    groups = [np.array([7, 3, 21]), np.array([0, 29]), np.array([11, 12, 13, 5])]
    loadings = [rng.uniform(-1, 1, len(g)) for g in groups]
    members, rows = structured_rows(correlation, groups, loadings)
    expected_members, expected = slow_structured_rows(correlation, groups, loadings)
    np.testing.assert_array_equal(members, expected_members)
    np.testing.assert_allclose(rows, expected, atol=tolerance)
    assert rows.dtype == dtype
