import numpy as np
import pytest
from scipy import sparse

from sparsevae.datasets import Dataset, Topics, fit_topics, make_semisynthetic
from sparsevae.exceptions import DataError, ParameterError


@pytest.fixture(scope="module")
def topics():
    generator = np.random.default_rng(0)
    return Topics(generator.dirichlet([0.3] * 4, size=400), generator.dirichlet([0.5] * 12, size=4))


@pytest.fixture(scope="module")
def corpus(topics):
    counts = np.random.default_rng(1).multinomial(50, topics.proportions @ topics.words)
    return Dataset(sparse.csr_array(counts), [f"w{j}" for j in range(12)], description="Twelve words.")


def correlation_of_copies(data):
    first, copies = np.hsplit(np.log(data.factors), 2)
    return np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(first.T, copies.T, strict=True)])


def test_test_factors_are_unchanged(corpus, topics):
    data = make_semisynthetic(corpus, topics=topics, random_state=0)
    np.testing.assert_array_equal(data.test.factors, topics.proportions)


def test_training_copies_follow_the_logit_of_the_paper(corpus, topics):
    data = make_semisynthetic(corpus, topics=topics, difference=0.0, random_state=0)
    first = topics.proportions[:, :2]
    expected = np.hstack([first, first]) / (2 * first.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(data.factors, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("form", ["sampled", "rounded"])
def test_less_noise_means_more_difference(corpus, topics, form):
    drawn = [
        make_semisynthetic(corpus, topics=topics, difference=name, form=form, random_state=0)
        for name in ("high", "medium", "low")
    ]
    high, medium, low = map(correlation_of_copies, drawn)
    assert high > medium > low


def test_sampled_counts_keep_the_lengths_and_scatter_around_the_mean(corpus, topics):
    data = make_semisynthetic(corpus, topics=topics, random_state=0)
    np.testing.assert_array_equal(data.X.sum(axis=1), 50)
    np.testing.assert_allclose(data.mean, 50 * data.factors @ topics.words)
    error = (data.X.toarray() - data.mean).mean(axis=0) / np.sqrt(data.mean.mean(axis=0) / 400)
    assert np.abs(error).max() < 5


def test_rounded_counts_are_the_rounded_mean(corpus, topics):
    data = make_semisynthetic(corpus, topics=topics, form="rounded", random_state=0)
    np.testing.assert_array_equal(data.X.toarray(), np.around(data.mean))
    np.testing.assert_array_equal(data.test.X.toarray(), np.around(data.test.mean))
    assert "rounded" in data.description


def test_empty_documents_are_dropped_and_counted(corpus, topics):
    lengths = np.arange(400) % 5
    short = Dataset(sparse.csr_array(np.outer(lengths, np.eye(12, dtype=int)[0])), corpus.feature_names)
    data = make_semisynthetic(short, topics=topics, form="rounded", random_state=0)
    assert data.X.sum(axis=1).min() > 0
    assert f"{400 - data.n_samples} empty documents dropped" in data.description


def test_documents_too_short_to_round_to_anything_are_refused(corpus, topics):
    one_word = np.outer(np.ones(400, dtype=int), np.eye(12, dtype=int)[0])
    short = Dataset(sparse.csr_array(one_word), corpus.feature_names)
    flat = Topics(topics.proportions, np.full((4, 12), 1 / 12))
    with pytest.raises(DataError, match="form='sampled'"):
        make_semisynthetic(short, topics=flat, form="rounded")


def test_topics_are_fitted_where_none_are_given(corpus):
    data = make_semisynthetic(corpus, n_factors=2, random_state=0)
    again = make_semisynthetic(corpus, n_factors=2, random_state=0)
    assert data.factors.shape == (400, 2)
    np.testing.assert_array_equal(data.X.toarray(), again.X.toarray())


def test_fitted_topics_are_shares(corpus):
    fitted = fit_topics(corpus, n_factors=3, random_state=0)
    np.testing.assert_allclose(fitted.proportions.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.words.sum(axis=1), 1)


def test_topics_of_other_data_are_refused(corpus, topics):
    with pytest.raises(DataError, match="same data"):
        make_semisynthetic(corpus.take(range(10)), topics=topics)


@pytest.mark.parametrize("bad", [{"difference": "huge"}, {"difference": -1.0}, {"form": "exact"}])
def test_bad_parameters_are_refused(corpus, topics, bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        make_semisynthetic(corpus, topics=topics, **bad)
