"""All claims on one page: which hold, under which recipe and against which methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsevae.exceptions import DataError
from sparsevae.reproduction.claims import EVERYONE, PAPER, SIMPLE, Comparison, comparisons
from sparsevae.reproduction.markdown import fill_template, markdown_table
from sparsevae.reproduction.results import Results
from sparsevae.reproduction.spec import ANY, RECIPES, load_specs
from sparsevae.reproduction.tables import current_rows

__all__ = ["render_overview"]

_COLUMNS = [
    "result",
    "claim",
    "by default, among the paper's methods",
    "with simple ones",
    "all, in all recipes",
    "recipe *paper*",
    "recipe *authors*",
]


def render_overview(out: Path, scale: str) -> str:
    """A page in Markdown with a line for each claim about the results in a folder; empty without any.

    At the smoke scale there is nothing to claim.

    Parameters
    ----------
    out : path
        With the results in ``out/name/scale``.
    scale : str
    """
    lines, remarks = [], []
    for spec in load_specs().values() if scale != "smoke" else ():
        try:
            rows = current_rows(spec, scale, Results(out / spec.name / scale))
        except DataError:
            remarks.append(f"- Rows of {spec.name} are there and cannot be read.")
            continue
        for claim in spec.claims:
            found = comparisons(spec, scale, claim, rows)
            if found:
                lines.append([f"[{spec.name}]({spec.name}/{scale}/table.md)", claim.text])
                lines[-1] += _answers(found, n_data_sets=len({run.data_set for run in spec.runs(scale)}))
                if claim.remark and scale == "paper":
                    remarks.append(f"- *{claim.text}* {claim.remark}")
    if not lines:
        return ""
    return fill_template("claims.md", scale=scale, table=markdown_table(_COLUMNS, lines), remarks=remarks)


def _answers(found: Sequence[Comparison], n_data_sets: int) -> list[str]:
    """Cells of a line: by default in ever larger groups, then the recipes of the paper."""
    default, *published = RECIPES
    asked = [
        ({default, ANY}, companies) for companies in ([PAPER], [PAPER, SIMPLE], [PAPER, SIMPLE, EVERYONE])
    ]
    asked += [({recipe}, [PAPER]) for recipe in published]
    return [
        _answer([comparison for comparison in found if comparison.recipe in recipes], companies, n_data_sets)
        for recipes, companies in asked
    ]


def _answer(found: Sequence[Comparison], companies: Sequence[str], n_data_sets: int) -> str:
    """In the last of these companies in which there is anyone to compare with."""
    for company in reversed(companies):
        own = [comparison for comparison in found if comparison.company == company]
        if own and n_data_sets == 1:
            return own[0].answer
        if own:
            held = f"{sum(comparison.holds for comparison in own)} of {len(own)}"
            n_single = sum(len(comparison.ours) == 1 for comparison in own)
            n_close = sum(not comparison.clearly for comparison in own) - n_single
            held += f", {n_close} within noise" if n_close else ""
            held += f", {n_single} by one run" if n_single else ""
            complete = len(own) == n_data_sets and all(comparison.complete for comparison in own)
            return held if complete else f"open; {held} so far"
    return "–"
