"""One picture of all results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.speed.results import WANTED, Results

__all__ = ["draw"]

BARS = {
    "tensor": "one big tensor",
    "float32": "float32",
    "bfloat16": "bfloat16",
    "anchors": "80 % anchors",
    "empty": "80 % empty rows",
    "replicates": "8 side by side",
}
COLOURS = dict(
    zip(BARS, ("0.75", "tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:cyan"), strict=True)
)


def draw(results: Results, path: Path) -> None:
    """Ratios to the loop, rates against a matrix product, growth with features, whole fits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 7.5), constrained_layout=True)
    parts = ((_ratios, "steps"), (_rates, "steps"), (_features, "features"), (_fits, "fits"))
    for axis, (part, name) in zip(axes.flat, parts, strict=True):
        frame = results.frame(name)
        if frame.empty:
            axis.set_axis_off()
        else:
            part(axis, frame)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _ratios(axis: Any, frame: pd.DataFrame) -> None:
    frame = frame[(frame["n_hidden"] == 2) & frame["candidate"].isin(BARS)]
    shapes = list(dict.fromkeys(frame["shape"]))
    width = 0.8 / len(BARS)
    for i, (candidate, label) in enumerate(BARS.items()):
        chosen = frame[frame["candidate"] == candidate].set_index("shape")["ratio_to_loop"].reindex(shapes)
        place = np.arange(len(shapes)) + (i - (len(BARS) - 1) / 2) * width
        axis.bar(place, chosen, width, color=COLOURS[candidate], label=label)
        wanted = [WANTED.get((shape, candidate), np.nan) for shape in shapes]
        axis.scatter(place, wanted, marker="_", s=90, color="black", zorder=3)
    axis.axhline(1.0, color="0.3", linewidth=0.8)
    axis.set(
        yscale="log",
        xticks=range(len(shapes)),
        xticklabels=shapes,
        ylabel="times as fast as the literal loop",
    )
    axis.set_title("Training step, 2 hidden layers (black marks: wanted)")
    axis.legend(frameon=False, fontsize=8, ncols=2)


def _rates(axis: Any, frame: pd.DataFrame) -> None:
    frame = frame[frame["candidate"].isin(["float32", "bfloat16"]) & (frame["shape"] != "synthetic")]
    cases = list(dict.fromkeys(zip(frame["shape"], frame["n_hidden"], strict=True)))
    for i, candidate in enumerate(("float32", "bfloat16")):
        chosen = frame[frame["candidate"] == candidate].set_index(["shape", "n_hidden"])["of_cached_matmul"]
        place = np.arange(len(cases)) + (i - 0.5) * 0.35
        axis.bar(place, 100 * chosen.reindex(cases), 0.35, color=COLOURS[candidate], label=candidate)
    axis.axhline(65, color="black", linewidth=0.8, linestyle="--")
    labels = [f"{shape}\n{n_hidden} hidden" for shape, n_hidden in cases]
    axis.set(xticks=range(len(cases)), ylabel="% of a matrix product's rate", ylim=(0, 100))
    axis.set_xticklabels(labels, fontsize=6.5)
    axis.set_title("Rate of a whole step against products that stay in the cache")
    axis.legend(frameon=False, fontsize=8)


def _features(axis: Any, frame: pd.DataFrame) -> None:
    full = frame[frame["n_features"] == frame["features_per_step"]]
    some = frame[frame["n_features"] != frame["features_per_step"]]
    axis.plot(full["n_features"], full["milliseconds"], marker="o", label="all features")
    axis.scatter(
        some["n_features"],
        some["milliseconds"],
        marker="s",
        color="tab:red",
        label="2,000 per step",
        zorder=3,
    )
    first = full.iloc[0]
    line = first["milliseconds"] * full["n_features"] / first["n_features"]
    axis.plot(full["n_features"], line, color="0.5", linestyle="--", label="in proportion")
    axis.set(xscale="log", yscale="log", xlabel="features", ylabel="ms per step")
    axis.set_title("Growth with the number of features")
    axis.legend(frameon=False, fontsize=8)


def _fits(axis: Any, frame: pd.DataFrame) -> None:
    problems = list(dict.fromkeys(frame["problem"]))
    rows = np.arange(len(problems))
    for i, recipe in enumerate(dict.fromkeys(frame["recipe"])):
        chosen = frame[frame["recipe"] == recipe].set_index("problem")["seconds"].reindex(problems)
        axis.barh(rows + (i - 0.5) * 0.35, chosen, 0.35, label=f'recipe "{recipe}"')
    about = frame.drop_duplicates("problem").set_index("problem").loc[problems]
    axis.scatter(about["aim"], rows, marker="|", s=300, color="black", label="wanted", zorder=3)
    axis.scatter(
        60 * about["paper_minutes"], rows, marker="x", color="tab:red", label="the paper's own time", zorder=3
    )
    axis.set(xscale="log", yticks=rows, yticklabels=problems, xlabel="seconds")
    axis.set_title("Whole fits")
    axis.legend(frameon=False, fontsize=8)
