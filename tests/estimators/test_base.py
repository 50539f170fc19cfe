"""What every fitted model offers: factors, expected data, scores and samples in the user's units."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from sparsevae.inspection.codes import block_size
from sparsevae.training import RowSource

ROW_SETS = [slice(0, 1), slice(3, 5), slice(None, None, 7), slice(None, None, -1)]


# -- shapes and units ---------------------------------------------------------------------------------------


def test_transform_gives_a_column_per_factor(fitted, make_table, likelihood):
    Z = fitted(likelihood).transform(make_table(likelihood))
    assert Z.shape == (60, 2)
    assert np.isfinite(Z).all()


def test_inverse_transform_gives_expected_data_in_the_tables_units(trained, make_table, likelihood):
    model, X = trained(likelihood), make_table(likelihood, n_samples=200)
    means = model.inverse_transform(model.transform(X))
    assert means.shape == X.shape
    X = (X > 1.0) if likelihood == "categorical" else np.asarray(X)  # chances of other than the reference
    np.testing.assert_allclose(means.mean(0), X.mean(0), rtol=0.1, atol=0.3)


def test_samples_have_the_tables_values_and_moments(trained, make_table, likelihood):
    model, X = trained(likelihood), np.asarray(make_table(likelihood, n_samples=200))
    drawn = model.sample(4000, random_state=0)
    assert drawn.shape == (4000, 7)
    assert drawn.dtype == np.float64
    np.testing.assert_allclose(drawn.mean(0), X.mean(0), rtol=0.1, atol=0.3)
    np.testing.assert_allclose(drawn.std(0), X.std(0), rtol=0.4)
    parts = model.module_.observation
    counted = drawn[:, parts.count_columns]
    assert (counted >= 0).all()
    np.testing.assert_array_equal(counted, np.rint(counted))


def test_binary_samples_are_zeros_and_ones_and_their_means_are_probabilities(fitted):
    model = fitted("bernoulli")
    assert set(np.unique(model.sample(50, random_state=0))) == {0.0, 1.0}
    means = model.inverse_transform(np.random.default_rng(0).normal(size=(20, 2)))
    assert ((means > 0) & (means < 1)).all()


def test_documents_have_the_average_number_of_words(fitted, make_table):
    model, X = fitted("multinomial"), make_table("multinomial")
    average = X.sum(1).mean()
    np.testing.assert_array_equal(model.sample(9, random_state=0).sum(1), round(average))
    np.testing.assert_allclose(model.inverse_transform(np.zeros((3, 2))).sum(1), average, rtol=1e-5)


def test_samples_follow_their_random_state(fitted):
    model = fitted()
    np.testing.assert_array_equal(model.sample(5, random_state=3), model.sample(5, random_state=3))
    assert not np.array_equal(model.sample(5, random_state=3), model.sample(5, random_state=4))
    assert not np.array_equal(model.sample(5), model.sample(5))


def test_samples_vary_with_the_noise_as_well_as_with_the_factors(fitted):
    model = fitted()
    drawn = model.sample(20_000, random_state=0)
    means = model.inverse_transform(np.random.default_rng(0).normal(size=(20_000, 2)))
    np.testing.assert_allclose(drawn.var(0), means.var(0) + model.noise_variance_, rtol=0.1)


# -- scores -------------------------------------------------------------------------------------------------


def test_score_is_the_mean_of_score_samples(fitted, make_table, likelihood):
    model, X = fitted(likelihood), make_table(likelihood)
    values = model.score_samples(X)
    assert values.shape == (60,)
    assert values.dtype == np.float64
    assert model.score(X) == values.mean()


@pytest.mark.parametrize("rows", ROW_SETS, ids=str)
def test_a_subset_of_rows_gets_exactly_the_same_values(fitted, make_table, likelihood, rows):
    model, X = fitted(likelihood), make_table(likelihood)
    np.testing.assert_array_equal(model.score_samples(X[rows]), model.score_samples(X)[rows])
    np.testing.assert_array_equal(model.transform(X[rows]), model.transform(X)[rows])


@pytest.mark.parametrize("hidden_sizes", [(), (3,), (64, 64)])
def test_rows_keep_their_values_across_the_boundaries_of_blocks(fit, make_model, make_table, hidden_sizes):
    model = fit(make_model(hidden_sizes=hidden_sizes), make_table())
    size = block_size(model.module_)
    X = make_table(n_samples=2 * size + 3)
    scores, Z = model.score_samples(X), model.transform(X)
    rng = np.random.default_rng(0)
    for n_rows in (1, size - 1, size, size + 1, len(X)):
        rows = rng.choice(len(X), n_rows, replace=False)
        np.testing.assert_array_equal(model.score_samples(X[rows]), scores[rows])
        np.testing.assert_array_equal(model.transform(X[rows]), Z[rows])


def test_the_score_is_the_evidence_bound_of_the_model_by_hand(fitted, make_table):
    model, X = fitted(), make_table()
    module, scale = model.module_, model.module_.observation.scale
    batch = RowSource(X, module.observation).batch(torch.arange(60))
    draws = torch.randn(3000, 2, generator=torch.Generator().manual_seed(1))
    by_hand = module.bound(batch, draws).numpy() - float(scale.log().sum())
    np.testing.assert_allclose(model.score_samples(X), by_hand, atol=0.3)
    assert model.score(X) == pytest.approx(by_hand.mean(), abs=0.05)


def test_tables_of_one_scale_have_scores_that_differ_by_the_logarithm_of_it(fit, make_model, make_table):
    """Powers of two are exact in floating point: seven features, seven logarithms."""
    X = make_table()
    once, eight = (fit(make_model(), c * X).score(c * X) for c in (1.0, 8.0))
    assert eight == pytest.approx(once - 7 * np.log(8.0), abs=1e-5)


def test_a_column_in_another_unit_changes_the_score_by_the_logarithm_of_the_unit(fit, make_model, make_table):
    X = make_table(n_samples=200)
    units = np.array([1.0, 1.0, 10.0, 1.0, 1.0, 1.0, 1.0])
    before, after = fit(make_model(), X).score(X), fit(make_model(), units * X).score(units * X)
    assert after == pytest.approx(before - np.log(10.0), abs=0.05)


def test_effects_and_noise_are_in_the_tables_units(fit, make_model, make_table):
    X = make_table()
    one, two = fit(make_model(), X), fit(make_model(), 4.0 * X)
    np.testing.assert_allclose(two.effects(), 4.0 * one.effects(), rtol=1e-4)
    np.testing.assert_allclose(two.noise_variance_, 16.0 * one.noise_variance_, rtol=1e-5)
    np.testing.assert_allclose(two.mask_, one.mask_, rtol=1e-5)


def test_a_far_row_scores_lower(fitted, make_table):
    model, X = fitted(), make_table()
    assert model.score_samples(X + 500.0).max() < model.score_samples(X).min()


# -- how a table is stored ----------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array])
def test_sparse_and_dense_tables_give_the_same_model(fit, make_model, make_table, store):
    X = make_table("poisson")
    dense, thin = fit(make_model("poisson"), X), fit(make_model("poisson"), store(X))
    np.testing.assert_array_equal(thin.mask_, dense.mask_)
    np.testing.assert_array_equal(thin.transform(store(X)), dense.transform(X))
    np.testing.assert_array_equal(thin.score_samples(store(X)), dense.score_samples(X))


def test_a_sparse_table_of_real_values_is_standardised_batch_by_batch(fit, make_model, make_table):
    X = np.maximum(make_table() - 10.0 * np.arange(7), 0.0)
    dense, thin = fit(make_model(), X), fit(make_model(), sparse.csr_array(X))
    np.testing.assert_allclose(thin.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-4)


@pytest.mark.parametrize("store", [sparse.csr_array, sparse.csc_matrix])
def test_a_sparse_table_is_never_made_dense_as_a_whole(fit, make_model, make_table, monkeypatch, store):
    X = store(make_table("multinomial", n_samples=5000))
    largest = []

    def watched(method):
        def toarray(self, *args, **options):
            largest.append(self.shape[0])
            return method(self, *args, **options)

        return toarray

    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, watched(getattr(kind, name)))
    model = fit(make_model("multinomial", max_epochs=1), X)
    model.transform(X)
    model.score(X)
    assert largest
    assert max(largest) <= 4096


def test_float32_in_float32_out(fit, make_model, make_table):
    X = make_table()
    for dtype, out in ((np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64)):
        model = fit(make_model(), X.astype(dtype))
        Z = model.transform(X.astype(dtype))
        assert Z.dtype == out
        assert model.inverse_transform(Z).dtype == out
        assert model.fit_transform(X.astype(dtype)).dtype == out


def test_a_memory_map_is_read_where_it_lies(fit, make_model, make_table, tmp_path):
    X = make_table()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        fit(make_model(), mapped).transform(mapped), fit(make_model(), X).transform(X)
    )


def test_the_table_is_not_changed(fit, make_model, make_table, likelihood):
    X = make_table(likelihood)
    before = X.copy()
    model = fit(make_model(likelihood), X)
    model.transform(X), model.score(X)
    assert np.array_equal(np.asarray(X), np.asarray(before))


# -- kinds of features --------------------------------------------------------------------------------------


def test_columns_of_a_mixed_table_may_be_named_counted_or_sliced(fit, make_model, make_table):
    X = make_table("mixed")
    spellings = [
        {
            "gaussian": ["a", "b"],
            "poisson": ["c", "d"],
            "bernoulli": "e",
            "multinomial": pd.Index(["f", "g"]),
        },
        {"gaussian": [0, 1], "poisson": np.array([2, 3]), "bernoulli": [4], "multinomial": [5, 6]},
        {"gaussian": slice(0, 2), "poisson": slice(2, 4), "bernoulli": [4], "multinomial": slice(5, 7)},
    ]
    masks = [fit(make_model(likelihood=spec), X).mask_ for spec in spellings]
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], masks[2])


def test_noise_variances_exist_for_real_features_only(fitted, likelihood):
    model = fitted(likelihood)
    np.testing.assert_array_equal(np.isfinite(model.noise_variance_), model.module_.observation.real_columns)
    assert (model.noise_variance_[np.isfinite(model.noise_variance_)] > 0).all()


@pytest.mark.parametrize("likelihood_name", ["poisson", "multinomial", "negative_binomial"])
def test_rows_without_counts_are_left_out_and_transformed_to_the_prior_mean(
    fit, make_model, make_table, likelihood_name
):
    X = make_table(likelihood_name)
    X[[4, 9]] = 0.0
    with pytest.warns(UserWarning, match="2 of 60 rows hold no counts at all: they are left out"):
        model = fit(make_model(likelihood_name), X)
    Z = model.transform(X)
    assert (Z[[4, 9]] == 0).all()
    assert (np.delete(Z, [4, 9], axis=0) != 0).any()
    without = fit(make_model(likelihood_name), np.delete(X, [4, 9], axis=0))
    np.testing.assert_allclose(model.inverse_transform(Z[:3]), without.inverse_transform(Z[:3]), rtol=0.5)
    assert np.isfinite(model.score_samples(X)).all()


def test_a_constant_feature_is_warned_of_and_has_an_empty_row(fit, make_model, make_table):
    X = make_table()
    X[:, 2] = 7.5
    with pytest.warns(
        UserWarning, match=r"1 of 7 features are constant, .* 'x2'. Their rows of the mask stay empty"
    ):
        model = fit(make_model(recipe="default", n_init=1), X)
    assert (model.mask_[2] == 0).all()
    assert (model.mask_[[0, 1, 3, 4, 5, 6]] != 0).any() or len(model.active_factors_) == 0
    np.testing.assert_allclose(model.inverse_transform(model.transform(X))[:, 2], 7.5, rtol=1e-4)
    assert (model.effects_[2] == 0).all()


@pytest.mark.parametrize("recipe", ["default", "paper", "authors"])
@pytest.mark.parametrize("hidden_sizes", [(), (4,), (4, 4, 4)])
@pytest.mark.parametrize("shape", [(2, 7), (60, 1), (60, 3)], ids=["two rows", "one feature", "few features"])
def test_extreme_shapes_fit(fit, make_model, make_table, recipe, hidden_sizes, shape):
    X = make_table(n_samples=shape[0])[:, : shape[1]]
    model = fit(make_model(n_factors=5, recipe=recipe, hidden_sizes=hidden_sizes, n_init=1, max_epochs=2), X)
    assert model.mask_.shape == (shape[1], 5)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.score(X))
    assert model.sample(2, random_state=0).shape == (2, shape[1])
