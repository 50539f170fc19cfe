"""SPSS, Stata and Excel files, written by the libraries that others write them with."""

from __future__ import annotations

import sys

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest

from sparsevae import read_table
from sparsevae.exceptions import DataError

LABELS = {"q1": "I worry a lot", "q2": "I sleep well", "q3": ""}


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(1, 6, size=(12, 3)).astype(float), columns=list(LABELS))
    frame.insert(0, "id", np.arange(101.0, 113.0))
    return frame


def write(frame, path, labels=LABELS):
    writer = pyreadstat.write_dta if path.suffix == ".dta" else pyreadstat.write_sav
    writer(frame, str(path), column_labels=labels)
    return path


@pytest.mark.parametrize("ending", ["sav", "zsav", "dta"])
def test_labels_are_names(answers, tmp_path, ending):
    path = tmp_path / f"survey.{ending}"
    if ending == "zsav":
        pyreadstat.write_sav(answers, str(path), column_labels=LABELS, compress=True)
    else:
        write(answers, path)
    table = read_table(path)
    assert table.feature_names.tolist() == ["I worry a lot", "I sleep well", "q3"]
    assert table.sample_names.tolist() == [str(i) for i in range(101, 113)]
    np.testing.assert_array_equal(table.X, answers[list(LABELS)])
    assert "2 of 4 variables are named by their labels" in table.assumptions[0]
    by_variable = read_table(path, header=True, id_column="none")
    assert by_variable.feature_names.tolist() == ["id", *LABELS]
    assert read_table(path, id_column="I sleep well").shape == (12, 3)
    assert read_table(path, id_column="q2", drop="id").feature_names.tolist() == ["I worry a lot", "q3"]


def test_values_that_are_declared_missing_are_missing(answers, tmp_path):
    answers.loc[3, "q1"] = 99.0
    pyreadstat.write_sav(answers, str(tmp_path / "s.sav"), missing_ranges={"q1": [{"lo": 99, "hi": 99}]})
    table = read_table(tmp_path / "s.sav")
    assert np.isnan(table.X).sum() == np.isnan(table.X[3]).sum() == 1


def test_labels_that_collide_are_refused(answers, tmp_path):
    path = write(answers, tmp_path / "s.sav", {"q1": "agree", "q2": "agree"})
    with pytest.raises(DataError, match=r"q1, q2 are all called 'agree'.*--header"):
        read_table(path)
    assert read_table(path, header=True).feature_names.tolist() == list(LABELS)


def test_answers_in_words_are_refused_by_name(answers, tmp_path):
    path = write(answers.assign(why="because"), tmp_path / "s.sav")
    with pytest.raises(DataError, match=r"got something else in column 'why', for example 'because'"):
        read_table(path)
    assert read_table(path, drop="why").shape == (12, 3)


@pytest.mark.parametrize("ending", ["sav", "dta", "xlsx"])
def test_damaged_files_are_refused(tmp_path, ending):
    path = tmp_path / f"s.{ending}"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=r"Expected .* (cannot be read|is damaged)"):
        read_table(path)


def test_a_workbook_is_read_with_its_names(answers, tmp_path):
    answers.to_excel(tmp_path / "a.xlsx", index=False)
    table = read_table(tmp_path / "a.xlsx")
    assert table.feature_names.tolist() == list(LABELS)
    assert table.sample_names[0] == "101"
    np.testing.assert_array_equal(table.X, answers[list(LABELS)])
    answers[["q1", "q2"]].to_excel(tmp_path / "b.xlsx", index=False, header=False)
    assert read_table(tmp_path / "b.xlsx").feature_names is None
    assert read_table(tmp_path / "b.xlsx").shape == (12, 2)
    with pytest.raises(DataError, match="Expected a column 'who'"):
        read_table(tmp_path / "a.xlsx", id_column="who")


def test_a_sheet_can_be_named(answers, tmp_path):
    with pd.ExcelWriter(tmp_path / "a.xlsx") as writer:
        pd.DataFrame().to_excel(writer, sheet_name="notes")
        answers.to_excel(writer, sheet_name="data", index=False)
    assert read_table(tmp_path / "a.xlsx", layer="data").shape == (12, 3)
    with pytest.raises(DataError, match=r"Expected a table in sheet 'notes' of .*; it is empty"):
        read_table(tmp_path / "a.xlsx")
    with pytest.raises(DataError, match=r"Expected a sheet 'more' in .*; there is notes, data"):
        read_table(tmp_path / "a.xlsx", layer="more")


def test_an_empty_and_an_encrypted_workbook_are_refused(tmp_path):
    openpyxl.Workbook().save(tmp_path / "empty.xlsx")
    with pytest.raises(DataError, match="it is empty"):
        read_table(tmp_path / "empty.xlsx")
    (tmp_path / "secret.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
    with pytest.raises(DataError, match="it is encrypted, or of Excel before 2007"):
        read_table(tmp_path / "secret.xlsx")


def workbook(path, *rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_a_column_of_a_workbook_without_a_name_is_refused(tmp_path):
    path = workbook(tmp_path / "a.xlsx", ["a", None, "c", " "], [1, 2, 3, 4], [2, 3, 4, 5])
    with pytest.raises(
        DataError, match=r"Expected a name in the first row .*; there is none in columns B, D"
    ):
        read_table(path)
    title = workbook(tmp_path / "b.xlsx", ["My survey"], ["a", "b"], [1, 2], [2, 3])
    with pytest.raises(DataError, match=r"none in column B\. Write one, or delete what is above the row of"):
        read_table(title)


def test_columns_of_a_workbook_without_name_and_value_are_left_out_and_said(tmp_path):
    path = workbook(tmp_path / "a.xlsx", ["a", None, "c"], [1, None, 3], [2, None, 4])
    table = read_table(path)
    assert table.feature_names.tolist() == ["a", "c"]
    assert "Left out what has neither a name nor a value: column B." in table.assumptions


def test_a_first_column_without_heading_names_the_rows_of_a_workbook(tmp_path):
    pd.DataFrame({"b": [1.0, 2.5], "c": [3, 4]}, index=[7, 9]).to_excel(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx")
    assert table.feature_names.tolist() == ["b", "c"]
    assert table.sample_names.tolist() == ["7", "9"]
    assert any("it has no heading" in note for note in table.assumptions)
    with pytest.raises(DataError, match="none in column A"):
        read_table(tmp_path / "a.xlsx", id_column="none")


def test_headings_of_a_workbook_are_kept_as_they_are(tmp_path):
    path = workbook(tmp_path / "a.xlsx", ["NA", 2020, "c"], [1, 0.5, 3], [2, 1.5, 4])
    assert read_table(path).feature_names.tolist() == ["NA", "2020", "c"]


def test_a_library_that_is_absent_is_named_as_pip_knows_it(answers, tmp_path, monkeypatch):
    path = write(answers, tmp_path / "survey.sav")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(DataError, match=r"it is not installed\. Run: pip install pyreadstat$"):
        read_table(path)
