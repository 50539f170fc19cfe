from __future__ import annotations

from sparsevae.plotting.style import short


def test_names_are_short_and_no_formulas():
    assert short("x" * 100) == "x" * 18 + "…" + "x" * 9
    assert short("  two\n words ") == "two words"
    assert short("$a$") == r"\$a\$"
    assert short("") == "(no name)"
