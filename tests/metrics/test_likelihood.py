import numpy as np
import pytest
from scipy import sparse, stats

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics import heldout_mse, heldout_nll, likelihood, log_likelihood, perplexity

GENERATOR = np.random.default_rng(0)
REAL = GENERATOR.normal(size=(6, 4))
COUNTS = GENERATOR.poisson(2.0, size=(6, 4))
BINARY = GENERATOR.integers(0, 2, size=(6, 4))
MEAN = GENERATOR.gamma(2.0, size=(6, 4))
SHARES = MEAN / MEAN.sum(axis=1, keepdims=True)
VARIANCE = np.array([0.5, 1.0, 2.0, 0.1])


def test_gaussian_is_scipys():
    expected = stats.norm(MEAN, np.sqrt(VARIANCE)).logpdf(REAL).sum(axis=1)
    np.testing.assert_allclose(log_likelihood(REAL, MEAN, noise_variance=VARIANCE), expected)


def test_multinomial_is_scipys_with_weights_of_any_scale():
    expected = [stats.multinomial(x.sum(), p).logpmf(x) for x, p in zip(COUNTS, SHARES, strict=True)]
    np.testing.assert_allclose(log_likelihood(COUNTS, MEAN, likelihood="multinomial"), expected)


def test_bernoulli_poisson_and_negative_binomial_are_scipys():
    np.testing.assert_allclose(
        log_likelihood(BINARY, SHARES, likelihood="bernoulli"),
        stats.bernoulli(SHARES).logpmf(BINARY).sum(axis=1),
    )
    np.testing.assert_allclose(
        log_likelihood(COUNTS, MEAN, likelihood="poisson"), stats.poisson(MEAN).logpmf(COUNTS).sum(axis=1)
    )
    r = VARIANCE * 3
    np.testing.assert_allclose(
        log_likelihood(COUNTS, MEAN, likelihood="negative_binomial", inverse_dispersion=r),
        stats.nbinom(r, r / (r + MEAN)).logpmf(COUNTS).sum(axis=1),
    )


@pytest.mark.parametrize("kind", ["multinomial", "poisson", "bernoulli"])
def test_sparse_data_in_small_blocks_give_the_same(kind, monkeypatch):
    X, mean = (BINARY, SHARES) if kind == "bernoulli" else (COUNTS, MEAN)
    expected = log_likelihood(X, mean, likelihood=kind)
    monkeypatch.setattr(likelihood, "_BLOCK_ENTRIES", 8)
    for form in (sparse.csr_array(X), sparse.csr_matrix(X), sparse.coo_array(X), X):
        np.testing.assert_allclose(log_likelihood(form, mean, likelihood=kind), expected)


def test_reported_nll_has_no_coefficient_and_is_a_mean_over_samples():
    expected = -(COUNTS * np.log(SHARES)).sum() / 6
    assert heldout_nll(COUNTS, SHARES) == pytest.approx(expected)
    assert heldout_nll(sparse.csr_array(COUNTS), 3 * SHARES) == pytest.approx(expected)


def test_floor_is_that_of_the_released_code():
    shares = np.array([[1.0, 0.0]])
    assert heldout_nll([[1, 1]], shares) == np.inf
    expected = -np.log(1 + 1e-6) - np.log(1e-6)
    assert heldout_nll(np.array([[1, 1]]), shares, floor=1e-6) == pytest.approx(expected)


def test_a_word_that_is_impossible_and_absent_costs_nothing():
    assert heldout_nll(np.array([[2, 0]]), np.array([[1.0, 0.0]])) == 0


def test_gaussian_nll_needs_a_positive_variance():
    with pytest.raises(ParameterError, match="positive noise_variance"):
        heldout_nll(REAL, MEAN, likelihood="gaussian")
    with pytest.raises(ParameterError, match="positive inverse_dispersion"):
        heldout_nll(COUNTS, MEAN, likelihood="negative_binomial", inverse_dispersion=-1.0)


def test_squared_error_is_a_mean_over_entries():
    assert heldout_mse(REAL, MEAN) == pytest.approx(np.mean((REAL - MEAN) ** 2))
    assert heldout_mse(sparse.csr_array(COUNTS), MEAN) == pytest.approx(np.mean((COUNTS - MEAN) ** 2))


def test_perplexity_of_a_uniform_guess_is_the_number_of_words():
    assert perplexity(COUNTS, np.ones((6, 4))) == pytest.approx(4)
    assert perplexity(sparse.csr_array(COUNTS), np.ones((6, 4))) == pytest.approx(4)


def test_perplexity_is_per_token_and_empty_documents_do_no_harm():
    X = np.array([[3, 1], [0, 0]])
    shares = np.array([[0.5, 0.5], [0.0, 0.0]])
    assert perplexity(X, shares) == pytest.approx(2)
    with pytest.raises(DataError, match="at least one token"):
        perplexity(np.zeros((2, 2)), shares)


def test_unusable_input_is_refused():
    with pytest.raises(ParameterError, match="'gaussian', 'multinomial'"):
        log_likelihood(REAL, MEAN, likelihood="softmax")
    with pytest.raises(DataError, match="same shape"):
        heldout_mse(REAL, MEAN[:3])
    with pytest.raises(DataError, match="0 or more"):
        heldout_nll(COUNTS, -MEAN)
    with pytest.raises(DataError, match="two dimensions"):
        heldout_mse(REAL[0], MEAN[0])
