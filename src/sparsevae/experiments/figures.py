"""Figures from rows: a metric against the data sets' level, and the example with known curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sparsevae.datasets import Dataset, make_sparse_factors
from sparsevae.experiments.measures import MEASURES
from sparsevae.experiments.results import run_of
from sparsevae.experiments.spec import ANY, Spec
from sparsevae.experiments.tables import records, summarise
from sparsevae.metrics import match_codes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_STYLES = {"default": "-", "paper": "--", "authors": ":", ANY: "-."}


def draw(spec: Spec, scale: str, rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw the figure of a result, if it has one and there are rows for it.

    Parameters
    ----------
    spec : Spec
    scale : str
    rows : DataFrame
        From `tables.current_rows`.
    folder : path
        Where the picture goes.

    Returns
    -------
    list of Path
    """
    shown = {"curves": spec.figure_metrics, "example": ("codes",)}.get(spec.figure, ())
    if not rows.loc[rows["value"].notna(), "metric"].isin(shown).any():
        return []
    figure = _FIGURES[spec.figure](spec, scale, rows)
    path = folder / f"{spec.name}.png"
    # Without a date in it, the same rows give the same file.
    figure.savefig(path, dpi=130, bbox_inches="tight", metadata={"Software": None})
    return [path]


def _blank(figsize: tuple[float, float]) -> Figure:
    # Imported when a figure is drawn: everything else does without matplotlib, which takes its time to load.
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained")


def _curves(spec: Spec, scale: str, rows: pd.DataFrame) -> Figure:
    """A panel per metric: mean over data sets, with one standard deviation on either side."""
    summary = summarise(rows)
    metrics = [metric for metric in spec.figure_metrics if (summary["metric"] == metric).any()]
    figure = _blank(figsize=(4.6 * len(metrics) + 1.8, 3.8))
    axes = figure.subplots(1, len(metrics), squeeze=False)[0]
    colours = {method.name: f"C{number}" for number, method in enumerate(spec.methods)}
    for axis, metric in zip(axes, metrics, strict=True):
        for method in spec.methods:
            for reading in method.readings:
                own = summary[
                    (summary["metric"] == metric)
                    & (summary["method"] == method.name)
                    & (summary["reading"] == reading)
                ]
                if own.empty:
                    continue
                x = own["data_set"].astype(float).to_numpy()
                order = np.argsort(x)
                mean, sd = own["mean"].to_numpy()[order], own["sd"].to_numpy()[order]
                label = method.name if reading == ANY else f"{method.name}, {reading}"
                style = {"color": colours[method.name], "linestyle": _STYLES[reading]}
                axis.plot(x[order], mean, marker="o", markersize=3, label=label, **style)
                axis.fill_between(x[order], mean - sd, mean + sd, color=colours[method.name], alpha=0.08)
        axis.set(xlabel=spec.x_title, title=MEASURES[metric].title)
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small", frameon=False)
    return figure


def _example(spec: Spec, scale: str, rows: pd.DataFrame) -> Figure:
    """Features against factors, with the true curves; true and estimated mask."""
    data: dict[tuple[str, ...], Any] = {run.key: run.data_parameters for run in spec.runs(scale)}
    panels = records(rows[rows["metric"] == "codes"])
    figure = _blank(figsize=(14, 2.1 * (len(panels) + 1) + 0.6))
    grid = figure.add_gridspec(len(panels) + 1, 7)
    shown = [("true", np.asarray(make_sparse_factors(2, random_state=0).mask))]
    masks = {run_of(row): row["value"] for row in records(rows[rows["metric"] == "mask"])}
    for number, row in enumerate(panels):
        parameters = data[run_of(row)]
        known = make_sparse_factors(random_state=int(row["seed"]), **parameters)
        axes = [figure.add_subplot(grid[number, j]) for j in range(7)]
        codes = np.array(row["value"])
        _against_factors(axes, known, codes, f"{row['method']}\n{row['reading']}")
        if masks.get(run_of(row)) is not None:
            mask = _in_order(np.array(masks[run_of(row)]), codes, known)
            shown.append((f"{row['method']}, {row['reading']}", mask))
    for position, (title, mask) in enumerate(shown[:7]):
        axis = figure.add_subplot(grid[len(panels), position])
        size = np.abs(mask).max() or 1.0
        axis.imshow(np.abs(mask) / size, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axis.set(title=f"mask, {title}", xlabel="factor", xticks=[], yticks=range(7))
        axis.set_yticklabels([f"$x_{j + 1}$" for j in range(7)], fontsize="small")
        axis.title.set_fontsize("small")
    return figure


def _against_factors(axes: list[Axes], data: Dataset, codes: np.ndarray, label: str) -> None:
    """Each feature against the code that stands for its first factor."""
    assert data.mask is not None
    assert data.curves is not None
    estimate = _matched(codes, data)
    for j, axis in enumerate(axes):
        k = int(np.flatnonzero(data.mask[j])[0])
        axis.set(title=f"$x_{j + 1}$: {data.curves[j]}", xlabel=f"factor for z{k}", yticks=[])
        axis.title.set_fontsize("small")
        if j == 0:
            axis.set_ylabel(label, fontsize="small")
        code = estimate[:, k]
        axis.scatter(code, data.X[:, j], s=2, color="0.6", linewidths=0)
        if data.mask[j].sum() == 1:
            at = np.zeros((50, estimate.shape[1]))
            at[:, k] = np.linspace(code.min(), code.max(), 50)
            axis.plot(at[:, k], data.curves[j](at), color="C1", linewidth=1.2)
        (term,) = data.curves[j].terms
        shape = data.curves[j](estimate) / term.coefficient
        slope = shape @ data.X[:, j] / max(shape @ shape, 1e-12)
        text = f"{slope:.2f} for {term.coefficient:g}"
        axis.text(0.03, 0.9, text, transform=axis.transAxes, fontsize="x-small")


def _in_order(mask: np.ndarray, codes: np.ndarray, data: Dataset) -> np.ndarray:
    """A mask whose first columns are those of the factors that stand for the true ones, in their order."""
    assert data.factors is not None
    matched = sorted(match_codes(codes, data.factors), key=lambda pair: pair[1])
    first = [int(code) for code, _ in matched]
    return mask[:, [*first, *(k for k in range(mask.shape[1]) if k not in first)]]


def _matched(codes: np.ndarray, data: Dataset) -> np.ndarray:
    """Codes in the place and with the sign of the factors that they stand for, in standard units."""
    assert data.factors is not None
    estimate = np.zeros_like(data.factors)
    for code, k in match_codes(codes, data.factors):
        values = codes[:, code] - codes[:, code].mean()
        if values.std() > 0:
            sign = np.sign(values @ data.factors[:, k]) or 1.0
            estimate[:, k] = sign * values / values.std()
    return estimate


_FIGURES: dict[str, Callable[[Spec, str, pd.DataFrame], Figure]] = {"curves": _curves, "example": _example}
