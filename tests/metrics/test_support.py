import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import f1_score

from sparsevae.exceptions import DataError
from sparsevae.metrics import anchor_f1, match_supports, support_f1, support_score

TRUTH = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1], [1, 1]])
shapes = hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6)
masks = hnp.arrays(int, shapes, elements=st.integers(-1, 1))


def test_the_truth_scores_one_in_any_order_sign_and_scale():
    estimate = np.column_stack([np.zeros(7), -0.3 * TRUTH[:, 1], np.zeros(7), 7 * TRUTH[:, 0]])
    assert support_f1(estimate, TRUTH) == 1
    np.testing.assert_array_equal(match_supports(estimate, TRUTH), [[1, 1], [3, 0]])


def test_scores_are_those_of_a_hand_count():
    # one missed entry, one false one, and a factor without partner with two non-zeros
    estimate = np.zeros((7, 3))
    estimate[[0, 1, 2, 3], 0] = 1
    estimate[[3, 4, 5, 6], 1] = 1
    estimate[[0, 6], 2] = 1
    score = support_score(estimate, TRUTH)
    assert score.precision == pytest.approx(7 / 10)
    assert score.recall == pytest.approx(7 / 8)
    assert score.f1 == pytest.approx(14 / 18)


def test_matching_is_optimal_where_greedy_matching_fails():
    truth = np.array([[1, 1], [1, 1], [1, 0], [0, 0]])
    estimate = np.array([[1, 1], [1, 1], [1, 0], [1, 0]])[:, ::-1]
    assert support_score(estimate, truth).f1 == pytest.approx(10 / 11)


def test_a_split_factor_costs_its_other_half():
    truth = np.ones((4, 1))
    estimate = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    score = support_score(estimate, truth)
    assert (score.precision, score.recall) == (0.5, 0.5)


def test_agrees_with_scikit_learn_once_matched():
    estimate = TRUTH.copy()
    estimate[[0, 4], [0, 0]] = [0, 1]
    assert support_f1(estimate, TRUTH) == pytest.approx(f1_score(TRUTH.ravel(), estimate.ravel()))


def test_anchors_alone_are_scored_in_their_own_rows():
    estimate = TRUTH.copy()
    estimate[6] = 0
    assert anchor_f1(estimate, TRUTH) == 1
    estimate[0] = [1, 1]
    assert anchor_f1(estimate, TRUTH) == pytest.approx(12 / 13)


def test_empty_supports():
    empty = np.zeros((7, 3))
    assert support_f1(empty, np.zeros((7, 0))) == 1
    assert support_f1(empty, TRUTH) == 0
    assert support_score(TRUTH, empty).precision == 0


@settings(deadline=None)
@given(mask=masks, seed=st.integers(0, 5))
def test_scores_are_bounded_symmetric_and_blind_to_order(mask, seed):
    generator = np.random.default_rng(seed)
    other = generator.integers(0, 2, size=(mask.shape[0], 3))
    f1 = support_f1(mask, other)
    assert 0 <= f1 <= 1
    assert f1 == pytest.approx(support_f1(other, mask))
    assert f1 == pytest.approx(support_f1(mask[:, generator.permutation(mask.shape[1])], other))
    assert support_f1(mask, mask) == 1


def test_masks_of_different_features_are_refused():
    with pytest.raises(DataError, match="same number of rows"):
        support_f1(TRUTH, TRUTH[:5])
    with pytest.raises(DataError, match="mask without missing"):
        support_f1(np.full((7, 2), np.nan), TRUTH)
    with pytest.raises(DataError, match="two dimensions"):
        support_f1(TRUTH[:, 0], TRUTH)


def test_a_truth_that_is_not_known_is_refused():
    with pytest.raises(DataError, match="Expected true_mask; got None"):
        support_f1(TRUTH, None)
