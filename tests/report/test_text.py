from __future__ import annotations

import pytest

from sparsevae.report.text import shorten, spell_value


def test_long_text_is_cut_to_its_place():
    assert shorten("abc", 3) == "abc"
    assert shorten("abcd", 3) == "ab…"
    assert shorten(12345, 4) == "123…"


@pytest.mark.parametrize(
    "value, words",
    [
        (True, "yes"),
        (None, "–"),
        (12345, "12,345"),
        (1 / 3, "0.333333"),
        ({"a": [1]}, '{"a": [1]}'),
        ("auto", "auto"),
    ],
)
def test_a_setting_is_spelt_for_a_reader(value, words):
    assert spell_value(value) == words
