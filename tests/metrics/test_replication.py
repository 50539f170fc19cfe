from __future__ import annotations

import numpy as np
import pytest

from sparsevae.metrics.replication import (
    FactorSet,
    compare_factors,
    counted_factors,
    halves,
    linear_shares,
    match_sets,
    n_strongest,
    rank_correlation,
    strongest,
)


@pytest.fixture
def factors():
    """Three factors of two hundred rows, with four features each and nothing between them."""
    codes = np.random.default_rng(0).standard_normal((200, 3))
    return FactorSet(codes, np.repeat(np.eye(3), 4, axis=0) * 0.5)


def test_halves_are_disjoint_and_have_all_rows():
    first, second = halves(101, 3)
    assert (len(first), len(second)) == (50, 51)
    assert sorted([*first, *second]) == list(range(101))
    assert not np.array_equal(first, halves(101, 4)[0])


def test_order_sign_and_a_curve_of_each_factor_do_not_matter(factors):
    order = [2, 0, 1]
    other = FactorSet(-np.exp(factors.codes[:, order]), factors.shares[:, order])
    assert compare_factors(factors, other) == {
        "factors_a": 3,
        "factors_b": 3,
        "back": 3,
        "match": pytest.approx(1.0),
        "overlap": 1.0,
    }
    pairs = match_sets(factors, other)
    assert pairs.second.tolist() == [1, 2, 0]


def test_a_factor_counts_if_it_explains_three_features_and_copies_no_other(factors):
    weak = factors.shares.copy()
    weak[4:6, 1] = 0.049
    assert counted_factors(FactorSet(factors.codes, weak)).tolist() == [0, 2]
    codes = factors.codes.copy()
    codes[:, 2] = -codes[:, 0] + 0.1 * codes[:, 1]
    assert counted_factors(FactorSet(codes, factors.shares)).tolist() == [0, 1]


def test_the_match_is_over_the_larger_number_and_the_overlap_over_pairs(factors):
    fewer = factors.take(np.array([0, 2]))
    shares = fewer.shares.copy()
    shares[:4, 0], shares[4:8, 0] = [0.5, 0.4, 0, 0], [0.3, 0, 0, 0]
    found = compare_factors(factors, FactorSet(fewer.codes, shares))
    assert (found["factors_a"], found["factors_b"], found["back"]) == (3, 2, 2)
    assert found["match"] == pytest.approx(2 / 3)
    # Five of twelve features: 0 to 3 and 4 there, 0, 1, 4 and then 2, 3 here; the same five.
    assert found["overlap"] == pytest.approx(1.0)


def test_a_noisy_copy_does_not_come_back(factors):
    noise = np.random.default_rng(1).standard_normal(200)
    codes = factors.codes.copy()
    codes[:, 1] += noise
    found = compare_factors(factors, FactorSet(codes, factors.shares))
    r = rank_correlation(factors.codes[:, 1], codes[:, 1])
    assert 0.5 < r < 0.9
    assert found["back"] == 2
    assert found["match"] == pytest.approx((2 + r) / 3)


def test_without_factors_nothing_comes_back(factors):
    nothing = factors.take(np.array([], dtype=int))
    assert compare_factors(factors, nothing) == {
        "factors_a": 3,
        "factors_b": 0,
        "back": 0,
        "match": 0.0,
        "overlap": 0.0,
    }
    assert match_sets(nothing, factors).first.tolist() == []


def test_what_a_linear_factor_explains_is_at_most_everything():
    codes = np.array([[-1.0], [1.0]])
    shares = linear_shares(np.array([[0.5], [2.0], [1.0]]), codes, np.array([1.0, 1.0, 0.0]))
    assert shares.ravel().tolist() == [0.25, 1.0, 1.0]


def test_how_many_features_are_compared_depends_on_the_table():
    assert [n_strongest(n) for n in (9, 10, 25, 26)] == [3, 5, 5, 10]
    assert strongest(np.array([0.1, 0.3, 0.3, 0.2]), 3).tolist() == [1, 2, 3]
