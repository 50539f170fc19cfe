"""Tables in Markdown from rows: mean and standard deviation over runs, beside the paper's number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from sparsevae.aliases import JSON
from sparsevae.comparison.measures import MEASURES
from sparsevae.reproduction.claims import verdict
from sparsevae.reproduction.markdown import deviation, fill_template, markdown_table, number
from sparsevae.reproduction.results import FAILED, KEY, Results, read_value
from sparsevae.reproduction.spec import ANY, Method, Spec

__all__ = ["current_rows", "records", "render", "summarise"]

_SHOWN = 5  # features of a topic in a table
_MARK = "†"


def current_rows(spec: Spec, scale: str, results: Results) -> pd.DataFrame:
    """The rows of runs that the result has today: not those of other settings than its description has now.

    Parameters
    ----------
    spec : Spec
    scale : str
    results : Results

    Returns
    -------
    DataFrame
        With values as Python objects.
    """
    settings = {run.key: run.settings for run in spec.runs(scale)}
    frame = results.frame()
    keys = frame[list(KEY)].itertuples(index=False, name=None)
    current = [settings.get(key) == own for key, own in zip(keys, frame["settings"], strict=True)]
    frame = frame[np.array(current, dtype=bool)].copy()
    frame["value"] = pd.Series([read_value(text) for text in frame["value"]], index=frame.index)
    frame["seconds"] = frame["seconds"].astype(float)
    return frame


def summarise(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over runs.

    Parameters
    ----------
    rows : DataFrame
        From `current_rows`.

    Returns
    -------
    DataFrame
        Columns method, recipe, data_set, metric, mean, sd, n_runs. The standard deviation divides by the
        number of runs, as the paper's does; it is NaN for a single run.
    """
    numeric = [name for name, measure in MEASURES.items() if not measure.is_list]
    numbers = rows[rows["metric"].isin(numeric) & rows["value"].notna()]
    groups = numbers.assign(value=numbers["value"].astype(float)).groupby(
        ["method", "recipe", "data_set", "metric"], sort=False
    )["value"]
    table = pd.DataFrame({"mean": groups.mean(), "sd": groups.apply(deviation), "n_runs": groups.size()})
    return table.reset_index()


def records(rows: pd.DataFrame) -> list[JSON]:
    """Rows as dicts."""
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def render(
    spec: Spec, scale: str, rows: pd.DataFrame, about: Mapping[str, str], figures: Sequence[Path]
) -> str:
    """The result as a page in Markdown.

    Parameters
    ----------
    spec : Spec
    scale : str
    rows : DataFrame
        From `current_rows`.
    about : dict
        Descriptions of the data, by source.
    figures : sequence of path
        Pictures beside the page.
    """
    tables = [table for table in _tables(spec, summarise(rows)) if table]
    if "topics" in spec.metrics:
        tables += _topics(spec, rows)
    with_claims = spec.claims if scale != "smoke" else ()
    return fill_template(
        "result.md",
        spec=spec,
        scale=scale,
        about=about,
        figures=figures,
        tables=tables,
        n_runs=len(spec.runs(scale)),
        n_done=sum(set(spec.metrics) <= set(own["metric"]) for _, own in rows.groupby(list(KEY))),
        claims=[verdict(spec, scale, claim, rows) for claim in with_claims],
        failures=_failures(rows),
        provenance={
            title: [value for value in dict.fromkeys(rows[title.lower()]) if value]
            for title in ("Versions", "Machine", "Commit")
        },
        unsettled=_unsettled(rows),
    )


def _tables(spec: Spec, summary: pd.DataFrame) -> Iterator[str]:
    numbers = [metric for metric in spec.metrics if (summary["metric"] == metric).any()]
    names = [data_set.name for data_set in spec.data_sets if (summary["data_set"] == data_set.name).any()]
    if len(names) == 1:
        yield _table(spec, summary, [(metric, names[0], MEASURES[metric].title) for metric in numbers])
    elif names:
        for metric in numbers:
            arrow = {"lower": ", lower is better", "higher": ", higher is better", "": ""}
            title = MEASURES[metric].title + arrow[MEASURES[metric].better]
            table = _table(spec, summary, [(metric, name, name) for name in names])
            yield f"## {title}\n\n{table}"


def _table(spec: Spec, summary: pd.DataFrame, columns: Sequence[tuple[str, str, str]]) -> str:
    head = ["method", "recipe", "runs"]
    published = [
        any(data_set in method.in_paper.get(metric, {}) for method in spec.methods)
        for metric, data_set, _ in columns
    ]
    for (_, _, title), has in zip(columns, published, strict=True):
        head += [title, f"{title}, paper"] if has else [title]
    lines = []
    for method in spec.methods:
        for recipe in method.recipes:
            own = summary[(summary["method"] == method.name) & (summary["recipe"] == recipe)]
            if own.empty:
                continue
            shown = own[
                own[["metric", "data_set"]].apply(tuple, axis=1).isin([column[:2] for column in columns])
            ]
            n_runs = shown["n_runs"] if len(shown) else own["n_runs"]
            cells = [method.name, recipe, "–".join(str(n) for n in sorted({n_runs.min(), n_runs.max()}))]
            for (metric, data_set, _), has in zip(columns, published, strict=True):
                cells.append(_cell(spec, summary, own, metric, data_set))
                if has:
                    cells.append(_in_paper(spec, method, recipe, metric, data_set))
            lines.append(cells)
    if not lines:
        return ""
    is_marked = any(cell.endswith(_MARK) for line in lines for cell in line)
    return markdown_table(head, lines) + (
        f"\n\n{_MARK} published for other data than those of its row" * is_marked
    )


def _in_paper(spec: Spec, method: Method, recipe: str, metric: str, data_set: str) -> str:
    """The published number, beside a recipe on the same data; marked where the method has none."""
    printed = method.in_paper.get(metric, {}).get(data_set, "")
    if not printed or recipe in spec.comparable:
        return printed
    is_homeless = not set(method.recipes) & set(spec.comparable) and recipe == method.recipes[0]
    return f"{printed} {_MARK}" if is_homeless else ""


def _cell(spec: Spec, summary: pd.DataFrame, own: pd.DataFrame, metric: str, data_set: str) -> str:
    found = own[(own["metric"] == metric) & (own["data_set"] == data_set)]
    if found.empty:
        return "–"
    row = found.iloc[0]
    text = number(row["mean"], row["sd"], digits=MEASURES[metric].digits)
    rivals = _rivals(spec, summary, row["recipe"], metric, data_set)
    fair = rivals[rivals["n_runs"] == rivals["n_runs"].max()]  # the others may have had the easier runs
    best = {"lower": fair["mean"].min(), "higher": fair["mean"].max()}.get(MEASURES[metric].better)
    wins = len(fair) > 1 and row.name in fair.index and row["mean"] == best
    return f"**{text}**" if wins else text


def _rivals(spec: Spec, summary: pd.DataFrame, recipe: str, metric: str, data_set: str) -> pd.DataFrame:
    """All that was measured on the same data, references apart."""
    references = [method.name for method in spec.methods if method.reference]
    same = np.array([spec.world(other) == spec.world(recipe) for other in summary["recipe"]], dtype=bool)
    same &= ~summary["method"].isin(references).to_numpy()
    return summary[same & (summary["metric"] == metric) & (summary["data_set"] == data_set)]


def _topics(spec: Spec, rows: pd.DataFrame) -> Iterator[str]:
    shown = rows[rows["metric"].isin(["topics", "ends"]) & (rows["seed"] == "0") & (rows["split"] == "0")]
    for data_set in spec.data_sets:
        if data_set.name in spec.examples:
            listed = "\n".join(f"- {topic}" for topic in spec.examples[data_set.name])
            yield f"## {data_set.name}\n\nThe topics that the paper shows:\n\n{listed}"
        of_data = shown[shown["data_set"] == data_set.name]
        for (method, recipe), found in of_data.groupby(["method", "recipe"], sort=False):
            label = f"{method}" + ("" if recipe == ANY else f", recipe {recipe}")
            lists = dict(zip(found["metric"], found["value"], strict=True))
            yield f"### {data_set.name}: {label}\n\n{_topic_table(lists['topics'], lists.get('ends'))}"


def _topic_table(topics: list[list[str]], ends: list[list[str]] | None) -> str:
    """A row per factor: its strongest features, and where effects have signs, what rises and what falls."""
    columns = ["factor", "strongest features"]
    shown = [[topic] for topic in topics]
    if ends is not None:
        columns += ["rise with it", "fall with it"]
        shown = [[topic, *ends[2 * k : 2 * k + 2]] for k, topic in enumerate(topics)]
    cells = [
        [str(k), *("; ".join(features[:_SHOWN]) for features in lists)]
        for k, lists in enumerate(shown, start=1)
        if any(lists)
    ]
    return markdown_table(columns, cells) if cells else "No factor in use."


def _failures(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Runs that failed, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for row in records(rows[rows["metric"] == FAILED]):
        which = "{method} ({recipe}), {data_set}, seed {seed}, split {split}".format(**row)
        by_reason.setdefault(row["note"], []).append(which)
    return by_reason


def _unsettled(rows: pd.DataFrame) -> Counter[str]:
    """How many runs of each method had a note on a fit that had not settled."""
    notes = rows[(rows["metric"] != FAILED) & (rows["note"] != "")]
    runs = notes.drop_duplicates(subset=list(KEY))
    return Counter(f"{row['method']} ({row['recipe']})" for row in records(runs))
