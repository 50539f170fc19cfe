from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.identifiability import match_factors
from sparsevae.identifiability.matching import support_overlap


def problem():
    rng = np.random.default_rng(0)
    mask = (rng.random((30, 4)) < 0.3) * rng.normal(size=(30, 4))
    return mask, rng.standard_normal((200, 4))


@given(st.permutations(range(4)), st.lists(st.sampled_from([-1.0, 1.0]), min_size=4, max_size=4))
def test_order_sign_scale_and_monotone_transformations_do_not_matter(order, signs):
    mask, codes = problem()
    order = list(order)
    other_mask = 3.0 * mask[:, order] * signs
    other_codes = np.sinh(codes[:, order]) * signs
    match = match_factors(mask, codes, other_mask, other_codes)
    assert [order[partner] for partner in match.partner] == list(range(4))
    np.testing.assert_allclose(match.overlap, 1.0)
    np.testing.assert_allclose(match.rank_correlation, 1.0)


def test_inactive_factors_have_no_partner():
    mask, codes = problem()
    mask[:, 2], codes[:, 2] = 0.0, 0.0
    match = match_factors(mask, codes, mask, codes)
    assert match.partner.tolist() == [0, 1, -1, 3]
    assert match.overlap[2] == match.rank_correlation[2] == 0.0


def test_a_fit_with_fewer_factors_leaves_some_without_partner():
    mask, codes = problem()
    match = match_factors(mask, codes, mask[:, [3, 1]], codes[:, [3, 1]])
    assert match.partner.tolist() == [-1, 1, -1, 0]


def test_a_fit_without_factors_matches_nothing():
    mask, codes = problem()
    match = match_factors(mask, codes, np.zeros_like(mask), np.zeros_like(codes))
    assert (match.partner == -1).all()


def test_support_decides_where_ranks_agree_and_the_reverse(rng):
    shared = rng.standard_normal(100)
    codes = np.column_stack([shared, shared])
    mask = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]])
    assert match_factors(mask, codes, mask[:, ::-1], codes).partner.tolist() == [1, 0]
    apart = rng.standard_normal((100, 2))
    assert match_factors(np.ones((4, 2)), apart, np.ones((4, 2)), apart[:, ::-1]).partner.tolist() == [1, 0]


def test_overlap_is_shared_entries_over_all_entries():
    mask = np.array([[1.0, 0], [2, 0], [0, 1], [0, 0]])
    other = np.array([[5.0], [0], [5], [5]])
    np.testing.assert_allclose(support_overlap(mask, other), [[1 / 4], [1 / 3]])
