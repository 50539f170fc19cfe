"""The README's table of comparison from the committed rows; ``python tools/comparison.py`` writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from sparsevae.reproduction.results import Results
from sparsevae.reproduction.spec import load_spec
from sparsevae.reproduction.tables import current_rows, summarise

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
BEGIN, END = "<!-- comparison: written by tools/comparison.py -->\n", "<!-- end of comparison -->\n"
OURS = "Sparse VAE"
NAMES = {
    "sparse VAE": OURS,
    "oblique": "factor analysis (promax)",
    "varimax": "factor analysis (varimax)",
    "NMF": "NMF",
    "Factor analysis": "factor analysis",
}


def main() -> None:
    """Replace the table between the two marks of the README."""
    path = ROOT / "README.md"
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        sys.exit(f"Expected the marks {BEGIN.strip()!r} and {END.strip()!r} in README.md.")
    path.write_text(before + BEGIN + table() + END + after, "utf-8")


def table() -> str:
    """Three rows in Markdown: recovery, replication, time."""
    replication, seconds = returning()
    rows = [
        (
            "[Recovery](results/synthetic/paper/table.md)",
            "known factors found, factors correlated at 0.8 (DCI, 1 is perfect)",
            recovery(),
            "{:.2f}",
        ),
        (
            "[Replication](results/replication/summary.md)",
            f"factors that come back in another half of the rows, mean of {len(common_tables())} real tables",
            replication,
            "{:.1f}",
        ),
        (
            "[Time](results/replication/summary.md)",
            "CPU seconds for each of these fits",
            {name: seconds[name] for name in replication},
            "{:.1f}",
        ),
    ]
    lines = ["| | what is measured | sparse VAE | others |", "|---|---|---|---|"]
    for title, what, values, form in rows:
        others = ", ".join(f"{name} {form.format(value)}" for name, value in values.items() if name != OURS)
        lines.append(f"| {title} | {what} | **{form.format(values[OURS])}** | {others} |")
    return "\n".join(lines) + "\n"


def recovery() -> dict[str, float]:
    """Mean DCI of each method by default on synthetic data at correlation 0.8, the best first."""
    rows = current_rows(load_spec("synthetic"), "paper", Results(RESULTS / "synthetic" / "paper"))
    rows = rows[(rows["data_set"] == "0.8") & (rows["metric"] == "dci")]
    means = summarise(rows[rows["recipe"].isin(["default", "any"])]).set_index("method")["mean"]
    return {NAMES.get(name, name): value for name, value in means.sort_values(ascending=False).items()}


def returning() -> tuple[dict[str, float], dict[str, float]]:
    """Factors that come back, and CPU seconds, each a mean over the tables that all methods have.

    Other methods have the number of factors at which most of theirs come back on average.
    """
    means = _replication_means()
    means = means[means["table"].isin(common_tables())]
    own = means[means["method"] == "sparse VAE"].assign(n_factors=0)
    others = means[means["method"].isin(NAMES) & (means["method"] != "sparse VAE")]
    every = pd.concat([own, others]).groupby(["method", "n_factors"])[["back", "cpu_seconds"]].mean()
    best = every.sort_values("back", ascending=False).groupby(level="method", sort=False).head(1)
    best.index = [NAMES[method] for method, _ in best.index]
    return best["back"].to_dict(), best["cpu_seconds"].to_dict()


def common_tables() -> list[str]:
    """Tables on which other methods were run at all numbers of factors."""
    others = _replication_means().query("method != 'sparse VAE'")
    counts = others.groupby("table", sort=False)["n_factors"].nunique()
    return list(counts[counts == counts.max()].index)


def _replication_means() -> pd.DataFrame:
    rows = pd.read_csv(RESULTS / "replication" / "rows.csv")
    return rows.groupby(["table", "method", "n_factors"], sort=False).mean(numeric_only=True).reset_index()


if __name__ == "__main__":
    main()
