import numpy as np
import pytest
from scipy import sparse
from scipy.special import logit

from sparsevae.datasets import make_anchored_binary, make_anchored_counts
from sparsevae.exceptions import ParameterError


@pytest.fixture(scope="module")
def counts():
    return make_anchored_counts(600, 60, 4, correlation=0.2, anchors_per_factor=5, random_state=0)


def test_default_counts_have_the_size_of_the_recovery_problem():
    data = make_anchored_counts(random_state=0)
    assert data.X.shape == (5000, 300)
    assert data.mask.shape == (300, 10)
    np.testing.assert_array_equal(data.X.sum(axis=1), 80)


def test_counts_are_a_sparse_table_of_whole_numbers(counts):
    assert sparse.issparse(counts.X)
    assert counts.X.dtype.kind == "i"
    np.testing.assert_array_equal(counts.X.sum(axis=1), 80)


def test_expected_counts_are_the_softmax_of_the_curves(counts):
    logits = np.column_stack([curve(counts.factors) for curve in counts.curves])
    weights = np.exp(logits)
    np.testing.assert_allclose(counts.mean, 80 * weights / weights.sum(axis=1, keepdims=True))


def test_counts_scatter_around_their_expectation(counts):
    error = (counts.X.toarray() - counts.mean).mean(axis=0)
    spread = np.sqrt(counts.mean.mean(axis=0) / counts.n_samples)
    assert np.abs(error / spread).max() < 5


def test_an_anchor_word_has_a_linear_logit_and_a_background_word_a_constant_one(counts):
    sizes = counts.mask.sum(axis=1)
    anchor, background = np.flatnonzero(sizes == 1)[0], np.flatnonzero(sizes == 0)[0]
    k = int(counts.mask[anchor].argmax())
    values = counts.curves[anchor](counts.factors)
    np.testing.assert_allclose(np.polyfit(counts.factors[:, k], values, 1)[0], 1.5)
    assert np.ptp(counts.curves[background](counts.factors)) == 0
    assert (sizes == 0).sum() == 12


def test_counts_without_background_are_refused_because_the_level_would_be_lost():
    with pytest.raises(ParameterError, match="background_share"):
        make_anchored_counts(10, background_share=0.0)


def test_binary_probabilities_are_the_sigmoid_of_the_curves():
    data = make_anchored_binary(2000, 30, 3, strength=2.0, n_noise_features=2, random_state=1)
    assert set(np.unique(data.X)) == {0.0, 1.0}
    logits = logit(data.mean)
    np.testing.assert_allclose(logits[:, 3], data.curves[3](data.factors))
    np.testing.assert_allclose(logits[:, :28].std(axis=0), 2.0, rtol=0.15)
    assert np.ptp(logits[:, 28:], axis=0).max() < 1e-12
    error = (data.X - data.mean).mean(axis=0) / np.sqrt((data.mean * (1 - data.mean)).mean(axis=0) / 2000)
    assert np.abs(error).max() < 5


def test_binary_without_strength_depends_on_nothing():
    data = make_anchored_binary(20, 10, 2, strength=0.0, random_state=0)
    assert np.ptp(data.mean, axis=0).max() == 0
    with pytest.raises(ParameterError, match="strength >= 0"):
        make_anchored_binary(20, 10, 2, strength=-1.0)
