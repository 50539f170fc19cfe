"""Names in files that a spreadsheet may open: a cell that begins like a formula is written as text.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-`` or ``@``. An apostrophe in front makes it text,
as OWASP advises. A name that has apostrophes in front of such a sign gets one more, so that `restore_text`
gives back every name as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

__all__ = ["changed_names", "neutralise_frame", "neutralise_text", "restore_text"]

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")  # the wide forms of Chinese and Japanese keyboards too


def neutralise_text(text: str) -> str:
    """Text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> from sparsevae.io.spreadsheet import neutralise_text
    >>> neutralise_text("=1+1"), neutralise_text("age")
    ("'=1+1", 'age')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def restore_text(text: str) -> str:
    """The text that `neutralise_text` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def neutralise_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A data frame whose text, in cells, index and headings, no spreadsheet takes for a formula.

    Parameters
    ----------
    frame : DataFrame
        Not changed; numbers stay as they are.
    """
    frame = frame.copy(deep=False)
    for name in frame.columns[[dtype.kind not in "biufc" for dtype in frame.dtypes]]:
        frame[name] = frame[name].map(_neutral)
    frame.index = _neutral_index(frame.index)
    frame.columns = _neutral_index(frame.columns)
    return frame


def changed_names(*names: Iterable[object] | None) -> dict[str, str]:
    """Of some lists of names those that are written otherwise: from the written form to the name."""
    texts = [name for some in names if some is not None for name in some if isinstance(name, str)]
    return {neutralise_text(name): name for name in texts if neutralise_text(name) != name}


def _neutral(value: object) -> object:
    return neutralise_text(value) if isinstance(value, str) else value


def _neutral_index(index: pd.Index) -> pd.Index:
    if index.dtype.kind in "biufc":
        return index.rename(_neutral(index.name))
    return pd.Index([_neutral(value) for value in index], dtype=object, name=_neutral(index.name))
