"""From rows to pages: tables of means, and plots of scores against the factors' correlation."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.recovery.methods import ABLATIONS, METHODS, RIVALS
from benchmarks.recovery.problems import PROBLEMS

__all__ = ["KEY", "MEASURES", "pivots", "summary", "write_pages"]

KEY = ["method", "problem", "seed"]
MEASURES = ["dci", "completeness", "informativeness", "spearman", "support_f1", "anchor_f1", "mse", "score"]
_TITLES = {
    "dci": "DCI disentanglement",
    "spearman": "rank correlation of matched factors",
    "support_f1": "support F1, exact zeros",
    "mse": "held-out squared error",
}
_BOUNDED = ("dci", "spearman", "support_f1")


def write_pages(rows: pd.DataFrame, folder: Path) -> None:
    """``summary.md``, ``recovery.png`` and ``ablations.png`` from what the rows say."""
    ranks = {name: rank for rank, name in enumerate([*METHODS, *PROBLEMS])}
    rows = rows.sort_values(KEY, key=lambda column: column.map(ranks).fillna(column), kind="stable")
    others, ablations = _against(rows, RIVALS), _against(rows, ABLATIONS)
    (folder / "summary.md").write_text(
        _heading(rows)
        + "## The default, and with two known anchors per factor\n\n"
        + _markdown(summary(rows[rows["method"].isin(["default", "known-anchors"])]))
        + _section("Other methods", others, "![scores against the correlation](recovery.png)\n\n")
        + _section(
            "One ingredient left out, or another penalty",
            ablations,
            "`slab` has both rates at 0.001, `lasso` one rate that held-out rows choose, the others are the "
            "default without one of its parts.\n\n"
            "![scores of the ablations](ablations.png)\n\n",
        )
    )
    _plot(others, folder / "recovery.png")
    _plot(ablations, folder / "ablations.png")


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over data sets, and how many of them have the right number of factors."""
    rows = rows.assign(right_count=rows["n_active"] == rows["n_true"])
    grouped = rows.groupby(["method", "problem"], sort=False)
    table = grouped[[*MEASURES, "seconds", "cpu_seconds"]].mean().round(3)
    counts = grouped["right_count"].sum().astype(str) + " of " + grouped.size().astype(str)
    table.insert(0, "right_count", counts)
    return table.reset_index()


def pivots(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """For each measure the means of the methods (rows) at each correlation (columns)."""
    order = list(dict.fromkeys(rows["method"]))
    return {
        measure: rows.pivot_table(measure, "method", "correlation").reindex(order).dropna(how="all")
        for measure in _TITLES
    }


def _against(rows: pd.DataFrame, methods: tuple[str, ...]) -> pd.DataFrame:
    """Rows of the default and of these methods, on the synthetic data sets that all of them have had."""
    rows = rows[rows["problem"].str.startswith("synthetic-") & rows["method"].isin(["default", *methods])]
    rows = rows.assign(correlation=rows["problem"].str.removeprefix("synthetic-").astype(float))
    n_methods = rows["method"].nunique()
    shared = rows.groupby(["problem", "seed"])["method"].transform("nunique") == n_methods
    return rows[shared]


def _section(title: str, rows: pd.DataFrame, text: str) -> str:
    if rows["method"].nunique() < 2:
        return ""
    n_sets = rows.groupby("correlation")["seed"].nunique().max()
    page = f"\n## {title}\n\n{text}Means over {n_sets} data sets per correlation of the true factors.\n"
    for measure, table in pivots(rows).items():
        table.columns = [f"{correlation:g}" for correlation in table.columns]
        title = _TITLES[measure]
        page += f"\n**{title[0].upper()}{title[1:]}**\n\n{_markdown(table.round(3).reset_index())}"
    return page


def _plot(rows: pd.DataFrame, path: Path) -> None:
    """A panel per measure, a line per method: the figures of the paper."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    if rows["method"].nunique() < 2:
        return
    figure, axes = plt.subplots(1, len(_TITLES), figsize=(13, 3.8), layout="constrained")
    for axis, (measure, table) in zip(axes, pivots(rows).items(), strict=True):
        for i, (method, means) in enumerate(table.iterrows()):
            first = method == "default"
            axis.plot(
                means.index,
                means.to_numpy(),
                marker="osv^D<>Pp*"[i % 10],
                color="black" if first else f"C{(i - 1) % 10}",
                linewidth=2.2 if first else 1.2,
                markersize=4,
                zorder=3 if first else 2,
                label=method,
            )
        axis.set(title=_TITLES[measure], xlabel="correlation of the true factors")
        if measure in _BOUNDED:
            axis.set_ylim(0, 1.02)
        else:
            axis.set_yscale("log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _heading(rows: pd.DataFrame) -> str:
    versions = ", ".join(f"{name} {' and '.join(sorted(set(rows[name])))}" for name in ("torch", "machine"))
    return f"""# Recovery of known factors

Means over data sets, measured on rows that were not fitted; `rows.csv` has a row per fit. Made by `python -m
benchmarks.recovery` and `python -m benchmarks.recovery --ablations`, which fit two data sets at a time with
one thread each: `seconds` is the wall clock of a fit on a machine that may have had other work, `cpu_seconds`
what it took of one core.

*default*, *paper* and *authors* are recipes of the sparse VAE; *known-anchors* is the default that was told
two anchors per factor; the others are other methods at their defaults. Problems: *synthetic-ρ*, the paper's
seven features of two factors at correlation ρ, 500 rows; *anchored-ρ*, 60 features of six factors; *noise*,
seven features of none; *large*, 500 features of 20; *counts* and *binary*, words and yes/no answers.
`right_count`: in how many the number of factors was right; `support_f1` and `anchor_f1`: of the links and of
the anchors found. All recipes have the same data here, noise variance 0.5, where the results of `sparsevae
reproduce` give *authors* the 0.25 of the released code.

sparsevae {" and ".join(sorted(set(rows["version"])))}, {versions}.

"""


def _markdown(table: pd.DataFrame) -> str:
    header = "| " + " | ".join(table.columns) + " |\n|" + "---|" * len(table.columns) + "\n"
    return header + "".join(
        "| " + " | ".join("" if v != v else str(v) for v in row) + " |\n"
        for row in table.itertuples(index=False)
    )
