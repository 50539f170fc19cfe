"""Whether a claim holds: one method against the others, on the runs that both have, recipe by recipe."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from sparsevae.comparison.measures import MEASURES
from sparsevae.reproduction.markdown import deviation, markdown_table, number
from sparsevae.reproduction.spec import ANY, RECIPES, Claim, Method, Run, Spec

__all__ = ["EVERYONE", "PAPER", "SIMPLE", "Comparison", "comparisons", "verdict"]

PAPER = "the paper's methods"
SIMPLE = "the paper's and simple methods"
EVERYONE = "all, in all recipes"

Rival = tuple[str, str]  # method, recipe


class Comparison(NamedTuple):
    """A claim in one recipe, on one data set, against the one of a group that comes closest."""

    recipe: str
    data_set: str
    company: str
    """Who the others are: those of the paper, simple ones beside them, all recipes of both."""
    absent: tuple[str, ...]
    """The paper's methods that are not among them: without the quantity, or not run as often."""
    holds: bool
    clearly: bool
    """Whether the mean difference per run is beyond two of its standard errors."""
    complete: bool
    """Whether every run is there; until then the question is open."""
    n_expected: int
    ours: pd.Series
    """Numbers of the runs that both have."""
    theirs: pd.Series
    rival: Rival

    @property
    def answer(self) -> str:
        """In a word or three."""
        doubt = ", one run" if len(self.ours) == 1 else ", within noise"
        answer = ("yes" if self.holds else "**no**") + ("" if self.clearly else doubt)
        return answer if self.complete else f"open; {answer} so far"


def comparisons(spec: Spec, scale: str, claim: Claim, rows: pd.DataFrame) -> list[Comparison]:
    """A claim in each recipe, on each data set and in each company in which it can be checked.

    Methods are compared on the same data, seed and split only. As long as a run is missing or has failed, the
    question is open. Methods without this metric, or with fewer splits, are left out. Under the default
    recipe the group grows from the paper's methods to all; under the others it is the paper's methods.

    Parameters
    ----------
    spec : Spec
    scale : str
    claim : Claim
    rows : DataFrame
        From `current_rows`.
    """
    runs, (own,) = spec.runs(scale), [method for method in spec.methods if method.name == claim.method]
    papers = [
        method.name
        for method in spec.methods
        if method is not own and not method.added and not method.reference
    ]
    asked = [
        (recipe, data_set.name, company, rivals)
        for recipe in own.recipes
        for data_set in spec.data_sets
        for company, rivals in _companies(spec, own, recipe)
    ]
    found = []
    for recipe, data_set, company, rivals in asked:
        of_data = rows[rows["data_set"] == data_set]
        expected = [run for run in runs if run.data_set == data_set]
        comparison = _compare(claim, recipe, data_set, company, rivals, papers, of_data, expected)
        if comparison is not None:
            found.append(comparison)
    return found


def verdict(spec: Spec, scale: str, claim: Claim, rows: pd.DataFrame) -> str:
    """The claim in Markdown, with a line for each of its `comparisons`, whose parameters these are.

    Where a larger group has no closer rival than a smaller one, the line of the larger says it for both.
    """
    found = comparisons(spec, scale, claim, rows)
    if not found:
        return f"**{claim.text}** Not measured yet."
    measure = MEASURES[claim.metric]
    title = f"{measure.title}: {claim.method}"
    head = ["recipe", "data", "among", "holds", "runs", title, "best other", "difference per run"]
    lines = [
        [
            *(comparison.recipe, comparison.data_set, _among(comparison), comparison.answer),
            f"{len(comparison.ours)} of {comparison.n_expected}",
            number(comparison.ours.mean(), digits=measure.digits),
            f"{number(comparison.theirs.mean(), digits=measure.digits)} ({_label(comparison.rival)})",
            number(difference.mean(), deviation(difference), digits=measure.digits + 1),
        ]
        for comparison, larger in zip(found, [*found[1:], None], strict=True)
        if larger is None or _says(comparison) != _says(larger)
        for difference in [comparison.ours - comparison.theirs]
    ]
    parts = [f"**{claim.text}**", markdown_table(head, lines), claim.remark]
    return "\n\n".join(part for part in parts if part)


def _companies(spec: Spec, own: Method, recipe: str) -> Iterator[tuple[str, list[Rival]]]:
    """Ever larger groups of others: of the paper's table, of the same recipe, all; none twice."""

    def rivals(recipes: Sequence[str], methods: Sequence[Method]) -> list[Rival]:
        return [
            (method.name, other)
            for method in methods
            if method is not own and not method.reference
            for other in method.recipes
            if other in recipes and (other not in method.splits or recipe in own.splits)
            if spec.world(other) == spec.world(recipe)
        ]

    alike = (recipe, ANY)
    groups = {PAPER: rivals(alike, [method for method in spec.methods if not method.added])}
    if recipe == own.recipes[0]:
        groups[SIMPLE] = rivals(alike, spec.methods)
        groups[EVERYONE] = rivals([*RECIPES, ANY], spec.methods)
    before: list[Rival] = []
    for name, group in groups.items():
        if group != before:
            yield name, group
        before = group


def _compare(
    claim: Claim,
    recipe: str,
    data_set: str,
    company: str,
    rivals: Sequence[Rival],
    papers: Sequence[str],
    rows: pd.DataFrame,
    expected: Sequence[Run],
) -> Comparison | None:
    """The rival that comes closest, or is furthest ahead; None without runs that two methods have."""
    own, complete = _values(rows, claim.metric, (claim.method, recipe), expected)
    sign = 1.0 if MEASURES[claim.metric].better == "lower" else -1.0  # a positive gap: the other is better
    closest: tuple[float, Rival, pd.Series, pd.Series] | None = None
    present = set()
    for rival in rivals:
        theirs, all_there = _values(rows, claim.metric, rival, expected)
        if all_there and theirs.empty:
            continue  # it does not have the quantity
        present.add(rival[0])
        complete = complete and all_there
        both = own.index.intersection(theirs.index)
        if len(both):
            gap = sign * float((own[both] - theirs[both]).mean())
            if closest is None or gap > closest[0]:
                closest = (gap, rival, own[both], theirs[both])
    if closest is None:
        return None
    gap, rival, ours, theirs = closest
    return Comparison(
        recipe=recipe,
        data_set=data_set,
        company=company,
        absent=tuple(name for name in papers if name not in present),
        holds=gap < 0,
        clearly=_is_clear(ours - theirs),
        complete=complete,
        n_expected=sum((run.method, run.recipe) == (claim.method, recipe) for run in expected),
        ours=ours,
        theirs=theirs,
        rival=rival,
    )


def _is_clear(differences: pd.Series) -> bool:
    """Whether their mean is beyond two standard errors; never so of a single one."""
    if len(differences) == 1:
        return False
    standard_error = float(np.std(differences, ddof=1)) / math.sqrt(len(differences))
    return abs(float(differences.mean())) > 2.0 * standard_error


def _values(rows: pd.DataFrame, metric: str, which: Rival, expected: Sequence[Run]) -> tuple[pd.Series, bool]:
    """Numbers of a method by seed and split, and whether there is one for each run, or rightly for none."""
    own = rows[(rows["method"] == which[0]) & (rows["recipe"] == which[1])]
    measured = own[own["metric"] == metric].set_index(["seed", "split"])["value"]
    n_expected = sum((run.method, run.recipe) == which for run in expected)
    numbers = measured.dropna().astype(float)
    return numbers, len(measured) == n_expected and len(numbers) in (0, n_expected)


def _says(comparison: Comparison) -> tuple[str, str, Rival, str]:
    return comparison.recipe, comparison.data_set, comparison.rival, comparison.answer


def _among(comparison: Comparison) -> str:
    without = f" (without {', '.join(comparison.absent)})" if comparison.absent else ""
    return comparison.company + without


def _label(rival: Rival) -> str:
    method, recipe = rival
    return method if recipe == ANY else f"{method}, {recipe}"
