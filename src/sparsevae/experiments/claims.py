"""Whether a claim holds: one method against the others, on the runs that both have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from sparsevae.experiments.markdown import deviation, markdown_table, number
from sparsevae.experiments.measures import MEASURES
from sparsevae.experiments.spec import ANY, Claim, Method, Run, Spec

__all__ = ["verdict"]

Rival = tuple[str, str]  # method, reading


def verdict(spec: Spec, scale: str, claim: Claim, rows: pd.DataFrame) -> str:
    """The claim, and a line for each data set and each company in which it is checked.

    Methods are compared on the same data, seed and split only. As long as a run is missing or has failed, the
    question is open; a method that does not have the quantity at all is no rival.

    Parameters
    ----------
    spec : Spec
    scale : str
    claim : Claim
    rows : DataFrame
        From `current_rows`.
    """
    lines = [
        [data_set.name, company, *line]
        for data_set in spec.data_sets
        for company, rivals in _companies(spec, claim)
        if (line := _line(spec, scale, claim, rivals, rows[rows["data_set"] == data_set.name], data_set.name))
    ]
    if not lines:
        return f"**{claim.text}** Not measured yet."
    measure, label = MEASURES[claim.metric].title, f"{claim.method}, {claim.reading}"
    head = ["data", "among", "holds", "runs", f"{measure}: {label}", "best other", "difference per run"]
    return f"**{claim.text}**\n\n{markdown_table(head, lines)}"


def _companies(spec: Spec, claim: Claim) -> Iterator[tuple[str, list[Rival]]]:
    """Ever larger groups of others: of the paper's table, of the same reading, all; none twice."""

    def rivals(readings: Sequence[str], methods: Sequence[Method]) -> list[Rival]:
        return [
            (method.name, reading)
            for method in methods
            if method.name != claim.method and not method.reference
            for reading in method.readings
            if reading in readings and spec.world(reading) == spec.world(claim.reading)
        ]

    alike = (claim.reading, ANY)
    every = [reading for method in spec.methods for reading in method.readings]
    before: list[Rival] = []
    for name, group in (
        ("the paper's methods", rivals(alike, [method for method in spec.methods if method.in_paper])),
        (f"reading {claim.reading}", rivals(alike, spec.methods)),
        ("all readings", rivals(every, spec.methods)),
    ):
        if group != before:
            yield name, group
        before = group


def _line(
    spec: Spec, scale: str, claim: Claim, rivals: Sequence[Rival], rows: pd.DataFrame, data_set: str
) -> list[str]:
    """Whether it holds, on how many runs, the number, the best other, the difference; empty without rows."""
    measure = MEASURES[claim.metric]
    expected = [run for run in spec.runs(scale) if run.data_set == data_set]
    own, complete = _values(rows, claim.metric, (claim.method, claim.reading), expected)
    sign = 1.0 if measure.better == "lower" else -1.0  # a positive gap: the other is better by that
    closest: tuple[float, Rival, pd.Series, pd.Series] | None = None
    for rival in rivals:
        theirs, all_there = _values(rows, claim.metric, rival, expected)
        if all_there and theirs.empty:
            continue  # it does not have the quantity
        complete = complete and all_there
        both = own.index.intersection(theirs.index)
        if len(both):
            gap = sign * float((own[both] - theirs[both]).mean())
            if closest is None or gap > closest[0]:
                closest = (gap, rival, own[both], theirs[both])
    if closest is None:
        return []
    gap, rival, ours, theirs = closest
    answer = "yes" if gap < 0 else "**no**"
    difference = ours - theirs
    return [
        answer if complete else f"open; {answer} so far",
        f"{len(ours)} of {len({(run.seed, run.split) for run in expected})}",
        number(ours.mean(), digits=measure.digits),
        f"{number(theirs.mean(), digits=measure.digits)} ({_label(rival)})",
        number(difference.mean(), deviation(difference), digits=measure.digits + 1),
    ]


def _values(rows: pd.DataFrame, metric: str, which: Rival, expected: Sequence[Run]) -> tuple[pd.Series, bool]:
    """Numbers of a method by seed and split, and whether there is one for each run, or rightly for none."""
    own = rows[(rows["method"] == which[0]) & (rows["reading"] == which[1])]
    measured = own[own["metric"] == metric].set_index(["seed", "split"])["value"]
    n_expected = sum((run.method, run.reading) == which for run in expected)
    numbers = measured.dropna().astype(float)
    return numbers, len(measured) == n_expected and len(numbers) in (0, n_expected)


def _label(rival: Rival) -> str:
    method, reading = rival
    return method if reading == ANY else f"{method}, {reading}"
