"""Numbers as a page shows them and as JSON holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sparsevae.inspection.evidence import rounded

__all__ = ["are_whole", "count", "observed", "percent", "rounded", "signed", "significant", "tick"]


def significant(value: float | None, digits: int = 3) -> str:
    """A number for a reader: three digits that matter, no exponent where it can be avoided."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:,.{decimals}f}".replace("-", "−")
    return f"{value:.{digits - 1}e}".replace("-", "−")


def observed(value: float | None, whole: bool) -> str:
    """A value of a table; in a column of whole numbers, such as counts and answers, without decimals."""
    return significant(value) if value is None or not whole else tick(value)


def are_whole(values: Iterable[float | None]) -> bool:
    """Whether numbers are all whole; those that are missing do not count."""
    return all(value is None or float(value).is_integer() for value in values)


def tick(value: float) -> str:
    """A round number on an axis, without zeros at its end."""
    return f"{value:,.10g}".replace("-", "−") if abs(value) < 1e6 else significant(value)


def signed(value: float | None, digits: int = 3) -> str:
    """A number with its sign, also where it is positive."""
    text = significant(value, digits)
    return text if text[0] in "−–" or text == "0" else f"+{text}"


def percent(value: float | None) -> str:
    """A share in per cent; between 0 and 1 % it says so."""
    if value is None or not math.isfinite(value):
        return "–"
    if 0 < value < 0.005:
        return "<1%"
    return f"{100 * value:.0f}%"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number and what is counted."""
    word = one if number == 1 else (f"{one}s" if many is None else many)
    return f"{number:,} {word}"
