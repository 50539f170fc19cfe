import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import ndcg_score

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics import ndcg_at_k, ranking, recall_at_k, split_items

SCORES = np.array([[0.9, 0.8, 0.1, 0.7], [0.1, 0.2, 0.3, 0.4]])
RELEVANT = np.array([[1, 0, 1, 1], [1, 0, 0, 0]])


def test_recall_of_a_hand_counted_case():
    # user 0 finds 1 of min(2, 3), user 1 finds 0 of 1
    assert recall_at_k(SCORES, RELEVANT, 2) == pytest.approx(0.25)
    np.testing.assert_allclose(recall_at_k(SCORES, RELEVANT, 3, per_user=True), [2 / 3, 0])
    assert recall_at_k(SCORES, RELEVANT, 10) == 1


def test_ndcg_of_a_hand_counted_case():
    first = (1 + 1 / np.log2(4)) / (1 + 1 / np.log2(3) + 1 / np.log2(4))
    np.testing.assert_allclose(ndcg_at_k(SCORES, RELEVANT, 3, per_user=True), [first, 0])


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 9), levels=st.sampled_from([2, 4, 1000]))
def test_ndcg_is_scikit_learns_with_and_without_ties(seed, k, levels):
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, levels, size=(7, 8)).astype(float)
    relevant = generator.integers(0, 2, size=(7, 8))
    relevant[:, 0] = 1
    assert ndcg_at_k(scores, relevant, k) == pytest.approx(ndcg_score(relevant, scores, k=min(k, 8)))


def test_recall_with_ties_is_the_mean_over_all_orders():
    scores = np.array([[2.0, 1.0, 1.0, 1.0, 0.0]])
    relevant = np.array([[0, 1, 0, 1, 1]])
    hits = [relevant[0, [0, *order[:1]]].sum() / 2 for order in itertools.permutations([1, 2, 3])]
    assert recall_at_k(scores, relevant, 2) == pytest.approx(np.mean(hits))


def test_equal_scores_get_what_a_random_order_gets():
    relevant = np.zeros((1, 10))
    relevant[0, 0] = 1
    assert recall_at_k(np.zeros((1, 10)), relevant, 3) == pytest.approx(0.3)


def test_blocks_and_sparse_input_change_nothing(monkeypatch):
    generator = np.random.default_rng(0)
    scores, relevant = generator.random((50, 20)), generator.integers(0, 2, size=(50, 20))
    expected = ndcg_at_k(scores, relevant, 5, per_user=True)
    monkeypatch.setattr(ranking, "_BLOCK_ENTRIES", 60)
    np.testing.assert_allclose(ndcg_at_k(scores, sparse.csr_matrix(relevant), 5, per_user=True), expected)


def test_users_without_relevant_items_do_not_count():
    relevant = np.array([[1, 0, 0, 0], [0, 0, 0, 0]])
    assert recall_at_k(SCORES, relevant, 1) == 1
    assert np.isnan(ndcg_at_k(SCORES, relevant, 1, per_user=True)[1])
    with pytest.raises(DataError, match="at least one user"):
        recall_at_k(SCORES, np.zeros((2, 4)), 1)


def test_fold_in_leaves_seen_items_out_of_the_ranking():
    seen = np.array([[1, 1, 0, 0], [0, 0, 0, 1]])
    relevant = np.array([[0, 0, 0, 1], [0, 0, 1, 0]])
    assert recall_at_k(SCORES, relevant, 1, protocol="fold_in", seen=seen) == 1
    assert recall_at_k(SCORES, relevant, 1) == 0


def test_fold_in_with_fewer_unseen_items_than_k():
    seen = np.array([[1, 1, 1, 0]])
    assert ndcg_at_k(SCORES[:1], np.array([[0, 0, 0, 1]]), 4, protocol="fold_in", seen=seen) == 1


def test_protocols_cannot_be_mixed_up():
    with pytest.raises(ParameterError, match="seen exactly when"):
        recall_at_k(SCORES, RELEVANT, 1, protocol="fold_in")
    with pytest.raises(ParameterError, match="seen exactly when"):
        recall_at_k(SCORES, RELEVANT, 1, seen=RELEVANT)
    with pytest.raises(DataError, match="not seen"):
        recall_at_k(SCORES, RELEVANT, 1, protocol="fold_in", seen=RELEVANT)
    with pytest.raises(ParameterError, match="'paper' or 'fold_in'"):
        recall_at_k(SCORES, RELEVANT, 1, protocol="liang")


def test_unusable_input_is_refused():
    with pytest.raises(DataError, match="same shape"):
        recall_at_k(SCORES, RELEVANT[:1], 1)
    with pytest.raises(DataError, match="NaN"):
        recall_at_k(np.full((2, 4), np.nan), RELEVANT, 1)
    with pytest.raises(ParameterError, match="k to be"):
        recall_at_k(SCORES, RELEVANT, 0)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), fraction=st.sampled_from([0.5, 0.8, 0.9]))
def test_items_are_divided_without_loss(seed, fraction):
    X = (np.random.default_rng(seed).random((15, 30)) < 0.3).astype(int)
    fold_in, held_out = split_items(X, fraction=fraction, random_state=seed)
    np.testing.assert_array_equal((fold_in + held_out).toarray(), X)
    assert fold_in.multiply(held_out).nnz == 0
    sizes, held = X.sum(axis=1), held_out.sum(axis=1)
    expected = np.where(sizes > 1, np.maximum(1, np.floor((1 - fraction) * sizes + 1e-9)), 0)
    np.testing.assert_array_equal(held, expected)


def test_the_division_is_random_and_repeatable():
    X = np.ones((200, 10), dtype=int)
    first, again, other = (split_items(X, random_state=s)[1].toarray() for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert first.sum(axis=0).min() > 15  # every item is held out by about a fifth of the users
    with pytest.raises(ParameterError, match="fraction"):
        split_items(X, fraction=1.0)
