from __future__ import annotations

import gzip

import numpy as np
import pytest

from sparsevae import read_table
from sparsevae.exceptions import DataError

from .helpers import VALUES, csv_of, write


def test_numbers_alone_have_no_names(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES)))
    np.testing.assert_array_equal(table.X, VALUES)
    assert table.feature_names is None
    assert table.sample_names is None
    assert "holds data, not names" in table.assumptions[0]
    assert list(table.row_labels()) == [0, 1, 2, 3]


def test_words_in_the_first_line_are_names(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, "age,height,mood\n")))
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.feature_names) == ["age", "height", "mood"]
    assert list(table.for_estimator().columns) == ["age", "height", "mood"]


@pytest.mark.parametrize("head", ["0,1,2,3,4,5\n", "1,2,3,4,5,6\n", "0,1,2\n"])
def test_a_long_first_line_that_counts_the_columns_is_a_header(tmp_path, head):
    wide = head.count(",") == 5
    table = read_table(
        write(tmp_path / "t.csv", csv_of(np.hstack([VALUES, VALUES]) if wide else VALUES, head))
    )
    if wide:
        assert len(table.X) == 4
        assert ",".join(table.feature_names) == head.strip()
    else:
        assert len(table.X) == 5


def test_what_is_asked_for_wins_over_the_guess(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(np.hstack([VALUES, VALUES]), "0,1,2,3,4,5\n"))
    assert read_table(path, header=False).shape == (5, 6)
    assert read_table(write(tmp_path / "u.csv", csv_of(VALUES)), header=True).shape == (3, 3)


@pytest.mark.parametrize(
    "head,labels",
    [
        (",a,b,c\n", ["r1", "r2", "r3", "r4"]),  # pandas and R's write.csv
        ("a,b,c\n", ["r1", "r2", "r3", "r4"]),  # R's write.table
        ("person,a,b,c\n", ["ann", "bob", "cem", "dua"]),
        (",a,b,c\n", ["0", "1", "2", "3"]),
        ("id,a,b,c\n", ["17", "23", "42", "99"]),
        ("id,a,b,c\n", ["007", "008", "009", "010"]),
    ],
)
def test_sample_names_are_found(tmp_path, head, labels):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, head, labels)))
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.sample_names) == labels
    assert list(table.feature_names) == ["a", "b", "c"]
    assert any("Sample names are in" in sentence for sentence in table.assumptions)


def test_sample_names_are_found_without_a_header_too(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, labels=["ann", "bob", "cem", "dua"])))
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.sample_names) == ["ann", "bob", "cem", "dua"]
    assert table.feature_names is None


def test_a_numeric_first_column_of_another_name_is_a_feature(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, "year,a,b,c\n", [1990, 1991, 1992, 1993])))
    assert table.shape == (4, 4)


def test_repeated_text_in_the_first_column_is_no_id(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES, "school,a,b,c\n", ["north", "south", "north", "south"]))
    with pytest.raises(DataError, match=r"text such as 'north' more than once.*--drop 'school'"):
        read_table(path)
    assert list(read_table(path, id_column="school").sample_names) == ["north", "south", "north", "south"]
    assert read_table(path, drop=("school",)).sample_names is None


def test_any_column_may_hold_the_sample_names(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,who\n1,2,ann\n3,4,bob\n")
    table = read_table(path, id_column="who")
    assert list(table.sample_names) == ["ann", "bob"]
    assert table.row_labels().name == "who"
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_an_id_may_be_declined(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES, "id,a,b,c\n", [17, 23, 42, 99]))
    table = read_table(path, id_column="none")
    assert table.shape == (4, 4)
    assert any("'id' differs in every row" in sentence for sentence in table.assumptions)


@pytest.mark.parametrize("name", ["t.tsv", "t.txt", "t.csv"])
def test_tabs_are_seen_whatever_the_ending(tmp_path, name):
    table = read_table(write(tmp_path / name, "a\tb\n1\t2\n3\t4\n"))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_semicolons_and_decimal_commas_are_understood(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "größe;gewicht\n1,5;2\n3;4,25\n"))
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, 4.25]])
    assert list(table.feature_names) == ["größe", "gewicht"]
    assert any("decimal comma" in sentence for sentence in table.assumptions)


def test_quotes_byte_order_mark_windows_lines_and_logical_values(tmp_path):
    table = read_table(write(tmp_path / "t.csv", '\ufeff"a, b","c"\r\n"1",TRUE\r\n2,false\r\n'))
    assert list(table.feature_names) == ["a, b", "c"]
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 0]])


def test_gzip_is_opened(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(csv_of(VALUES, "a,b,c\n").encode()))
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv.gz").X, VALUES)
