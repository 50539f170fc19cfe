"""Running the code of pages in this process, and comparing what it prints with what they show."""

from __future__ import annotations

import contextlib
import io
import re


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def run(code: str, names: dict[str, object]) -> str:
    """What a piece of code prints; the names that it leaves are added to those given."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), names)
    return printed.getvalue()


def without_digits(text: str) -> str:
    """Numbers as signs of a number: a fit on another processor may differ in the last digit that is shown."""
    return re.sub(r" *-?\d[\d.]*", " #", text)


def assert_alike(printed: str, shown: str) -> None:
    """The same words, and numbers that differ by little beyond the last digit that is shown."""
    assert without_digits(printed) == without_digits(shown)
    for text, expected in zip(*(re.findall(r"-?\d[\d.]*", part) for part in (printed, shown)), strict=True):
        number, wanted = (float(digits.rstrip(".")) for digits in (text, expected))
        last = 10.0 ** -len(expected.partition(".")[2])
        assert abs(number - wanted) <= 1.01 * last + 0.1 * abs(wanted), f"{text} for {expected} in {printed}"


def printed_by(codes: list[str], names: dict[str, object]) -> list[str]:
    """What pieces of code print one after the other, without those that print nothing."""
    return [printed for code in codes if (printed := run(code, names))]
