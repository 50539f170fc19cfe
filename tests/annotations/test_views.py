from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.annotations.views import flatten_columns, split_views
from sparsevae.exceptions import ParameterError


def test_the_first_of_two_levels_is_the_view():
    keys = pd.MultiIndex.from_tuples([("rna", "CD3D"), ("rna", "CD3E"), ("protein", "CD3D")])
    given = pd.DataFrame(np.arange(6).reshape(2, 3), columns=keys)
    table, views = flatten_columns(given)
    assert table.columns.tolist() == ["rna:CD3D", "rna:CD3E", "protein:CD3D"]
    assert views == ["rna", "rna", "protein"]
    assert given.columns is keys
    np.testing.assert_array_equal(table, given)


def test_a_single_level_has_names_and_no_views():
    keys = pd.MultiIndex.from_arrays([["a", "b"]])
    table, views = flatten_columns(pd.DataFrame(np.zeros((2, 2)), columns=keys))
    assert table.columns.tolist() == ["a", "b"]
    assert views is None


@pytest.mark.parametrize("table", [np.zeros((2, 2)), pd.DataFrame({"a": [1], "b": [2]})])
def test_other_tables_stay_as_they_are(table):
    same, views = flatten_columns(table)
    assert same is table
    assert views is None


def test_views_are_what_is_before_the_separator():
    assert split_views(["a_1", "a_2", "b_1_x", "age"], "_") == ["a", "a", "b", "other"]
    with pytest.raises(ParameterError, match=r"at least two views before '_' .*; got 'a' alone"):
        split_views(["a_1", "a_2"], "_")
    with pytest.raises(ParameterError, match="got no such name"):
        split_views(["age", "sex"], ":")
    with pytest.raises(ParameterError, match="Expected a separator"):
        split_views(["a_1", "b_2"], "")
