from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse, stats
from scipy.special import digamma, gammaln
from sklearn.decomposition import PCA, FactorAnalysis
from torch.distributions import Dirichlet, kl_divergence

from sparsevae.comparison.adapters import EASE, FactorAnalysisAdapter, LDAAdapter, PCAAdapter
from sparsevae.exceptions import DataError, ParameterError


@pytest.fixture(scope="module")
def real():
    rng = np.random.default_rng(0)
    return (
        rng.standard_normal((80, 2)) @ rng.standard_normal((2, 5)) + 0.3 * rng.standard_normal((80, 5)) + 4.0
    )


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    return rng.poisson(rng.gamma(1.0, 2.0, size=(60, 1)) * rng.gamma(1.0, 1.0, size=(1, 6))).astype(float)


@pytest.mark.parametrize("adapter, model", [(PCAAdapter, PCA), (FactorAnalysisAdapter, FactorAnalysis)])
def test_gaussian_models_know_log_p_of_x(adapter, model, real):
    fitted = adapter(2).fit(real)
    np.testing.assert_allclose(fitted.log_evidence(real), model(2).fit(real).score_samples(real), rtol=1e-5)
    assert adapter(2, likelihood="poisson").fit(np.rint(real**2)).log_evidence(np.rint(real**2)) is None


@pytest.mark.parametrize("adapter", [PCAAdapter, FactorAnalysisAdapter, EASE])
def test_reconstructions_follow_the_rows(adapter, real):
    centred = real - real.mean(0)
    fitted = adapter(2, **({"penalty": 1.0} if adapter is EASE else {})).fit(centred)
    left = np.square(centred - fitted._reconstruct(centred)).mean()
    assert left < 0.3 * centred.var()
    assert np.isfinite(fitted.score(centred))


def test_ease_predicts_a_feature_from_the_others_only(real):
    """By hand: ridge regression of each column on the rest."""
    fitted = EASE(penalty=3.0).fit(real)
    for j in range(5):
        rest = np.delete(np.arange(5), j)
        gram = real[:, rest].T @ real[:, rest] + 3.0 * np.eye(4)
        weights = np.linalg.solve(gram, real[:, rest].T @ real[:, j])
        np.testing.assert_allclose(fitted.model_[rest, j], weights, rtol=1e-8)
        assert fitted.model_[j, j] == pytest.approx(0.0, abs=1e-12)


def test_topics_reconstruct_the_size_of_each_row(counts):
    fitted = LDAAdapter(2, likelihood="multinomial", random_state=0).fit(counts)
    np.testing.assert_allclose(fitted._reconstruct(counts).sum(1), counts.sum(1))
    with pytest.raises(DataError, match="Negative values in data passed to LDA"):
        LDAAdapter(2).fit(counts - 9.0)


def test_the_bound_of_topics_is_below_log_p_of_x_and_close(counts):
    """Log p(x) by many draws of the shares of topics from their prior."""
    few = np.minimum(counts, 3.0)
    fitted = LDAAdapter(2, likelihood="multinomial", random_state=0).fit(few)
    bounds = fitted.log_evidence(few)
    shares = np.random.default_rng(0).dirichlet([0.5, 0.5], size=100_000) @ fitted._topics()
    exact = [np.log(stats.multinomial.pmf(row, row.sum(), shares).mean()) for row in few[:20]]
    assert (bounds[:20] <= np.array(exact) + 0.02).all()
    assert np.mean(exact - bounds[:20]) < 0.5
    assert LDAAdapter(2, likelihood="poisson", random_state=0).fit(few).log_evidence(few) is None


def test_the_bound_of_topics_has_the_divergence_of_dirichlets(counts):
    fitted = LDAAdapter(3, likelihood="multinomial", random_state=0).fit(counts)
    gamma = fitted.model_.transform(counts, normalize=False)
    q, prior = Dirichlet(torch.as_tensor(gamma)), Dirichlet(torch.full((3,), 1 / 3, dtype=torch.float64))
    log_theta = digamma(gamma) - digamma(gamma.sum(1, keepdims=True))
    fit = (counts * np.log(np.exp(log_theta) @ fitted._topics())).sum(1)
    coefficient = gammaln(counts.sum(1) + 1) - gammaln(counts + 1).sum(1)
    expected = coefficient + fit - kl_divergence(q, prior).numpy()
    np.testing.assert_allclose(fitted.log_evidence(sparse.csr_array(counts)), expected, rtol=1e-10)


@pytest.mark.parametrize("adapter", [PCAAdapter, FactorAnalysisAdapter, LDAAdapter, EASE])
def test_sparse_tables_score_as_dense_ones(adapter, counts):
    model = adapter(2, likelihood="negative_binomial", random_state=0)
    dense = model.fit(counts).score_samples(counts)
    compressed = sparse.csr_array(counts)
    np.testing.assert_allclose(model.fit(compressed).score_samples(compressed), dense, rtol=1e-6)


@pytest.mark.parametrize("adapter", [PCAAdapter, FactorAnalysisAdapter, LDAAdapter])
def test_more_factors_than_features_become_as_many_as_there_can_be(adapter, counts):
    assert adapter(50).fit(counts).transform(counts).shape == (60, 6)


def test_bad_parameters_are_refused(counts):
    with pytest.raises(ParameterError, match="n_factors"):
        PCAAdapter(0).fit(counts)
    with pytest.raises(ParameterError, match="penalty"):
        EASE(penalty=-1.0).fit(counts)


@pytest.mark.parametrize("adapter, model", [(PCAAdapter, PCA), (FactorAnalysisAdapter, FactorAnalysis)])
def test_standardised_features_are_fitted_in_units_of_their_own_and_scored_in_the_tables(
    adapter, model, real
):
    stretched = real * [1.0, 10.0, 0.1, 3.0, 1.0]
    scale = stretched.std(0)
    fitted = adapter(2, standardise=True).fit(stretched)
    by_hand = model(2).fit(stretched / scale)
    np.testing.assert_allclose(
        fitted.log_evidence(stretched),
        by_hand.score_samples(stretched / scale) - np.log(scale).sum(),
        rtol=1e-5,
    )
    plain = adapter(2, standardise=True).fit(real)
    np.testing.assert_allclose(np.abs(plain.transform(real)), np.abs(fitted.transform(stretched)), rtol=1e-4)
    np.testing.assert_allclose(
        fitted._reconstruct(stretched) / plain._reconstruct(real),
        np.broadcast_to(scale / real.std(0), real.shape),
        rtol=1e-4,
    )


def test_a_constant_feature_does_no_harm_to_standardised_ones(real):
    with_constant = np.column_stack([real, np.full(len(real), 3.0)])
    fitted = PCAAdapter(2, standardise=True).fit(with_constant)
    np.testing.assert_allclose(fitted._reconstruct(with_constant)[:, -1], 3.0)
