from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.io.spreadsheet import changed_names, neutralise_frame, neutralise_text, restore_text

FORMULAS = ["=cmd|'/C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''-2", "＝1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_begins_like_a_formula(text):
    assert neutralise_text(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "age", "'quoted'", "1-2", " a", "'", "ünï"])
def test_other_text_stays(text):
    assert neutralise_text(text) == text == restore_text(text)


@given(st.text(alphabet="'=+-@\t\r\nab ") | st.text())
def test_every_text_comes_back(text):
    assert restore_text(neutralise_text(text)) == text


def test_a_frame_is_neutral_in_cells_index_and_headings_and_the_given_one_stays():
    frame = pd.DataFrame({"=a": ["@x", "y"], "n": [-1.5, 2.0]}, index=pd.Index(["-i", "j"], name="+id"))
    neutral = neutralise_frame(frame)
    assert neutral.columns.tolist() == ["'=a", "n"]
    assert neutral.index.tolist() == ["'-i", "j"]
    assert neutral.index.name == "'+id"
    assert neutral["'=a"].tolist() == ["'@x", "y"]
    assert neutral["n"].tolist() == [-1.5, 2.0]
    assert frame.columns.tolist() == ["=a", "n"]
    assert frame["=a"].tolist() == ["@x", "y"]


def test_the_names_that_change_are_listed():
    assert changed_names(["=a", "b"], None, ["-c", 3]) == {"'=a": "=a", "'-c": "-c"}
