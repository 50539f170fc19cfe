"""Unusable tables and parameters are refused in words, and leave no half-fitted model behind."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from sparsevae import VAE, SparseVAE, open_rows
from sparsevae.exceptions import DataError, DataWarning, DivergenceError, ParameterError


def with_cell(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


# -- tables -------------------------------------------------------------------------------------------------


def test_a_column_without_any_value_is_refused(make_model, make_table):
    X = make_table()
    X[:, 1] = np.nan
    with pytest.raises(DataError, match=r"one value in every column; got only missing ones in 'x1'. Drop"):
        make_model().fit(X)


def test_a_row_without_any_value_is_left_out(make_model, make_table):
    X = make_table()
    X[5] = np.nan
    with pytest.warns(DataWarning, match="1 of 60 rows hold no value at all"):
        model = make_model().fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert np.abs(model.transform(X)[5]).max() < 1e-5


@pytest.mark.parametrize(
    "observed, message",
    [
        (np.ones((60, 6), dtype=bool), r"the table's shape, \(60, 7\); got \(60, 6\)"),
        (np.ones((60, 7)), "hold True and False; got numbers of type float64"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(make_model, fitted, make_table, observed, message):
    with pytest.raises(DataError, match=message):
        make_model().fit(make_table(), observed=observed)
    with pytest.raises(DataError, match=message):
        fitted().transform(make_table(), observed=observed)


@pytest.mark.parametrize(
    "weight, message",
    [
        (np.ones(59), r"a weight for each of 60 rows; got sample_weight.shape == \(59,\)"),
        (np.ones((60, 2)), r"got sample_weight.shape == \(60, 2\)"),
        (np.full(60, -1.0), "weights of 0 or more; got -1"),
        (np.full(60, np.nan), "weights of 0 or more; got nan"),
        (np.zeros(60), "some weight above 0; got zeros only"),
        (["a"] * 60, "^Expected weights that are numbers; got 'a' first. Pass one number per row.$"),
    ],
)
def test_weights_that_make_no_sense_are_refused(make_model, fitted, make_table, weight, message):
    for call in (make_model().fit, fitted().score, fitted().score_samples, fitted().masked_score):
        with pytest.raises(DataError, match=message):
            call(make_table(), sample_weight=weight)


def test_weights_that_count_people_get_a_note(make_model, make_table):
    with pytest.warns(DataWarning, match="sum to 60000 for 60 rows.*scale them to mean one"):
        make_model().fit(make_table(), sample_weight=np.full(60, 1000.0))


def test_levels_that_fit_did_not_see_are_refused(fitted, make_table):
    X = make_table("ordinal")
    with pytest.raises(DataError, match=r"levels that fit saw, from 1 to 5 in steps of 1, in 'x1'; got 9"):
        fitted("ordinal").transform(with_cell(X, 9.0))
    with pytest.raises(DataError, match=r"in 'x1'; got 2.5"):
        fitted("ordinal").transform(with_cell(X, 2.5))


def test_real_values_are_no_levels(make_model, make_table):
    with pytest.raises(DataError, match="evenly spaced levels, such as 1 to 5, in 'x0'"):
        make_model("ordinal").fit(make_table())


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e38])
def test_infinity_and_numbers_beyond_float32_are_refused(make_model, make_table, value):
    with pytest.raises(DataError, match=r"below 1e\+37; got infinity \(inf\) or larger numbers in 1 cells"):
        make_model().fit(with_cell(make_table(), value))


def test_infinity_beside_missing_values_is_named(make_model, make_table):
    frame = make_table("mixed").astype({"c": "Int64"})
    frame.loc[2, "c"] = pd.NA
    frame.loc[3, "a"] = np.inf
    with pytest.raises(DataError, match=r"infinity \(inf\) or larger numbers in 1 cells, columns 'a'"):
        make_model("mixed").fit(frame)


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial", "multinomial"])
def test_counts_are_whole_and_not_negative(make_model, make_table, kind):
    X = make_table(kind)
    with pytest.raises(
        DataError, match=rf"Negative values in data passed to a {kind} likelihood; got a minimum of -2"
    ):
        make_model(kind).fit(with_cell(X, -2.0))
    with pytest.raises(
        DataError, match=rf"whole numbers for a {kind} likelihood; got fractions such as 1.25"
    ):
        make_model(kind).fit(with_cell(X, 1.25))


def test_binary_features_are_zeros_and_ones(make_model, make_table):
    with pytest.raises(
        DataError, match=r"only 0 and 1 for a bernoulli likelihood; got 3. Binarise the table"
    ):
        make_model("bernoulli").fit(with_cell(make_table("bernoulli"), 3.0))


def test_each_kind_of_a_mixed_table_is_checked_by_itself(make_model, make_table):
    frame = make_table("mixed")
    frame.loc[0, "d"] = 0.5
    with pytest.raises(DataError, match="whole numbers for a poisson likelihood"):
        make_model("mixed").fit(frame)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_of_text_are_named(make_model, library):
    frame = library.DataFrame({"x": [1.0, 2.0, 3.0], "city": ["Rome", "Oslo", "Bern"]})
    with pytest.raises(DataError, match=r"'city'. Drop these columns, or encode them as numbers"):
        make_model().fit(frame)


def test_an_array_of_text_is_refused(make_model):
    with pytest.raises(DataError, match="Drop the columns of text"):
        make_model().fit(np.array([["a", "b"], ["c", "d"]]))


@pytest.mark.parametrize("method", ["fit", "transform", "score", "codes", "evidence"])
def test_an_anndata_object_is_told_apart_from_its_tables(make_model, fitted, make_table, method):
    anndata = pytest.importorskip("anndata")
    table = anndata.AnnData(make_table())
    model = make_model() if method == "fit" else fitted()
    with pytest.raises(
        DataError,
        match=r"Expected one table, .*; got AnnData, .* Call sparsevae.tl.* or adata.to_df\(\) to keep",
    ):
        getattr(model, method)(table)


def test_the_tables_of_an_anndata_object_are_taken(fit, make_model, make_table):
    anndata = pytest.importorskip("anndata")
    names = [f"gene {j}" for j in range(7)]
    layers = {"twice": 2.0 * make_table()}
    table = anndata.AnnData(make_table(), var=pd.DataFrame(index=names), layers=layers)
    expected = fit(make_model(), make_table()).mask_
    np.testing.assert_array_equal(fit(make_model(), table.X).mask_, expected)
    np.testing.assert_array_equal(fit(make_model(), table.layers["twice"]).mask_, expected)
    named = fit(make_model(), table.to_df())
    np.testing.assert_array_equal(named.mask_, expected)
    assert named.feature_names().tolist() == names


def test_a_data_frame_may_have_columns_that_are_called_as_the_parts_of_anndata(fit, make_model, make_table):
    frame = pd.DataFrame(make_table(), columns=["X", "obs", "var", "layers", "d", "e", "f"])
    assert fit(make_model(), frame).n_features_in_ == 7


@pytest.mark.parametrize("method", ["fit", "transform", "score"])
def test_a_dask_frame_is_not_computed_in_silence(make_model, fitted, make_table, method):
    arrays = pytest.importorskip("dask.array")
    computed = []

    def read(block):
        computed.append(len(block))
        return block

    table = arrays.from_array(make_table(), chunks=(20, 7)).map_blocks(
        read, dtype=float, meta=np.empty((0, 0))
    )
    frames = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    table = frames.from_dask_array(table, columns=[f"x{j}" for j in range(7)])
    model = make_model() if method == "fit" else fitted()
    with pytest.raises(
        DataError, match=r"got a dask DataFrame, .* as a whole. Pass X.compute\(\) .*X.to_dask_array"
    ):
        getattr(model, method)(table)
    assert not computed
    np.testing.assert_array_equal(table.compute(), make_table())  # what one is told to do
    assert sum(computed) == 60


@pytest.mark.parametrize(
    "shape, message",
    [
        ((0, 7), r"0 sample\(s\) .* minimum of 2 is required by SparseVAE. Check that the table was read"),
        ((1, 7), r"1 sample\(s\) .* minimum of 2"),
        ((60, 0), r"0 feature\(s\) .* Check that the table was read"),
    ],
)
def test_a_table_without_enough_rows_or_columns_is_refused(make_model, shape, message):
    with pytest.raises(DataError, match=message):
        make_model().fit(np.ones(shape))


def test_an_empty_data_frame_is_refused(make_model):
    with pytest.raises(ValueError, match=r"0 (sample|feature)\(s\)"):
        make_model().fit(pd.DataFrame({"a": [], "b": []}))


def test_a_table_of_counts_without_counts_is_refused(make_model):
    with pytest.raises(DataError, match="at least 2 rows with counts; got 0 of 5"):
        make_model("poisson").fit(np.zeros((5, 3)))


def test_another_number_of_features_is_refused(fitted, make_table):
    for method in ("transform", "score", "score_samples"):
        with pytest.raises(
            DataError, match=r"X has 5 features, but SparseVAE is expecting 7 .* that fit saw"
        ):
            getattr(fitted(), method)(make_table()[:, :5])


def test_another_order_or_other_names_of_features_are_refused(fitted, make_table):
    frame = make_table("mixed")
    with pytest.raises(DataError, match=r"(?s)same order as they were in fit.*Pass the columns that fit saw"):
        fitted("mixed").transform(frame[list("bacdefg")])
    with pytest.raises(DataError, match=r"(?s)unseen at fit time:\n- z"):
        fitted("mixed").transform(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("shape", [(4,), (4, 3), (2, 2, 2)])
def test_factors_of_another_shape_are_refused(fitted, shape):
    with pytest.raises(DataError, match=r"factors of shape \(n_samples, 2\), as transform returns; got"):
        fitted().inverse_transform(np.zeros(shape))


def test_factors_that_are_not_finite_are_refused(fitted):
    with pytest.raises(DataError, match="columns 'sparsevae1'"):
        fitted().inverse_transform(np.array([[0.0, np.nan]]))


# -- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters, message",
    [
        (
            {"spike_rate": 1.0, "slab_rate": 10.0},
            r"spike_rate >= slab_rate .* got spike_rate=1.0, slab_rate=10.0. Swap",
        ),
        ({"spike_rate": 0.0}, "spike_rate to be a number above 0; got 0.0"),
        (
            {"likelihood": "softmax"},
            "one of 'gaussian', .* got 'softmax'. The paper's softmax loss is 'multinomial'",
        ),
        ({"likelihood": {"gaussian": [0, 1]}}, "each of the 7 columns exactly once; got 2 columns"),
        ({"likelihood": {"gaussian": ["height"]}}, "name columns of the table; got 'height'"),
        ({"recipe": "papre"}, "recipe to be one of 'default', 'paper', 'authors'; got 'papre'"),
        ({"precision": "float16"}, "precision to be one of 'float32', 'bfloat16'"),
        ({"n_factors": 0}, "n_factors to be a whole number of at least 1; got 0"),
        ({"n_factors": 2.5}, "n_factors to be a whole number"),
        ({"n_init": 0}, "n_init to be a whole number"),
        (
            {"hidden_sizes": 64},
            r"hidden_sizes to be a tuple of widths, one per layer; got 64. Pass \(64, 64\)",
        ),
        ({"hidden_sizes": (8, 0)}, "hidden_sizes to be a whole number"),
        ({"batch_size": 0}, "batch_size to be a whole number"),
        ({"max_epochs": -1}, "max_epochs to be a whole number"),
        ({"learning_rate": 0}, "learning_rate to be a number above 0"),
        ({"validation_fraction": 1.0}, "validation_fraction to be a share from 0 up to but not including 1"),
        ({"inclusion_prior": 3.0}, r"inclusion_prior to be a pair \(a, b\); got 3.0"),
        ({"inclusion_prior": (0.0, 1.0)}, "inclusion_prior's a to be a number above 0"),
        ({"factor_covariance": "diagonal"}, "factor_covariance to be one of 'learned', 'identity'"),
        ({"factor_covariance": np.ones((2, 2))}, r"positive definite array of shape \(2, 2\)"),
        ({"factor_covariance": np.eye(3)}, r"positive definite array of shape \(2, 2\)"),
        ({"init": "varimax"}, "init to be one of 'auto', 'rotation', 'random'"),
        ({"init": np.full((7, 2), np.nan)}, "an array of finite numbers"),
        ({"init": np.ones((3, 2))}, r"init of shape \(7, 2\), a row per feature; got \(3, 2\)"),
        ({"anchors": ["x0"]}, "anchors to be a dict from feature to factor"),
        ({"anchors": {"height": 0}}, "anchors to name features of the table; got 'height'"),
        ({"anchors": {0: 2}}, "anchors to name factors from 0 to 1; got 2"),
        ({"device": "abacus"}, "device to be 'auto', 'cpu' or a device that torch finds here; got 'abacus'"),
    ],
    ids=str,
)
def test_a_parameter_that_makes_no_sense_is_refused(make_model, make_table, parameters, message):
    with pytest.raises(ParameterError, match=message):
        make_model(**parameters).fit(make_table())


def test_errors_are_the_built_in_ones_that_a_caller_would_catch():
    assert issubclass(DataError, ValueError)
    assert issubclass(ParameterError, ValueError)
    assert issubclass(DivergenceError, ArithmeticError)


def test_parameters_are_checked_in_fit_and_not_before():
    SparseVAE(n_factors=-1, likelihood="softmax")


@pytest.mark.parametrize(
    "method",
    ["transform", "inverse_transform", "score", "score_samples", "sample", "loadings", "effects", "save"],
)
def test_a_model_that_is_not_fitted_says_so(make_model, make_table, method):
    argument = [] if method in ("sample", "loadings", "effects") else [make_table()]
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(make_model(), method)(*argument)


def test_a_fit_that_fails_leaves_no_old_model_behind(fit, make_model, make_table):
    model = fit(make_model(), make_table())
    with pytest.raises(DataError):
        model.fit(with_cell(make_table()[:, :5], np.inf))
    with pytest.raises(NotFittedError):
        model.transform(make_table())


def test_dates_are_refused(make_model, make_table):
    X = make_table()
    with pytest.raises(DataError, match="dates or time spans"):
        make_model().fit((1000 * X).astype("timedelta64[s]"))


def test_a_fit_that_diverges_names_the_cell_that_is_the_cause(make_model, make_table):
    X = with_cell(make_table("negative_binomial"), 1e15)
    with (
        pytest.warns(DataWarning, match="Check this cell"),
        pytest.raises(DivergenceError, match=r"got 1e\+15 in row .* Check this cell") as failure,
    ):
        make_model(likelihood="negative_binomial").fit(X)
    assert "learning_rate" not in str(failure.value)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, open_rows])
def test_a_cell_beside_which_its_column_counts_for_nothing_is_named(make_model, make_table, kind, tmp_path):
    X = with_cell(make_table(), 1e30)
    row, column = np.argwhere(X == 1e30)[0]
    if kind is open_rows:
        np.save(tmp_path / "t.npy", X)
        place, table = "One row", open_rows(tmp_path / "t.npy")
    else:
        place, table = f"Row {row + 1}", kind(X)
    with pytest.warns(DataWarning, match=rf"{place} of 'x{column}' has 1e\+30, .* Check this cell"):
        make_model(likelihood="gaussian", recipe="default").fit(table)


@pytest.mark.parametrize("counts", ["negative_binomial", "poisson", "multinomial"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_count_that_decides_the_fit_is_named(make_model, make_table, counts, kind):
    X = with_cell(make_table(counts), 1e7)
    row, column = np.argwhere(X == 1e7)[0]
    with pytest.warns(DataWarning, match=rf"Row {row + 1} of 'x{column}' has 1e\+07, .* Check this cell"):
        make_model(likelihood=counts, recipe="default").fit(kind(X))


def test_rare_counts_are_not_taken_for_wrong_cells(make_model, make_table):
    X = make_table("poisson")
    X[:, 0] = 9 * (np.arange(len(X)) == 3)
    X[:, 1] = 5_000 * (np.arange(len(X)) % 20 == 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        make_model(likelihood="poisson").fit(X)


def test_a_column_of_large_numbers_that_hardly_vary_drowns_no_other(make_model, make_table):
    still, ids = make_table(), make_table()
    still[:, 0], ids[:, 0] = 5.0, 1e8 + np.arange(len(ids))
    bounds = []
    for X in (still, ids):
        with pytest.warns(DataWarning, match="features are constant"):
            starts = make_model(recipe="default", likelihood="gaussian").fit(X).starts_
        bounds.append(starts.set_index("start")["bound"])
    assert abs(bounds[1]["none"] - bounds[0]["none"]) < 10  # of thousands, in which gains were lost


def test_a_long_tail_and_a_rare_event_are_not_taken_for_wrong_cells(make_model, make_table):
    X = make_table()
    X[:, 0] = np.random.default_rng(0).standard_cauchy(len(X))
    X[:, 1] = np.arange(len(X)) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        make_model(likelihood="gaussian").fit(X)


def test_a_sparse_table_without_entries_is_fitted_as_zeros_are(make_model):
    with pytest.warns(DataWarning, match="5 of 5 features are constant"):
        model = make_model().fit(sparse.csr_matrix((30, 5)))
    assert not model.mask_.any()


def test_memory_that_the_network_needs_is_not_blamed_on_the_table(make_model, make_table, monkeypatch):
    def allocate(self, data):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 TB")

    monkeypatch.setattr(SparseVAE, "_fit_module", allocate)
    with pytest.raises(MemoryError, match=r"hidden_sizes=\(30000, 30000\) for"):
        make_model(hidden_sizes=(30000, 30000)).fit(make_table())


@pytest.mark.parametrize("cell", [1j, {"a": 1}, [1.0], object()])
def test_a_list_with_cells_that_are_no_numbers_is_refused(make_model, make_table, cell):
    rows = make_table().tolist()
    rows[2][1] = cell
    with pytest.raises(DataError):
        make_model().fit(rows)


@pytest.mark.parametrize("seed", ["auto", -1, 2**40, 1.5, [1, "a"]])
def test_a_seed_that_is_none_is_refused(make_model, make_table, seed):
    with pytest.raises(ParameterError, match="Expected random_state to be"):
        make_model(random_state=seed).fit(make_table())


def test_a_rate_that_no_float_holds_is_refused():
    with pytest.raises(ParameterError, match=r"Expected slab_rate of at most 1e\+30; got 1e\+300"):
        SparseVAE(2, slab_rate=1e300).fit(np.eye(30))


@pytest.mark.parametrize("estimator", [SparseVAE, VAE])
def test_a_learning_rate_that_no_float_holds_is_refused(estimator):
    with pytest.raises(ParameterError, match=r"Expected learning_rate of at most 1e\+30; got 1e\+300"):
        estimator(2, learning_rate=1e300).fit(np.eye(30))


def test_a_likelihood_of_a_number_is_refused():
    with pytest.raises(ParameterError, match="Expected likelihood to name columns of the table; got 5"):
        SparseVAE(2, likelihood={"gaussian": 5}).fit(np.random.default_rng(0).normal(size=(30, 4)))
