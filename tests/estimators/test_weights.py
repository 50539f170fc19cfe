"""Weights are frequencies: 0 is a row that is absent, 2 a row that is there twice."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.fitting.choice import parsimonious
from sparsevae.fitting.data import linear_inputs
from sparsevae.fitting.settings import new_module
from sparsevae.summaries import column_moments

from ..tables import MIXED, make_table

TINY = {"n_factors": 2, "hidden_sizes": (5,), "max_epochs": 4, "random_state": 0, "validation_fraction": 0.0}
MANY = 3  # copies of rows, from which on they are weights in each step, and no copies
KINDS = {"SparseVAE": SparseVAE, "VAE": VAE, "VSC": VSC, "OIVAE": OIVAE}


def fit(model, X, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **more)


@pytest.fixture
def weight(rng):
    return rng.integers(0, 3, size=60).astype(float)


def take(X, index):
    return X.iloc[index] if isinstance(X, pd.DataFrame) else X[index]


def holed(X):
    X = np.array(X, dtype=float)
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.15] = np.nan
    return X


@pytest.mark.parametrize("punch", [np.asarray, holed], ids=["whole", "holes"])
def test_moments_are_those_of_repeated_rows(weight, punch):
    X = punch(make_table())
    repeated = np.repeat(X, weight.astype(int), axis=0)
    for got, expected in zip(column_moments(X, weight), column_moments(repeated), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The weights sum to:sparsevae.exceptions.DataWarning")
@pytest.mark.parametrize("punch", [np.asarray, holed], ids=["whole", "holes"])
@pytest.mark.parametrize("name", KINDS)
def test_loss_gradient_and_closed_forms_are_those_of_repeated_rows(name, likelihood, punch, weight):
    spec = MIXED if likelihood == "mixed" else likelihood
    weight = MANY * weight
    X = make_table(likelihood)
    X = pd.DataFrame(punch(X), columns=X.columns) if likelihood == "mixed" else punch(X)
    index = np.repeat(np.arange(60), weight.astype(int))
    found = []
    for table, more in ((X, {"sample_weight": weight}), (take(X, index), {})):
        model = KINDS[name](**TINY, likelihood=spec)
        data = model._prepare(table, **more)
        if name == "SparseVAE":
            module = new_module(model._settings(data), data, 1).select(0)
        else:
            module = model._new_module(data, 1)
        module = module.double().train()
        rows = data.everything.rows.sort().values
        noise = torch.randn(60, module.n_noise, generator=torch.Generator().manual_seed(1)).double()
        noise = noise[rows] if more else noise[torch.as_tensor(index)[rows]]
        batch = data.source.batch(rows)
        batch = batch._replace(
            **{k: v.double() for k, v in batch._asdict().items() if v is not None and v.is_floating_point()}
        )
        loss, sums = module.step(batch, noise, data.everything.n_samples)
        sum(loss).backward()
        gradients = [p.grad.clone() for p in module.parameters() if p.grad is not None]
        module.update(sums, data.everything.n_samples)
        found.append((list(loss), gradients, list(module.nuisance.values().values()), data.feature_mean))
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("punch", [np.asarray, holed], ids=["whole", "holes"])
@pytest.mark.parametrize("name", KINDS)
def test_a_fit_with_few_copies_is_bit_by_bit_that_of_the_repeated_rows(name, punch, weight):
    X = punch(make_table())
    settings = {**TINY, "validation_fraction": 0.1}
    weighted = fit(KINDS[name](**settings), X, sample_weight=weight)
    repeated = fit(KINDS[name](**settings), np.repeat(X, weight.astype(int), axis=0))
    assert weighted.history_.equals(repeated.history_)
    np.testing.assert_array_equal(weighted.transform(X), repeated.transform(X))
    np.testing.assert_array_equal(weighted.noise_variance_, repeated.noise_variance_)
    np.testing.assert_allclose(weighted.effects_, repeated.effects_, rtol=1e-4, atol=1e-6)


def test_groups_and_sizes_go_with_the_copies_of_their_rows(weight):
    counts = make_table("poisson")
    sides = {"groups": np.arange(60) % 2, "exposure": np.linspace(1.0, 2.0, 60)}
    copies = {key: np.repeat(side, weight.astype(int)) for key, side in sides.items()}
    model = VAE(**TINY, likelihood="poisson")
    weighted = fit(model, counts, sample_weight=weight, **sides).transform(counts, **sides)
    repeated = fit(model, np.repeat(counts, weight.astype(int), axis=0), **copies).transform(counts, **sides)
    np.testing.assert_array_equal(weighted, repeated)


@pytest.mark.parametrize("size", [1.0, 0.5])
def test_a_row_of_weight_zero_is_absent(weight, size):
    X = make_table()
    for kind in KINDS.values():
        whole = fit(kind(**TINY), X, sample_weight=size * np.minimum(weight, 1.0))
        part = fit(kind(**TINY), X[weight > 0], sample_weight=np.full(int((weight > 0).sum()), size))
        np.testing.assert_array_equal(whole.transform(X), part.transform(X))


def test_scores_are_those_of_repeated_rows(fitted, weight, make_table):
    X, model = make_table(), fitted()
    repeated = np.repeat(X, weight.astype(int), axis=0)
    np.testing.assert_allclose(model.score(X, sample_weight=weight), model.score(repeated), rtol=1e-12)
    np.testing.assert_allclose(
        model.score_samples(X, sample_weight=weight), weight * model.score_samples(X), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.score_samples(X, sample_weight=weight).sum(), model.score_samples(repeated).sum(), rtol=1e-12
    )
    assert model.masked_score(X, sample_weight=weight) != model.masked_score(X)


def test_choice_among_candidates_is_that_of_repeated_rows(rng, weight):
    bounds = rng.normal(size=(3, 60)) + np.array([[0.0], [0.05], [0.1]])
    sizes = np.array([1, 2, 3]), np.array([5, 8, 12])
    index = np.repeat(np.arange(60), weight.astype(int))
    chosen, scores, errors = parsimonious(bounds, *sizes, weight.sum(), weight)
    again = parsimonious(bounds[:, index], *sizes, len(index))
    assert chosen == again[0]
    np.testing.assert_allclose(scores, again[1], rtol=1e-12)
    np.testing.assert_allclose(errors, again[2], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The weights sum to:sparsevae.exceptions.DataWarning")
@pytest.mark.parametrize("times", [1, MANY])
def test_linear_analyses_see_rows_as_often_as_they_count(weight, times):
    X, weight = make_table(), times * weight
    data = VAE(**TINY)._prepare(X, sample_weight=weight)
    again = VAE(**TINY)._prepare(np.repeat(X, weight.astype(int), axis=0))
    got, expected = (np.sort(linear_inputs(d.everything), axis=0) for d in (data, again))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_nmf_with_weights_is_nmf_of_repeated_rows(weight, rng):
    X = np.abs(make_table())
    repeated = NMF(2, random_state=0).fit(np.repeat(X, weight.astype(int), axis=0))
    model = NMF(2, random_state=0).fit(X, sample_weight=weight)
    np.testing.assert_allclose(model.components_, repeated.components_, rtol=1e-7)
    np.testing.assert_allclose(model.noise_variance_, repeated.noise_variance_, rtol=1e-7)
    uneven = rng.uniform(0.5, 2.0, size=60)
    first, second = (
        NMF(2, random_state=0, alpha=0.0).fit(X, sample_weight=w) for w in (uneven, 0.5 * uneven)
    )
    np.testing.assert_allclose(first.transform(X), second.transform(X), rtol=1e-6)


def test_weights_reach_the_model_through_a_pipeline(weight):
    X = make_table()
    with config_context(enable_metadata_routing=True):
        model = VAE(**TINY).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = fit(make_pipeline(scaler, model), X, sample_weight=weight)
        scaled = StandardScaler().fit_transform(X)
        alone = fit(VAE(**TINY), scaled, sample_weight=weight)
        np.testing.assert_array_equal(pipe.transform(X), alone.transform(scaled))
        assert pipe.score(X, sample_weight=weight) == alone.score(scaled, sample_weight=weight)


def test_the_certificate_of_a_weighted_table_is_that_of_the_repeated_one():
    data = make_anchored_factors(150, 8, 2, anchors_per_factor=3, nonlinear_share=0.0, random_state=0)
    weight = np.tile([0, 1, 2], 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseVAE(2, n_init=1, max_epochs=20, hidden_sizes=(4,), random_state=0).fit(data.X)
    weighted = model.identifiability(data.X, sample_weight=weight).table
    repeated = model.identifiability(np.repeat(data.X, weight, axis=0)).table
    assert weighted.equals(repeated)
    assert not weighted.equals(model.identifiability(data.X).table)
