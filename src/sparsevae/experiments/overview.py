"""All claims on one page: which hold, in which reading and in which company."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsevae.exceptions import DataError
from sparsevae.experiments.claims import EVERYONE, PAPER, SIMPLE, Comparison, comparisons
from sparsevae.experiments.markdown import markdown_table
from sparsevae.experiments.results import Results
from sparsevae.experiments.spec import ANY, READINGS, load_specs
from sparsevae.experiments.tables import current_rows

__all__ = ["overview"]

_HEAD = """# The claims at a glance

Results at `{scale}` scale.{caveat} Each claim is checked in every [reading](../fidelity.md) that there is: by
default first among the methods of the paper's table or figure, then with simple methods beside them (PCA, LDA
and others), then with the literal readings of all of them where their data are the same; in the literal
readings among the paper's methods in the same reading. A method that does not have the quantity, or was not
run as often, is not among them: the page of the result names it. Where a result has several data sets, a cell
says on how many of them the claim holds, by the mean over the runs that both methods have. Within noise is a
mean difference per run of less than two standard errors. A claim is open until every run is there. How close
it was is on the page of each result.

"""
_CAVEAT = " This scale shows that everything works; its answers mean nothing else."
_COLUMNS = [
    "result",
    "claim",
    "by default, among the paper's methods",
    "with simple ones",
    "all, in all readings",
    "the paper to the letter",
    "the released arithmetic",
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
    """Cells of a line: by default in ever larger groups, then the literal readings."""
    default, *literal = READINGS
    asked = [
        ({default, ANY}, companies) for companies in ([PAPER], [PAPER, SIMPLE], [PAPER, SIMPLE, EVERYONE])
    ]
    asked += [({reading}, [PAPER]) for reading in literal]
    return [
        _answer(
            [comparison for comparison in found if comparison.reading in readings], companies, n_data_sets
        )
        for readings, companies in asked
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
