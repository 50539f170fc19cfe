from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sparsevae.exceptions import DataError
from sparsevae.replication.parts import by_study, halve_rows, split_off


def test_halves_of_one_split_are_disjoint_and_have_seeds_of_their_own():
    parts = halve_rows(41, 2, 5)
    assert parts.splits == [("1", "half 1a", "half 1b"), ("2", "half 2a", "half 2b")]
    first, second = parts.rows["half 1a"], parts.rows["half 1b"]
    assert sorted([*first.rows, *second.rows]) == list(range(41))
    assert (first.seed, second.seed) == (5, 6)
    again = halve_rows(41, 3, 5)
    assert all(np.array_equal(again.rows[name].rows, part.rows) for name, part in parts.rows.items())
    assert not np.array_equal(halve_rows(41, 1, 6).rows["half 1a"].rows, first.rows)


def test_each_two_studies_are_compared():
    labels = np.array(["a", "b", "c"] * 10, dtype=object)
    parts = by_study(labels, 0)
    assert parts.studies == ("a", "b", "c")
    assert [name for name, *_ in parts.splits] == ["a, b", "a, c", "b, c"]
    assert parts.rows["b"].rows.tolist() == list(range(1, 30, 3))


@pytest.mark.parametrize(
    "labels, message",
    [
        (["a"] * 30, "at least two studies in by; every row has 'a'"),
        ([str(i) for i in range(30)], "at most 20 studies in by; got 30"),
        (["a"] * 25 + ["b"] * 5, "at least 10 rows of each study; got 5 of 'b'"),
    ],
)
def test_studies_that_cannot_be_compared_are_refused(labels, message):
    with pytest.raises(DataError, match=message):
        by_study(np.array(labels, dtype=object), 0)


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="at least 20 rows, to fit halves of them; got 19"):
        halve_rows(19, 3, 0)


def test_a_column_of_the_table_is_split_off():
    table = pd.DataFrame({"x": [1.0, 2.0], "site": ["a", "b"]})
    left, labels = split_off(table, "site")
    assert list(left.columns) == ["x"]
    assert labels.tolist() == ["a", "b"]
    assert list(table.columns) == ["x", "site"]
    other, labels = split_off(pl.DataFrame({"x": [1.0, 2.0], "site": ["a", "b"]}), "site")
    assert (other.columns, labels.tolist()) == (["x"], ["a", "b"])
    assert split_off(table, None) == (table, None)
    assert split_off(np.ones((2, 2)), pd.Series([1, 2], index=[7, 9]))[1].tolist() == ["1", "2"]


@pytest.mark.parametrize(
    "by, message",
    [
        ("wave", "a column 'wave' for by; there is 'x'"),
        (["a"], "a study for each of 2 rows in by; got 1"),
        (["a", None], "a study in every row of by; row 2 has none"),
    ],
)
def test_studies_that_do_not_fit_the_rows_are_refused(by, message):
    with pytest.raises(DataError, match=message):
        split_off(pd.DataFrame({"x": [1.0, 2.0]}), by)


def test_an_array_has_no_column_to_name():
    with pytest.raises(DataError, match="the table has no named columns"):
        split_off(np.ones((2, 2)), "wave")
