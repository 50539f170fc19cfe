"""All claims on one page: which hold, under which recipe and against which methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsevae.exceptions import DataError
from sparsevae.experiments.claims import EVERYONE, PAPER, SIMPLE, Comparison, comparisons
from sparsevae.experiments.markdown import markdown_table
from sparsevae.experiments.results import Results
from sparsevae.experiments.spec import ANY, RECIPES, load_specs
from sparsevae.experiments.tables import current_rows

__all__ = ["overview"]

_HEAD = """# The claims at a glance

Results at `{scale}` scale.{caveat} Each claim is checked under every [recipe](../docs/research/fidelity.md):

- *default*, first against the methods of the paper's table or figure, then against simple methods too (PCA,
  LDA and others), then against all methods under all recipes, where the data are the same;
- *paper* and *authors*, each against the paper's methods under the same recipe.

A method without the metric, or with fewer runs, is left out; the page of the result names it. Where a result
has several data sets, a cell counts those on which the claim holds, by the mean over the runs that both
methods have. *Within noise*: the mean difference per run is less than two standard errors. A claim is open
until every run has ended. The pages of the results have the differences.

"""
_CAVEAT = " This scale shows that everything works; its answers mean nothing else."
_COLUMNS = [
    "result",
    "claim",
    "by default, among the paper's methods",
    "with simple ones",
    "all, in all recipes",
    "recipe *paper*",
    "recipe *authors*",
]


def overview(out: Path, scale: str) -> str:
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
    head = _HEAD.format(scale=scale, caveat="" if scale == "paper" else _CAVEAT)
    parts = [head + markdown_table(_COLUMNS, lines)]
    if remarks:
        parts += ["## What to know about the answers", "\n".join(remarks)]
    return "\n\n".join(parts) + "\n"


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
