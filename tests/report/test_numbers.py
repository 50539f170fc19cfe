from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.report.numbers import are_whole, count, observed, percent, rounded, signed, significant, tick
from sparsevae.validation import visible


@pytest.mark.parametrize(
    "value, shown",
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (-0.5637, "−0.564"),
        (1234.5, "1,234"),
        (0.00123, "0.00123"),
        (1e-7, "1.00e−07"),
        (2.5e9, "2.50e+09"),
        (None, "–"),
        (float("nan"), "–"),
    ],
)
def test_three_digits_that_matter(value, shown):
    assert significant(value) == shown


def test_signs_percents_and_counts():
    assert [signed(value, 2) for value in (0.4, -0.4, 0.0, None)] == ["+0.40", "−0.40", "0", "–"]
    assert [percent(value) for value in (0.0, 0.001, 0.5, 1.0, None)] == ["0%", "<1%", "50%", "100%", "–"]
    assert [count(n, "factor") for n in (1, 2, 3000)] == ["1 factor", "2 factors", "3,000 factors"]
    assert [tick(value) for value in (-2.0, 0.5, 1000.0)] == ["−2", "0.5", "1,000"]


def test_answers_and_counts_have_no_decimals():
    assert [observed(value, True) for value in (6.0, 0.0, -2.0, None)] == ["6", "0", "−2", "–"]
    assert [observed(value, False) for value in (6.0, 4.25)] == ["6.00", "4.25"]
    assert [are_whole(values) for values in ([6.0, None], [6.0, 4.25], [float("nan")])] == [
        True,
        False,
        False,
    ]


@given(st.lists(st.floats(width=32), max_size=5))
def test_rounded_numbers_are_finite_or_none_and_close(values):
    for before, after in zip(values, rounded(np.array(values)), strict=True):
        if np.isfinite(before):
            assert after == pytest.approx(before, rel=1e-3)
        else:
            assert after is None


@given(st.text())
def test_what_is_visible_cannot_turn_a_sentence(text):
    assert not set(visible(text)) & {"\u202e", "\u2066", "\n", "\x00"}


def test_letters_and_emoji_stay():
    assert visible("Ärger 🧑‍🤝‍🧑 عربى\u202e") == "Ärger 🧑‍🤝‍🧑 عربى"
