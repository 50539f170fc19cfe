"""Refusals say what was expected, what came and what to do; dense and sparse tables measure the same."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.validation import (
    canonical_csr,
    check_choice,
    check_columns_numeric,
    check_duration,
    check_finite,
    check_fraction,
    check_in_memory,
    check_positive,
    check_support,
    shown,
)

NAMES = ["a", "b", "c"]


@pytest.mark.parametrize("value", [1, 3.5, np.float32(2), np.int64(7)])
def test_positive_numbers_pass(value):
    check_positive("x", value)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "3", None, True])
def test_what_is_not_a_positive_number_is_refused_by_name(value):
    with pytest.raises(ParameterError, match=r"Expected learning_rate to be a number above 0; got"):
        check_positive("learning_rate", value)


@pytest.mark.parametrize("value", [0, 1.5, 2.0, "3", None, True])
def test_what_is_not_a_whole_number_is_refused_by_name(value):
    with pytest.raises(ParameterError, match=r"Expected n_init to be a whole number of at least 1; got"):
        check_positive("n_init", value, integer=True)


@pytest.mark.parametrize("value", [1.0, -0.1, np.nan, "half", False])
def test_shares_end_before_one(value):
    check_fraction("validation_fraction", 0)
    check_fraction("validation_fraction", 0.99)
    with pytest.raises(ParameterError, match="validation_fraction to be a share from 0 up to"):
        check_fraction("validation_fraction", value)


@pytest.mark.parametrize("value", ["papre", 3, None, ["paper"]])
def test_a_choice_lists_the_words_it_knows(value):
    with pytest.raises(ParameterError, match="one of 'default', 'paper'; got"):
        check_choice("recipe", value, ("default", "paper"))


def test_a_container_of_tables_is_known_by_its_parts_whatever_its_name():
    class Container:
        X = obs = var = property(lambda self: np.zeros((2, 2)))

    with pytest.raises(
        DataError, match=r"got Container, which may hold several. Call sparsevae.tl.sparse_vae"
    ):
        check_in_memory(Container())


@pytest.mark.parametrize("module", ["dask.array.core", "dask_expr._collection"])
def test_what_is_yet_to_be_computed_is_known_by_its_module(module):
    lazy = type("Array", (), {"__module__": module})
    with pytest.raises(DataError, match=r"got a dask Array, which would be computed .* Pass X.compute\(\)"):
        check_in_memory(lazy())


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((2, 3)),
        sparse.csr_array((2, 3)),
        pd.DataFrame({"X": [1.0], "obs": [2.0], "var": [3.0]}),
        pl.DataFrame({"X": [1.0], "obs": [2.0], "var": [3.0]}),
        [[1.0, 2.0]],
        None,
    ],
    ids=lambda table: type(table).__name__,
)
def test_tables_in_memory_pass_whatever_their_columns_are_called(table):
    check_in_memory(table)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_of_text_are_named(library):
    frame = library.DataFrame({"age": [1, 2], "city": ["Paris", "Rome"], "name": ["x", "y"]})
    with pytest.raises(DataError, match=r"'city', 'name'. Drop these columns"):
        check_columns_numeric(frame)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_of_numbers_of_any_type_pass(library):
    check_columns_numeric(library.DataFrame({"i": [1, 2], "f": [0.5, 1.5], "b": [True, False]}))


def test_dates_and_categories_are_not_numbers():
    frame = pd.DataFrame({"x": [1.0, 2.0], "day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    frame["kind"] = pd.Categorical([1, 2])
    frame["span"] = pd.interval_range(0, 2)
    with pytest.raises(DataError, match="'day', 'kind', 'span'"):
        check_columns_numeric(frame)


def test_numbers_in_a_column_of_objects_are_numbers():
    check_columns_numeric(pd.DataFrame({"x": pd.Series([1, 2.5], dtype=object)}))


def test_tables_without_columns_are_left_to_scikit_learn():
    check_columns_numeric(np.array([["a", "b"]]))


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_missing_values_are_counted_and_placed(store):
    X = np.zeros((4, 3))
    X[1, 2] = X[3, 0] = np.nan
    with pytest.raises(
        DataError, match=r"NaN in 2 cells, columns 'a', 'c', the first in row 4 of 'a'. Drop those rows"
    ):
        check_finite(store(X), NAMES)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_infinity_is_placed(store):
    X = np.zeros((4, 3))
    X[2, 1] = -np.inf
    with pytest.raises(DataError, match=r"infinity \(inf\) or larger numbers in 1 cells, columns 'b'"):
        check_finite(store(X), NAMES)
    check_finite(store(np.ones((4, 3))), NAMES)


@pytest.mark.parametrize("store", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "support, value, message",
    [
        ("count", -1.0, "Negative values in data passed to a poisson likelihood; got a minimum of -1"),
        ("count", 0.5, "whole numbers for a poisson likelihood; got fractions such as 0.5"),
        ("binary", 2.0, "only 0 and 1 for a poisson likelihood; got 2"),
        ("binary", -1.0, "Negative values"),
    ],
)
def test_values_that_a_likelihood_cannot_produce_are_shown(store, support, value, message):
    X = np.eye(3)
    X[2, 1] = value
    with pytest.raises(DataError, match=message):
        check_support(store(X), support, np.arange(3), "poisson")
    check_support(store(X), support, np.array([0, 2]), "poisson")
    check_support(store(X), "real", np.arange(3), "gaussian")


def test_long_lists_of_names_are_cut():
    assert shown(["a", "b"]) == "'a', 'b'"
    assert shown(list("abcdefg")) == "'a', 'b', 'c', 'd', 'e' and 2 more"


# -- sparse tables -------------------------------------------------------------------------------------------


def _damaged(kind, **parts):
    X = sparse.csr_matrix(np.arange(12.0).reshape(4, 3)).asformat(kind)
    for name, (position, value) in parts.items():
        array = getattr(X, name).copy()
        array[position] = value
        setattr(X, name, array)
    return X


@pytest.mark.parametrize(
    "X",
    [
        _damaged("csr", indices=(2, 3)),
        _damaged("csr", indices=(2, -1)),
        _damaged("csr", indptr=(0, 1)),
        _damaged("csr", indptr=(2, 9)),
        _damaged("csr", indptr=(-1, 99)),
        _damaged("csc", indices=(0, 4)),
        _damaged("csc", indptr=(-1, 99)),
        _damaged("bsr", indices=(0, 77)),
        _damaged("coo", row=(1, 4)),
        _damaged("coo", col=(1, -2)),
    ],
    ids=lambda X: X.format,
)
def test_indices_outside_a_sparse_table_are_refused(X):
    with pytest.raises(DataError, match=r"Expected indices of t.npz within its 4 rows and 3 columns"):
        canonical_csr(X, "t.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dia", "dok"])
def test_any_sparse_format_becomes_rows(kind):
    dense = np.arange(12.0).reshape(4, 3)
    found = canonical_csr(sparse.csr_array(dense).asformat(kind))
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), dense)


def test_a_wrong_flag_is_not_believed():
    X = sparse.csr_matrix((np.ones(4), [1, 0, 2, 2], [0, 2, 4]), shape=(2, 3))
    X.has_canonical_format = X.has_sorted_indices = True
    found = canonical_csr(X)
    np.testing.assert_array_equal(found.indices, [0, 1, 2])
    np.testing.assert_array_equal(found.data, [1.0, 1.0, 2.0])
    np.testing.assert_array_equal(X.indices, [1, 0, 2, 2])


def test_a_canonical_table_is_not_copied():
    X = sparse.csr_matrix(np.eye(3))
    assert canonical_csr(X) is X
    assert canonical_csr(sparse.csr_matrix((3, 2))).nnz == 0


def test_categories_are_called_categories():
    frame = pd.DataFrame({"a": pd.Categorical([1, 2]), "b": [1.0, 2.0]})
    with pytest.raises(DataError, match="got categories in 'a'"):
        check_columns_numeric(frame)
    check_columns_numeric(pd.DataFrame({"a": [Decimal("1.5"), Decimal(2)]}))


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("30s", 30),
        ("5m", 300),
        ("5 min", 300),
        ("1h30m", 5400),
        ("1.5H", 5400),
        ("250ms", 0.25),
        ("90", 90),
        (0, 0),
        (2.5, 2.5),
        (np.int64(7), 7),
        ("2d", 172_800),
        (" 5m ", 300),
    ],
)
def test_durations_in_seconds(text, seconds):
    assert check_duration("time", text) == seconds


@pytest.mark.parametrize(
    "value", ["", "m", "5x", "-5m", "5m!", "1e3", "nan", "∞", -1, float("inf"), True, None, [5]]
)
def test_what_is_no_duration_is_refused(value):
    with pytest.raises(ParameterError, match="Expected time to be a duration"):
        check_duration("time", value)
