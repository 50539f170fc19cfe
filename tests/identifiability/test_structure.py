"""Rules on the zeros of a mask, against their definitions over all subsets and against covariances."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from sparsevae.identifiability.structure import contained, matched, mixtures, short_set

# The two examples of the R package sparvaride: the first breaks the counting rule, the second keeps it.
BREAKS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [1, 0, 1], [1, 0, 1], [1, 0, 1]], dtype=bool)
KEEPS = BREAKS.copy()
KEEPS[5, 1] = True


def patterns(seed, n=60, largest=(9, 4)):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        shape = rng.integers(2, largest[0] + 1), rng.integers(1, largest[1] + 1)
        support = rng.random(shape) < rng.uniform(0.3, 0.8)
        yield support[:, support.any(0)]


def breaks_the_rule(support, columns):
    return support[:, list(columns)].any(1).sum() < 2 * len(columns) + 1


def generic_loadings(support, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(support, rng.choice([-1, 1], support.shape) * rng.uniform(0.5, 1.5, support.shape), 0.0)


def test_examples_of_the_counting_rule():
    assert short_set(BREAKS) == [1]
    assert short_set(KEEPS) == []


def test_counting_rule_is_that_of_all_subsets():
    outcomes = set()
    for support in patterns(0, 150, (12, 4)):
        found = short_set(support)
        sets = [c for q in range(1, support.shape[1] + 1) for c in combinations(range(support.shape[1]), q)]
        assert bool(found) == any(breaks_the_rule(support, columns) for columns in sets)
        assert not found or breaks_the_rule(support, found)
        outcomes.add(bool(found))
    assert outcomes == {True, False}


def test_what_can_be_mixed_is_what_the_zeros_do_not_see():
    for support in patterns(1):
        L, n_factors = generic_loadings(support), support.shape[1]
        expected = np.zeros((n_factors, n_factors), dtype=bool)
        for k in range(n_factors):
            zeros = L[~support[:, k]]
            _, sizes, vectors = np.linalg.svd(zeros) if len(zeros) else (0, np.zeros(0), np.eye(n_factors))
            unseen = vectors[(sizes > 1e-9).sum() :]
            expected[:, k] = np.abs(unseen).max(0, initial=0.0) > 1e-9
        np.fill_diagonal(expected, False)
        np.testing.assert_array_equal(mixtures(support), expected)


def test_mixing_leaves_zeros_and_covariances_as_they_are():
    support = np.array([[1, 1], [1, 1], [0, 1], [0, 1], [1, 1]], dtype=bool)  # factor 1 has all of 0
    np.testing.assert_array_equal(contained(support), [[False, True], [False, False]])
    np.testing.assert_array_equal(mixtures(support), contained(support))
    L, phi = generic_loadings(support), np.array([[1.0, 0.3], [0.3, 1.0]])
    M = np.array([[1.0, 0.7], [0.0, 1.0]])
    other, back = L @ M, np.linalg.inv(M)
    np.testing.assert_array_equal(other != 0, support)
    np.testing.assert_allclose(other @ back @ phi @ back.T @ other.T, L @ phi @ L.T)


def test_no_factor_contains_another_where_some_set_of_features_has_it_alone_in_common():
    for support in patterns(2, largest=(6, 4)):
        n_features, n_factors = support.shape
        for k in range(n_factors):
            common = (
                support[list(rows)].all(0)
                for q in range(1, n_features + 1)
                for rows in combinations(range(n_features), q)
            )
            alone = np.arange(n_factors) == k
            assert any((both == alone).all() for both in common) == (not contained(support)[k].any())


def test_contained_factors_can_be_mixed():
    for support in patterns(3):
        assert not (contained(support) & ~mixtures(support)).any()


def flow(support, W, U):
    """Largest number of paths w ← factor → u through different factors, features and factors used once."""
    best = 0
    for q in range(1, min(len(W), len(U), support.shape[1]) + 1):
        for factors in combinations(range(support.shape[1]), q):
            sides = [generic_loadings(support[list(side)][:, factors]) for side in (W, U)]
            if all(np.linalg.matrix_rank(side) == q for side in sides):
                best = q
    return best


def satisfies_the_criterion(support, h, v, W, U):
    alone = support[v].sum() == 1 and support[v, h]
    apart = not {v} & {*W, *U} and not {*W} & {*U} and len(W) == len(U) > 0
    return alone and apart and flow(support, W, U) == len(W) and flow(support, [v, *W], [v, *U]) == len(W)


def settled_by_definition(support, largest):
    done = []
    while True:
        left = support.copy()
        left[:, done] = False
        features = range(len(support))
        for h in np.flatnonzero(left.any(0)):
            if any(
                satisfies_the_criterion(left, h, v, W, U)
                for v in features
                for q in range(1, largest + 1)
                for W in combinations(features, q)
                for U in combinations([j for j in features if j not in W], q)
            ):
                done.append(int(h))
                break
        else:
            return set(done)


def test_each_proof_satisfies_the_matching_criterion():
    n_proofs = 0
    for support in patterns(4, 120, (10, 4)):
        left = support.copy()
        for h, proof in matched(support).items():
            assert satisfies_the_criterion(left, h, *proof)
            left[:, h] = False
            n_proofs += 1
    assert n_proofs > 50


def test_small_sets_find_what_the_definition_finds():
    n_settled = 0
    for support in patterns(5, 40, (6, 3)):
        expected = settled_by_definition(support, 2)
        assert set(matched(support, 2)) == expected
        n_settled += len(expected)
    assert n_settled > 10


def test_a_proof_gives_the_loading_from_covariances():
    support = np.zeros((7, 2), dtype=bool)
    support[:, 0] = True
    support[1:, 1] = True  # one feature of factor 0 alone, six of both
    (v, W, U) = matched(support)[0]
    L = generic_loadings(support)
    sigma = L @ L.T + np.diag(np.linspace(0.3, 1.0, 7))
    block = sigma[np.ix_(W, U)]
    square = sigma[[v]][:, U] @ np.linalg.solve(block, sigma[W, v])
    assert square == pytest.approx(L[v, 0] ** 2)


def test_without_a_feature_of_one_factor_nothing_is_settled():
    assert matched(np.ones((9, 2), dtype=bool)) == {}
