"""Text that fits its place on a page."""

from __future__ import annotations

import json

__all__ = ["shorten", "spell_value"]


def shorten(text: object, longest: int) -> str:
    """Text of at most ``longest`` characters; one that is cut ends in an ellipsis."""
    text = str(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def spell_value(value: object) -> str:
    """A setting for a reader: yes and no, thousands with commas, six digits of other numbers."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
