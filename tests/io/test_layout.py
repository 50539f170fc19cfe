"""What the first lines of a text table say, and what they leave open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsevae import read_table
from sparsevae.exceptions import DataError
from sparsevae.io.layout import find_separator, read_number

from .helpers import write

NUMBERS = "0.5,1.5,2.5\n3.5,4.5,5.5\n6.5,7.5,8.5\n"


@pytest.mark.parametrize("blank", ["\n", "   \n", "\r\n", "\n\n\n"])
@pytest.mark.parametrize("head", ["0,1,2,3,4,5\n", "a,b,c,d,e,f\n"])
def test_blank_lines_before_the_header_do_not_make_it_a_sample(tmp_path, blank, head):
    rows = "".join(f"{i}.5,1,2,3,4,5\n" for i in range(4))
    table = read_table(write(tmp_path / "t.csv", blank + head + rows))
    assert table.shape == (4, 6)
    assert ",".join(table.feature_names) == head.strip()


def test_blank_lines_between_rows_are_no_rows(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\n1,2\n\n3,4\n  \n5,6\n\n"))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4], [5, 6]])


def test_a_blank_line_inside_a_single_column_is_an_empty_cell(tmp_path):
    assert read_table(write(tmp_path / "t.csv", "a\n1\n2\n\n\n")).shape == (2, 1)
    table = read_table(write(tmp_path / "t.csv", "a\n1\n\n2\n"))
    np.testing.assert_array_equal(table.X[:, 0], [1.0, np.nan, 2.0])


@pytest.mark.parametrize("surplus", [",9.9", ",9.9,8.8", ",9,9,9"])
def test_fields_without_a_name_are_never_dropped(tmp_path, surplus):
    text = "a,b,c\n" + "".join(line + surplus + "\n" for line in NUMBERS.splitlines())
    with pytest.raises(DataError, match=r"as many names as fields .* got 3 names in the first line and"):
        read_table(write(tmp_path / "t.csv", text))


def test_a_separator_at_the_end_of_each_row_does_not_shift_the_names(tmp_path):
    with pytest.raises(DataError, match=r"the last of them empty. Remove the separator"):
        read_table(write(tmp_path / "t.csv", "a,b\n1,2,\n3,4,\n"))


@pytest.mark.parametrize("text,line,n", [("a,b\n1,2\n3\n", 3, 1), ("a,b\n1,2\n\n3,4,5\n", 4, 3)])
def test_a_row_of_another_length_is_named_by_its_line(tmp_path, text, line, n):
    with pytest.raises(DataError, match=rf"got 2 before and {n} in line {line}"):
        read_table(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize("sign", ["?", "x", "1\x002", "1_000", "١٢", "1 000", "0x1F", "--"])
@pytest.mark.parametrize("row", [0, 5, 150])
def test_one_cell_of_text_is_refused_with_its_place_wherever_it_is(tmp_path, sign, row):
    cells = [f"{i}.25" for i in range(200)]
    cells[row] = sign
    text = "a,b\n" + "".join(f"{cell},1\n" for cell in cells)
    with pytest.raises(DataError, match=rf"column 'a', for example .* in row {row + 1} \(line {row + 2}\)"):
        read_table(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize("cell", ["{}.5%", "$ {}.5", "1,{}00", "\N{MINUS SIGN}{}.5", "{}\xa0000"])
def test_numbers_written_for_people_are_no_sample_names(tmp_path, cell):
    rows = "".join(f'"{cell.format(i)}",{i}\n' for i in range(1, 9))
    path = write(tmp_path / "t.csv", "share,b\n" + rows)
    with pytest.raises(DataError, match=r"numbers or names in the first column.*Write plain numbers"):
        read_table(path)
    assert read_table(path, id_column="share").sample_names[0] == cell.format(1)
    path.write_text("sample,b,c\n" + rows.replace("\n", ",0\n"), encoding="utf-8")
    assert read_table(path).sample_names[0] == cell.format(1)


def test_names_that_differ_in_the_beginning_only_are_no_sample_names(tmp_path):
    ids = [*range(100), *range(100)]
    text = "id,a,b\n" + "".join(f"{i},{k}.5,2\n" for k, i in enumerate(ids))
    with pytest.raises(DataError, match=r"by its heading; got '0' more than once"):
        read_table(write(tmp_path / "t.csv", text))
    assert read_table(tmp_path / "t.csv", id_column="none").shape == (200, 3)
    assert read_table(tmp_path / "t.csv", id_column="id").shape == (200, 2)


@pytest.mark.parametrize(
    "head,place",
    [
        ("1.5,?,2.5\n", "'\\?' in field 2 among 2 numbers"),
        ("x,1.5,2.5\n", "'x' in field 1 among 2 numbers"),
        (",1.5,2.5\n", "its first field is empty"),
    ],
)
def test_a_first_line_that_may_be_either_is_refused_until_the_user_says(tmp_path, head, place):
    path = write(tmp_path / "t.csv", head + NUMBERS)
    with pytest.raises(DataError, match=place + r".*--header or --no-header"):
        read_table(path)
    assert read_table(path, header=True, id_column="none").shape == (3, 3)


@pytest.mark.parametrize(
    "text,names",
    [
        ("id,2019,2020\n1,0.5,0.25\n2,1.5,3\n", ["2019", "2020"]),
        ("person,2019,2020\nann,0.5,0.25\nbob,1.5,3\n", None),
        ("1.5,2.5,red\n3.5,4.5,blue\n", None),
        ("age,city\n3,rome\n4,bonn\n", ["age"]),
    ],
)
def test_a_word_speaks_for_names_only_above_numbers(tmp_path, text, names):
    path = write(tmp_path / "t.csv", text)
    if "red" in text:
        with pytest.raises(DataError, match=r"'red' in row 1 \(line 1\)"):
            read_table(path)
        return
    table = read_table(path, drop=["city"] if "city" in text else [])
    assert (None if table.feature_names is None else list(table.feature_names)) == names


def test_a_decimal_point_among_decimal_commas_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"'2.5' in row 2 \(line 3\)"):
        read_table(write(tmp_path / "t.csv", "a;b\n1,5;2\n2.5;3\n"))


def test_a_quote_that_is_never_closed_does_not_swallow_the_rest(tmp_path):
    with pytest.raises(DataError, match="closed quotes"):
        read_table(write(tmp_path / "t.csv", 'a,b\n1,2\n"3,4\n5,6\n'))


def test_logical_words_are_numbers_only_among_zeros_and_ones(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\nTRUE,1\n0,2\nfalse,3\n"))
    np.testing.assert_array_equal(table.X[:, 0], [1, 0, 0])
    with pytest.raises(DataError, match=r"'true' in row 1 \(line 2\)"):
        read_table(write(tmp_path / "t.csv", "a,b\ntrue,1\n2.5,2\n"))


@pytest.mark.parametrize(
    "text,separator", [("1,5;2,5\n3;4\n", ";"), ('"a, b";"c"\n1;2\n', ";"), ("a\n1\n", ",")]
)
def test_the_separator_is_the_one_that_cuts_evenly(text, separator):
    assert find_separator(text.splitlines(), Path("t.csv")) == separator


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_to_the_last_bit(value):
    assert read_number(repr(value)) == value
    assert read_number(f" {value!r} ") == value


def test_a_table_of_numbers_is_read_to_the_last_bit(tmp_path, rng):
    X = rng.standard_normal((150, 4)) * 10.0 ** rng.integers(-30, 30, (150, 4))
    text = "a,b,c,d\n" + "".join(",".join(map(repr, row)) + "\n" for row in X.tolist())
    np.testing.assert_array_equal(read_table(write(tmp_path / "t.csv", text)).X, X)


@pytest.mark.parametrize("cell", ["", "NA", "n/a", "NaN", "null", "#N/A", "<NA>"])
def test_a_cell_without_a_value_is_missing_and_placed(tmp_path, cell):
    table = read_table(write(tmp_path / "t.csv", f"a,b\n1,2\n3,{cell}\n"))
    np.testing.assert_array_equal(table.X, [[1.0, 2.0], [3.0, np.nan]])
    assert (
        "1 cell is empty or NA (25.0%) and counted as missing, the first in column 'b', row 2 (line 3)."
        in table.assumptions
    )
