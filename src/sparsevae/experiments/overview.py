"""All claims on one page: which hold, and in which company."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsevae.experiments.claims import Comparison, companies_of, comparisons
from sparsevae.experiments.markdown import markdown_table
from sparsevae.experiments.results import Results
from sparsevae.experiments.spec import load_specs
from sparsevae.experiments.tables import current_rows

__all__ = ["overview"]

_HEAD = """# The claims at a glance

Results at `{scale}` scale. Where a result has several data sets, a cell says on how many of them the claim
holds, by the mean over the runs that both methods have. Within noise is a mean difference per run of less
than two standard errors. A claim is open until every run is there. The paper's methods are those of its table
or figure; the same reading has simple methods beside them (PCA, LDA and others); all readings has the literal
ones too, where their data are the same. How close it was is on the page of each result.

"""


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
        rows = current_rows(spec, scale, Results(out / spec.name / scale))
        for claim in spec.claims:
            found = comparisons(spec, scale, claim, rows)
            if found:
                companies, n_data_sets = companies_of(claim), len({run.data_set for run in spec.runs(scale)})
                cells = [_answer(found, companies[:reach], n_data_sets) for reach in (1, 2, 3)]
                lines.append([f"[{spec.name}]({spec.name}/{scale}/table.md)", claim.text, *cells])
                if claim.remark:
                    remarks.append(f"- *{claim.text}* {claim.remark}")
    if not lines:
        return ""
    head = ["result", "claim", "among the paper's methods", "among the same reading", "among all readings"]
    parts = [_HEAD.format(scale=scale) + markdown_table(head, lines)]
    if remarks:
        parts += ["## What to know about the answers", "\n".join(remarks)]
    return "\n\n".join(parts) + "\n"


def _answer(found: Sequence[Comparison], companies: Sequence[str], n_data_sets: int) -> str:
    """In the last of these companies in which there is anyone to compare with."""
    for company in reversed(companies):
        own = [comparison for comparison in found if comparison.company == company]
        if own and n_data_sets == 1:
            return own[0].answer
        if own:
            held = f"{sum(comparison.holds for comparison in own)} of {len(own)}"
            if n_close := sum(not comparison.clearly and len(comparison.ours) > 1 for comparison in own):
                held += f", {n_close} within noise"
            complete = len(own) == n_data_sets and all(comparison.complete for comparison in own)
            return held if complete else f"open; {held} so far"
    return "–"
