"""Numbers, tables and pages as text in Markdown; the prose of the pages is in ``templates``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["deviation", "fill_template", "markdown_table", "number"]


def fill_template(name: str, **values: object) -> str:
    """A page from a template of this package."""
    environment = Environment(
        loader=PackageLoader("sparsevae.reproduction"),
        undefined=StrictUndefined,
        autoescape=False,  # Markdown, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name).render(**values)


def number(mean: float, sd: float = np.nan, *, digits: int) -> str:
    """A mean, with a standard deviation in brackets where there is one."""
    return f"{mean:.{digits}f}" if np.isnan(sd) else f"{mean:.{digits}f} ({sd:.{digits}f})"


def deviation(values: pd.Series) -> float:
    """Standard deviation over runs, divided by their number as in the paper; NaN for a single run."""
    return float(values.std(ddof=0)) if len(values) > 1 else np.nan


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table with a head and lines of cells."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(head), line(["---"] * len(head)), *map(line, lines)])
