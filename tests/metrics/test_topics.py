import itertools

import numpy as np
import pytest
from scipy import sparse

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics import npmi_coherence, top_words, topic_diversity

# words 0 and 1 always meet, in half of the documents; word 2 never meets them; word 3 is independent
DOCUMENTS = np.array([[2, 1, 0, 1], [1, 1, 0, 0], [0, 0, 3, 1], [0, 0, 1, 0]])


def test_words_that_always_meet_score_one_and_words_that_never_meet_minus_one():
    assert npmi_coherence([[1, 1, 0, 0]], DOCUMENTS) == pytest.approx(1)
    assert npmi_coherence([[1, 0, 1, 0]], DOCUMENTS) == pytest.approx(-1)
    assert npmi_coherence([[1, 0, 0, 1]], DOCUMENTS) == pytest.approx(0)


def test_words_in_every_document_score_one():
    assert npmi_coherence([[1, 1]], np.ones((3, 2))) == 1


def test_coherence_is_the_mean_over_pairs_then_topics():
    generator = np.random.default_rng(0)
    counts = generator.poisson(0.7, size=(60, 6))
    topics = generator.random((3, 6))
    present = counts > 0
    by_hand = []
    for topic in topics:
        pairs = []
        for a, b in itertools.combinations(np.argsort(-topic)[:4], 2):
            joint = (present[:, a] & present[:, b]).mean()
            pairs.append(np.log(joint / (present[:, a].mean() * present[:, b].mean())) / -np.log(joint))
        by_hand.append(np.mean(pairs))
    np.testing.assert_allclose(npmi_coherence(topics, counts, n_words=4, per_topic=True), by_hand)
    assert npmi_coherence(topics, sparse.csr_array(counts), n_words=4) == pytest.approx(np.mean(by_hand))


def test_topics_of_one_word_have_no_coherence():
    values = npmi_coherence([[1, 0, 0, 0], [1, 1, 0, 0]], DOCUMENTS, per_topic=True)
    assert np.isnan(values[0])
    assert npmi_coherence([[1, 0, 0, 0], [1, 1, 0, 0]], DOCUMENTS) == pytest.approx(1)
    with pytest.raises(DataError, match="two or more words"):
        npmi_coherence([[1, 0, 0, 0]], DOCUMENTS)


def test_top_words_are_the_largest_weights_above_zero():
    words = top_words([[0.1, 0.5, 0.0, 0.3], [0, 0, 0, 0]], n_words=3)
    assert [w.tolist() for w in words] == [[1, 3, 0], []]


def test_diversity_counts_different_words():
    assert topic_diversity([[3, 2, 0, 0], [0, 0, 1, 2]], n_words=2) == 1
    assert topic_diversity([[3, 2, 0, 0], [3, 0, 1, 0]], n_words=2) == 0.75
    assert topic_diversity([[3, 2, 0, 0]] * 4, n_words=2) == 0.25


def test_unusable_input_is_refused():
    with pytest.raises(DataError, match="word above zero"):
        topic_diversity(np.zeros((2, 3)))
    with pytest.raises(DataError, match="counts of 3 words"):
        npmi_coherence(np.ones((2, 3)), DOCUMENTS)
    with pytest.raises(ParameterError, match="n_words"):
        top_words(np.ones((2, 3)), n_words=0)
