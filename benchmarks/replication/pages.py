"""From rows to a page: what comes back of each table, ours beside the best of the others, and a picture."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

__all__ = ["summary", "write_pages"]

OURS = "sparse VAE"
_ACROSS = 4  # panels of the picture in a row, so that it can be read at the width of a page
_NUMBERS = ["factors_a", "back", "match", "overlap", "held_out", "cpu_seconds"]
_HEAD = """# Which factors come back in another half of the rows

Two disjoint halves of the rows, a fit on each, factors matched on all rows; a factor comes back if the rank
correlation with its match is at least 0.9. It counts if it explains at least 5 % of the variance of at least
three features. Means over splits. `python -m benchmarks.replication` makes the rows (`rows.csv`),
[the notes](../../docs/research/replication.md) say what was learned.

The sparse VAE by its defaults chooses its number of factors; *others* are the methods of the picture at 5, 7,
10, 15 and 20 factors, of which the best at any number stands here, a choice that a user cannot make. VAE and
OI-VAE have the largest number that the table allows, the linear form of the sparse VAE chooses its own.
CPU seconds are of a machine with other work, where they are up to twice those of a quiet one
([ratios](../fits/summary.md)).
*Held-out variance*: what a regression of the features on the codes, fitted to one half, explains of the
other.

![factors that come back](replication.png)

"""

_MORE = {
    "seeds": """
## Another seed, the same rows

Default fits of the first half of split 0 with five seeds, each compared with that of seed 0 on all rows:
means of four comparisons. `python -m benchmarks.replication.seeds` makes the rows (`seeds.csv`).

""",
    "cells": """
## Cell types

A multinomial regression on factors of all cells, found without labels: cells whose type is told, five
stratified folds, five seeds of the folds. At most twenty factors of raw counts of the 2,000 most variable
genes (negative binomial; PCA sees them log-normalised), and of Zeisel's 558 genes. `python -m
benchmarks.replication.cells` makes the rows (`cells.csv`).

""",
}
"""Sections of the page for other rows beside it."""


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over splits of each table, method and number of factors."""
    return rows.groupby(["table", "method", "n_factors"], sort=False)[_NUMBERS].mean().reset_index()


def write_pages(rows: pd.DataFrame, folder: Path) -> None:
    """``summary.md`` and ``replication.png`` from what the rows say."""
    means = summary(rows)
    page = (
        _HEAD
        + "| table | method | come back | of | match | overlap | held-out variance | CPU s |\n"
        + "|---|---|---|---|---|---|---|---|\n"
    )
    for table, some in means.groupby("table", sort=False):
        own, others = some[some["method"] == OURS], some[~some["method"].str.startswith(OURS)]
        page += _line(str(table), own) + _line("", _best(others), named=True)
    for name, text in _MORE.items():
        path = folder / f"{name}.csv"
        if path.exists():
            found = pd.read_csv(path)
            if name == "seeds":
                found = (
                    found.groupby("table", sort=False)
                    .mean(numeric_only=True)
                    .drop(columns="seed")
                    .reset_index()
                )
            page += text + _table(found.round(3))
    page += "\n## All means\n\n" + _table(means.round(2))
    (folder / "summary.md").write_text(page)
    _plot(means, folder / "replication.png")


def _table(found: pd.DataFrame) -> str:
    lines = ["| " + " | ".join(found.columns) + " |", "|---" * len(found.columns) + "|"]
    for row in found.itertuples(index=False):
        lines.append("| " + " | ".join("–" if value != value else str(value) for value in row) + " |")
    return "\n".join(lines) + "\n"


def _best(means: pd.DataFrame) -> pd.DataFrame:
    return means.sort_values(["back", "match"], ascending=False).head(1)


def _line(table: str, means: pd.DataFrame, *, named: bool = False) -> str:
    if means.empty:
        return ""
    row = means.iloc[0]
    method = f"{row['method']}, {row['n_factors']} factors" if named else row["method"]
    return (
        f"| {table} | {method} | **{row['back']:.1f}** | {row['factors_a']:.1f} | {row['match']:.2f} | "
        f"{row['overlap']:.2f} | {_number(row['held_out'])} | {row['cpu_seconds']:.1f} |\n"
    )


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"  # of rows that are older than the column


def _plot(means: pd.DataFrame, path: Path) -> None:
    """Factors that come back against the number of factors, a panel per table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tables = list(dict.fromkeys(means["table"]))
    n_rows = -(-len(tables) // _ACROSS)
    figure, grid = plt.subplots(n_rows, _ACROSS, figsize=(2.3 * _ACROSS, 2.6 * n_rows + 0.4), squeeze=False)
    axes = grid.ravel()
    for axis in axes[len(tables) :]:
        axis.set_axis_off()
    methods = [m for m in dict.fromkeys(means["method"]) if m != OURS]
    for axis, table in zip(axes, tables, strict=False):
        some = means[means["table"] == table]
        for number, method in enumerate(methods):
            line = some[some["method"] == method].sort_values("n_factors")
            at = line["factors_a"] if method.startswith(OURS) else line["n_factors"]
            axis.plot(at, line["back"], color=f"C{number}", lw=1, marker=".", label=method)
        own = some[some["method"] == OURS]
        axis.plot(own["factors_a"], own["back"], "k*", ms=13, label=OURS)
        axis.set_title(table, fontsize=9)
        axis.set_xlabel("factors")
        axis.margins(0.12)
        axis.set_ylim(bottom=0)
    for row in grid:
        row[0].set_ylabel("come back")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=-(-len(labels) // 2), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)
