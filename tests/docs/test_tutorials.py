"""The tutorials run, and print what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from .helpers import assert_alike, blocks, printed_by

DOCS = Path(__file__).parents[2] / "docs"
HOW_TO = [DOCS / "how-to" / f"{name}.md" for name in ("groups", "holes-and-weights", "known-anchors")]
TUTORIALS = [
    *(DOCS / "tutorials" / f"{name}.md" for name in ("cells", "methods", "ratings", "survey", "text")),
    *HOW_TO,
]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    printed = printed_by(blocks(text, "python"), {"__name__": page.stem})
    for part, shown in zip(printed, blocks(text, "text"), strict=True):
        assert_alike(part, shown)
