"""The rivals' results as Markdown: means over splits, differences within splits, ratios of times."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.rivals.epochs import WANTED
from benchmarks.speed.results import Results

__all__ = ["markdown"]

MEASURES = {"nll": "NLL", "nll_mean": "NLL at the posterior mean", "nll_bound": "minus ELBO"}
TITLES = {
    "plain": "plain PyTorch",
    "paper": '`VAE(recipe="paper")`',
    "default": "`VAE`",
}
DATA = {"peerread": "PeerRead", "zeisel": "Zeisel", "movielens": "MovieLens 1M"}


def markdown(results: Results) -> str:
    """Both tables, with what they mean; empty where nothing has been measured."""
    parts = ["# The rivals, measured\n"]
    frame = results.frame("reconstruction")
    if not frame.empty:
        parts += [_reconstruction(frame[frame["rows"] == rows], rows) for rows in frame["rows"].unique()]
    times = results.frame("epochs")
    if not times.empty:
        parts.append(_epochs(times))
    return "\n".join(parts)


def _reconstruction(frame: pd.DataFrame, rows: str) -> str:
    where = "held-out rows" if rows == "test" else "a fifth of the training rows, to choose settings by"
    lines = [
        f"## Reconstruction of {where}\n",
        "Each row of data is charged -log p(x | code), at a posterior draw (as the paper measures it) or at",
        "the posterior mean; the ELBO also charges the code. Lower is better. Mean over splits, and in",
        "brackets the mean difference from the plain VAE on the same split with its standard error.",
        "The plain VAE and the literal recipe have the paper's settings, with three hidden layers; `VAE` by",
        "default has its sizes and batches, and a learning rate and epochs of its own. The results of",
        "`sparsevae reproduce` have two hidden layers and other rows: compare within this table only.\n",
        "| data | method | splits | " + " | ".join(MEASURES.values()) + " |",
        "|---|---|---|" + "---|" * len(MEASURES),
    ]
    for data, part in frame.groupby("data", sort=False):
        values = part.pivot(index="seed", columns="method", values=list(MEASURES)).dropna()  # shared splits
        for method, title in TITLES.items():
            if method not in values["nll"]:
                continue
            cells = [_cell(values[measure], method) for measure in MEASURES]
            n_splits = int(values["nll"][method].notna().sum())
            lines.append(f"| {DATA[str(data)]} | {title} | {n_splits} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(values: pd.DataFrame, method: str) -> str:
    text = f"{values[method].mean():.2f}"
    if method == "plain" or "plain" not in values:
        return text
    difference = (values[method] - values["plain"]).dropna()
    error = difference.std() / np.sqrt(len(difference)) if len(difference) > 1 else np.nan
    return f"{text} ({difference.mean():+.2f} ± {error:.2f})"


def _epochs(frame: pd.DataFrame) -> str:
    lines = [
        "## An epoch with 500 groups\n",
        "PeerRead at the paper's sizes, a generator network per word; epochs of both methods in turn,",
        f"medians. An epoch of the OI-VAE is to cost at most {WANTED:g} epochs of the sparse VAE.\n",
        "| clock | threads | rows | method | ratio to the sparse VAE |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.clock} | {row.threads} | {row.n_rows} | {row.method} | {row.ratio:.2f} |"
        for row in frame.itertuples()
    ]
    return "\n".join(lines) + "\n"
