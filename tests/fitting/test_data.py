"""What is measured of a table before a fit, and how its rows are cut."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from scipy import sparse

from sparsevae import VSC, SparseVAE, open_rows
from sparsevae.exceptions import DataError, DataWarning
from sparsevae.fitting import prepare
from sparsevae.likelihoods import get_likelihood
from sparsevae.priors import calibrate_noise_scale

from ..training import helpers


def prepared(X, likelihood="gaussian", *, seed=0, **options):
    settings = {"validation_fraction": 0.2, "batch_size": 16, "device": torch.device("cpu"), **options}
    return prepare(
        X,
        get_likelihood(likelihood, X.shape[1]),
        feature_names=[f"x{j}" for j in range(X.shape[1])],
        random_state=np.random.RandomState(seed),
        **settings,
    )


# -- rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction, n_held_out", [(0.0, 0), (0.2, 12), (0.99, 59), (1.0, 59)])
def test_rows_are_cut_into_training_and_held_out_ones(make_table, fraction, n_held_out):
    data = prepared(make_table(), validation_fraction=fraction)
    assert data.everything.rows.sort().values.tolist() == [*range(60)]
    held_out = [] if data.validation is None else data.validation.rows.tolist()
    assert len(held_out) == n_held_out
    assert held_out + data.training.rows.tolist() == data.everything.rows.tolist()


def test_an_epoch_has_as_many_steps_as_the_training_rows_have_batches(make_table):
    data = prepared(make_table(), batch_size=12)
    assert data.n_steps == len(list(data.training.shuffled())) == 4


def test_the_same_seed_gives_the_same_rows_and_draws(make_table):
    first, same, other = (prepared(make_table(), seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.training.rows, same.training.rows)
    assert not torch.equal(first.training.rows, other.training.rows)
    for data in (first, same):
        assert data.training.generator is data.everything.generator is data.generator
    draws = [
        (torch.rand(3, generator=data.generator).tolist(), data.random_state.randint(1000))
        for data in (first, same)
    ]
    assert draws[0] == draws[1]


def test_rows_without_any_counts_are_left_out(make_table):
    counts = make_table("poisson")
    counts[[3, 7]] = 0.0
    with pytest.warns(DataWarning, match="2 of 60 rows hold no counts at all"):
        data = prepared(counts, "poisson")
    assert set(range(60)) - set(data.everything.rows.tolist()) == {3, 7}
    counts[1:] = 0.0
    with pytest.raises(DataError, match="Expected at least 2 rows with counts; got 1 of 60"):
        prepared(counts, "poisson")


# -- units --------------------------------------------------------------------------------------------------


def test_real_values_are_standardised_and_counts_are_not(make_table):
    X = make_table("mixed").to_numpy()
    data = prepared(X, {"gaussian": [0, 1], "poisson": [2, 3], "bernoulli": [4], "multinomial": [5, 6]})
    batch = data.source.batch(torch.arange(60))
    np.testing.assert_allclose(batch.x[:, :2].mean(0), 0.0, atol=1e-5)
    np.testing.assert_allclose(batch.x[:, :2].std(0, correction=0), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(batch.x[:, 2:], X[:, 2:].astype(np.float32))
    np.testing.assert_allclose(batch.inputs.mean(0), 0.0, atol=1e-5)
    np.testing.assert_allclose(batch.inputs.std(0, correction=0), 1.0, rtol=1e-4)
    np.testing.assert_allclose(data.feature_mean, [0.0, 0.0, *X[:, 2:].mean(0)], rtol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_sparse_table_is_measured_as_a_dense_one(make_table, form):
    X = make_table("negative_binomial")
    dense, other = prepared(X, "negative_binomial"), prepared(form(X), "negative_binomial")
    for name, value in dense.source.observation.state_dict().items():
        np.testing.assert_allclose(other.source.observation.state_dict()[name], value, rtol=1e-6)
    assert torch.equal(dense.training.rows, other.training.rows)


def test_constant_features_are_found_and_named(make_table):
    X = make_table()
    X[:, 2] = 1.0
    with pytest.warns(DataWarning, match=r"1 of 7 features are constant.*: 'x2'"):
        data = prepared(X)
    assert np.flatnonzero(data.constant).tolist() == [2]
    assert data.source.observation.scale[2] == 1


def test_new_modules_get_the_scale_of_the_noise_in_model_units(make_table):
    X = helpers.make_table() * np.array([1.0, 10.0, 0.1, 3.0, 2.0], dtype=np.float32)
    standardised = prepared(X)
    np.testing.assert_allclose(standardised.noise_scale, calibrate_noise_scale(np.ones(5)), rtol=1e-6)
    data, variance = prepared(X, raw_noise_scale=True), X.var(0)
    expected = calibrate_noise_scale(variance) / variance
    np.testing.assert_allclose(data.noise_scale, expected, rtol=1e-4)
    module = helpers.make_module(replicates=(3,))
    data.calibrate_(module)
    np.testing.assert_allclose(module.nuisance.noise_scale, expected, rtol=1e-4)
    data.calibrate_(helpers.make_module("poisson"))  # which has none


@pytest.mark.parametrize(
    "n_samples, n_features, rate", [(50, 20, 0.0), (1000, 99, 0.0), (100, 300, 0.1), (10_000, 100, 0.0125)]
)
def test_inputs_are_left_out_where_they_are_many_and_rows_are_few(n_samples, n_features, rate):
    data = prepared(np.random.default_rng(0).normal(size=(n_samples, n_features)))
    assert data.input_dropout == pytest.approx(rate)


# -- likelihoods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_counts_that_are_fitted_as_real_values_are_warned_of(form, rng):
    counts = form(rng.negative_binomial(2, 0.3, size=(60, 5)).astype(float))
    with pytest.warns(DataWarning, match="looks like counts and is fitted as real values"):
        prepared(counts)


def test_scores_and_counts_fitted_as_such_are_not_warned_of(rng):
    prepared(rng.integers(0, 11, size=(60, 5)).astype(float))
    prepared(rng.negative_binomial(2, 0.3, size=(60, 5)).astype(float), "negative_binomial")


# -- warnings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SparseVAE, VSC])
@pytest.mark.parametrize(
    "why, likelihood", [("constant", "gaussian"), ("looks like counts", "gaussian"), ("no counts", "poisson")]
)
def test_a_warning_stands_at_the_line_where_the_user_fits(rng, estimator, why, likelihood):
    X = rng.negative_binomial(2, 0.3, size=(60, 5)).astype(float)
    if why == "constant":
        X = X - 3.0
        X[:, 2] = 1.0
    elif why == "no counts":
        X[3] = 0.0
    model = estimator(2, likelihood=likelihood, max_epochs=1, hidden_sizes=(3,), recipe="paper")
    with pytest.warns(DataWarning, match=why) as caught:
        model.fit(X)
    assert [warning.filename for warning in caught] == [__file__]


def test_memory_of_a_table_on_disk_does_not_grow_with_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsevae.fitting.data._MOST_SAMPLED", 2000)
    monkeypatch.setattr("sparsevae.fitting.data._MOST_HELD_OUT", 500)
    monkeypatch.setattr("sparsevae.training.streams._BUFFER_ROWS", 16384)
    peaks = {}
    for n_rows in (60_000, 160_000):
        path = tmp_path / f"{n_rows}.npy"
        table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, 20))
        for begin in range(0, n_rows, 10_000):
            table[begin : begin + 10_000] = np.random.default_rng(begin).normal(size=(10_000, 20))
        del table
        tracemalloc.start()
        data = prepared(open_rows(path), validation_fraction=0.1, batch_size=256)
        assert sum(batch.n_rows for batch in data.training.shuffled()) == n_rows - 500
        peaks[n_rows] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[160_000] - peaks[60_000] < 16 * 100_000  # the table itself has 80 bytes a row


def test_held_out_rows_of_a_table_on_disk_are_not_trained_on(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 3))
    X[:, 0] = np.arange(400)
    np.save(tmp_path / "x.npy", X)
    data = prepared(open_rows(tmp_path / "x.npy"), validation_fraction=0.25, batch_size=32)

    def numbers(batches):
        units = data.source.observation.to_user_units
        return {round(float(x)) for batch in batches for x in units(batch.x)[:, 0]}

    trained, held_out = numbers(data.training.shuffled()), numbers(data.validation.sequential())
    assert len(held_out) == 100
    assert trained | held_out == set(range(400))
    assert not trained & held_out
    assert numbers(data.everything.sequential()) == set(range(400))
    assert numbers(data.sample.training.sequential()) <= trained
