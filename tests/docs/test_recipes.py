"""The recipes that need no further library run; `tests/integrations` has the others."""

from __future__ import annotations

from pathlib import Path

from .helpers import assert_alike, blocks, printed_by

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "module.md"


def test_the_network_trains_in_a_loop_of_ones_own():
    text = PAGE.read_text("utf-8")
    names: dict[str, object] = {"__name__": "module"}
    for part, shown in zip(printed_by(blocks(text, "python"), names), blocks(text, "text"), strict=True):
        assert_alike(part, shown)
    support = names["module"].support()
    assert support.any()
