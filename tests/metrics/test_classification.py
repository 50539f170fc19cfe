import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sparsevae.exceptions import DataError
from sparsevae.metrics import factor_accuracy


@pytest.fixture
def labelled():
    generator = np.random.default_rng(0)
    target = generator.integers(3, size=240)
    centres = np.array([[0, 0], [4, 0], [0, 4]])
    return centres[target] + generator.standard_normal((240, 2)), np.array(["a", "b", "c"])[target]


def test_separate_classes_are_predicted(labelled):
    assert factor_accuracy(*labelled) > 0.9


def test_labels_without_relation_are_not(labelled):
    codes, target = labelled
    shuffled = np.random.default_rng(1).permutation(target)
    assert factor_accuracy(codes, shuffled) < 0.6


def test_a_given_split_is_that_of_scikit_learn_by_hand(labelled):
    codes, target = labelled
    test = np.arange(200, 240)
    scaler = StandardScaler().fit(codes[:200])
    model = LogisticRegression(max_iter=10_000).fit(scaler.transform(codes[:200]), target[:200])
    expected = model.score(scaler.transform(codes[200:]), target[200:])
    assert factor_accuracy(codes, target, test_rows=test) == pytest.approx(expected)
    assert factor_accuracy(codes, target, test_rows=np.arange(240) >= 200) == pytest.approx(expected)


def test_inactive_factors_do_no_harm(labelled):
    codes, target = labelled
    padded = np.column_stack([codes, np.zeros(240)])
    assert factor_accuracy(padded, target) == pytest.approx(factor_accuracy(codes, target))


def test_unusable_input_is_refused(labelled):
    codes, target = labelled
    with pytest.raises(DataError, match="label for each"):
        factor_accuracy(codes, target[:-1])
    with pytest.raises(DataError, match="two or more classes"):
        factor_accuracy(codes, target, test_rows=target != "a")
