from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multinomial, norm

from sparsevae import NMF, VAE, VSC, SparseVAE
from sparsevae.comparison.adapters import EASE, FactorAnalysisAdapter, LDAAdapter, PCAAdapter
from sparsevae.comparison.measures import MEASURES, Fit, reconstruction_nll, score_of
from sparsevae.datasets import Dataset, make_sparse_factors
from sparsevae.metrics import dci, heldout_mse, ndcg_at_k, recall_at_k

QUICK = {"max_epochs": 3, "random_state": 0, "hidden_sizes": (8, 8)}

# Fits of three epochs have not settled, and need not.
pytestmark = pytest.mark.filterwarnings("ignore::sparsevae.exceptions.ConvergenceWarning")


def halves(X, **fields):
    names = np.array([f"f{j}" for j in range(X.shape[1])])
    data = Dataset(X, names, **fields)
    rows = np.arange(data.n_samples)
    return data.take(rows[::2]), data.take(rows[1::2])


@pytest.fixture(scope="module")
def gaussian():
    data = make_sparse_factors(120, random_state=0)
    rows = np.arange(120)
    return data.take(rows[:60]), data.take(rows[60:])


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(9, 0.3), size=2)
    shares = rng.dirichlet([0.5, 0.5], size=80) @ topics
    return halves(sparse.csr_array(rng.multinomial(20, shares).astype(np.int32)))


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    X = (rng.random((80, 12)) < rng.beta(0.4, 0.8, size=(80, 1))).astype(np.int32)
    X[:, 0] = 1
    return halves(sparse.csr_array(X))


def measured(name, estimator, data, seed=0):
    train, test = data
    return MEASURES[name].compute(Fit(estimator.fit(train.X), train, test, seed))


def test_the_nll_of_a_posterior_draw_varies_with_the_seed_and_that_of_the_mean_does_not(counts):
    model = VAE(2, likelihood="multinomial", **QUICK)
    first, again, other = (measured("nll", model, counts, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert measured("nll_mean", model, counts, 0) == measured("nll_mean", model, counts, 1)


def test_the_nll_at_the_mean_is_that_of_the_decoded_posterior_mean(counts, gaussian):
    model = VAE(2, likelihood="multinomial", **QUICK).fit(counts[0].X)
    X = counts[1].X.toarray()
    weights = model.inverse_transform(model.transform(X)).astype(float)
    shares = weights / weights.sum(1, keepdims=True)
    by_hand = -(X * np.log(shares)).sum(1).mean()
    assert reconstruction_nll(model, counts[1].X) == pytest.approx(by_hand, rel=1e-5)
    model = VAE(2, **QUICK).fit(gaussian[0].X)
    mean = model.inverse_transform(model.transform(gaussian[1].X))
    density = norm(mean, np.sqrt(model.noise_variance_)).logpdf(gaussian[1].X)
    assert reconstruction_nll(model, gaussian[1].X) == pytest.approx(-density.sum(1).mean(), rel=1e-4)


def test_minus_the_elbo_leaves_the_multinomial_coefficient_out_and_is_above_the_reconstruction(counts):
    model = VAE(2, likelihood="multinomial", **QUICK).fit(counts[0].X)
    X = counts[1].X.toarray()
    uniform = np.full(X.shape[1], 1 / X.shape[1])
    coefficient = multinomial(X.sum(1), uniform).logpmf(X) - X.sum(1) * np.log(uniform[0])
    bound = measured("nll_bound", model, counts)
    assert bound == pytest.approx(coefficient.mean() - model.score(X), rel=1e-6)
    assert bound > measured("nll", model, counts)


def test_methods_without_a_posterior_have_no_elbo_and_one_nll(counts):
    model = NMF(2, likelihood="multinomial", random_state=0)
    assert measured("nll_bound", model, counts) is None
    assert measured("nll", model, counts) == measured("nll_mean", model, counts)
    assert np.isnan(score_of(model.fit(counts[0].X), counts[1].X))


def test_topics_have_an_elbo_on_the_scale_of_their_nll(counts):
    model = LDAAdapter(2, likelihood="multinomial", random_state=0)
    nll = measured("nll", model, counts)
    assert nll < measured("nll_bound", model, counts) < 1.5 * nll


def test_linear_gaussian_models_know_their_evidence(gaussian):
    model = FactorAnalysisAdapter(2, standardise=True)
    assert measured("nll_bound", model, gaussian) == pytest.approx(-model.log_evidence(gaussian[1].X).mean())


@pytest.mark.parametrize("make", [SparseVAE, VSC], ids=["gaussian posterior", "gates"])
def test_every_posterior_can_be_drawn_from(make, gaussian):
    fit = Fit(make(2, **QUICK).fit(gaussian[0].X), *gaussian)
    assert fit.drawn.shape == fit.codes.shape
    assert np.isfinite(fit.drawn).all()
    assert not np.array_equal(fit.drawn, fit.codes)


def test_error_and_recovery_are_those_of_the_metrics(gaussian):
    model = PCAAdapter(2)
    assert measured("mse", model, gaussian) == measured("mse_mean", model, gaussian)
    by_hand = heldout_mse(gaussian[1].X, model._reconstruct(gaussian[1].X))
    assert measured("mse_mean", model, gaussian) == pytest.approx(by_hand)
    codes = model.transform(gaussian[1].X)
    assert measured("dci", model, gaussian) == dci(codes, gaussian[1].factors).disentanglement
    assert measured("dci_16", model, gaussian) != measured("dci", model, gaussian)
    assert 0 <= measured("rank_correlation", model, gaussian) <= 1
    assert measured("support_f1", model, gaussian) is None


def test_half_of_the_words_are_hidden_and_none_is_lost(counts):
    fit = Fit(NMF(2, likelihood="multinomial", random_state=0).fit(counts[0].X), *counts)
    seen, hidden = fit.partly_seen
    np.testing.assert_array_equal((seen + hidden).toarray(), counts[1].X.toarray())
    assert 0.35 < hidden.sum() / counts[1].X.sum() < 0.65
    assert 1.0 < measured("completion", NMF(2, likelihood="multinomial"), counts) < 60.0


def test_ranking_is_of_the_seen_row_in_the_paper_and_of_hidden_items_beside_it(binary):
    model = EASE(likelihood="multinomial", penalty=1.0)
    fit = Fit(model.fit(binary[0].X), *binary)
    seen, hidden = fit.partly_seen
    assert seen.multiply(hidden).sum() == 0
    scores = np.maximum(model._reconstruct(binary[1].X.astype(float)), 0.0)
    assert measured("recall_5", model, binary) == pytest.approx(recall_at_k(scores, binary[1].X, 5))
    foretold = np.maximum(model._reconstruct(seen.astype(float)), 0.0)
    by_hand = ndcg_at_k(foretold, hidden, 10, protocol="fold_in", seen=seen)
    assert measured("ndcg_10_fold_in", model, binary) == pytest.approx(by_hand)
    assert 0 <= measured("recall_5_fold_in", model, binary) <= 1
    # An item that was seen is not guessed: chance is over the others.
    chances = np.where(seen.toarray() > 0, 0.0, foretold)
    chances = (chances / chances.sum(1, keepdims=True))[hidden.toarray() > 0] + 1e-6
    assert measured("completion", model, binary) == pytest.approx(np.exp(-np.log(chances).mean()))
    assert 0 <= measured("ndcg_10", model, binary) <= 1


def test_accuracy_is_that_of_rows_the_factors_were_not_fitted_on():
    rng = np.random.default_rng(0)
    target = np.repeat(["a", "b"], 60)
    X = rng.standard_normal((120, 4)) + 6.0 * (target == "b")[:, None]
    assert measured("accuracy", PCAAdapter(1), halves(X, target=target)) == 1.0


def test_topics_are_names_in_falling_order(counts):
    model = NMF(2, likelihood="multinomial", random_state=0).fit(counts[0].X)
    topics = MEASURES["topics"].compute(Fit(model, *counts))
    assert len(topics) == 2
    assert topics[0][0] == f"f{model.components_[0].argmax()}"
    assert -1 <= measured("coherence", model, counts) <= 1
    assert 0 < measured("diversity", model, counts) <= 1


def test_an_empty_mask_has_no_topics_and_no_coherence(counts):
    model = SparseVAE(2, likelihood="multinomial", recipe="paper", spike_rate=1e9, slab_rate=1e8, **QUICK)
    fit = Fit(model.fit(counts[0].X), *counts)
    assert MEASURES["n_factors"].compute(fit) == 0
    assert MEASURES["topics"].compute(fit) == MEASURES["ends"].compute(fit) == []
    for name in ("coherence", "coherence_ends", "diversity", "sparsity"):
        assert MEASURES[name].compute(fit) is None


def test_the_ends_of_a_factor_are_what_rises_and_what_falls_with_it(counts):
    settings = {"likelihood": "multinomial", "recipe": "paper", "spike_rate": 1.0, "slab_rate": 1.0, **QUICK}
    model = SparseVAE(2, **settings).fit(counts[0].X)
    fit = Fit(model, *counts)
    ends = MEASURES["ends"].compute(fit)
    assert len(ends) == 2 * len(model.active_factors_) > 0
    for k, (rising, falling) in enumerate(zip(ends[::2], ends[1::2], strict=True)):
        effects = model.effects_[:, model.active_factors_[k]]
        assert {*rising} == {f"f{j}" for j in np.flatnonzero(effects > 0)}
        assert {*falling} == {f"f{j}" for j in np.flatnonzero(effects < 0)}
        shares = model.variance_shares_[:, model.active_factors_[k]]
        assert rising == sorted(rising, key=lambda name: -shares[int(name[1:])])
    assert -1 <= MEASURES["coherence_ends"].compute(fit) <= 1


def test_masks_and_codes_are_lists_for_the_figure(gaussian):
    model = SparseVAE(2, recipe="paper", **QUICK)
    np.testing.assert_allclose(measured("mask", model, gaussian), model.mask_, atol=1e-5)
    np.testing.assert_allclose(measured("codes", model, gaussian), model.transform(gaussian[1].X), atol=1e-3)
    assert measured("mask", PCAAdapter(2), gaussian) is None
    assert 0 <= measured("sparsity", model, gaussian) <= 1
