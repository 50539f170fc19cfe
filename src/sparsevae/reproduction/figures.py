"""Figures from rows: a metric against the data sets' level, and the example with known curves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from sparsevae.aliases import Parameters
from sparsevae.comparison.measures import MEASURES
from sparsevae.datasets import Dataset, make_sparse_factors
from sparsevae.datasets.curves import Curve
from sparsevae.metrics import match_codes
from sparsevae.persistence import replacing
from sparsevae.reproduction.results import run_of
from sparsevae.reproduction.spec import ANY, RECIPES, Spec
from sparsevae.reproduction.tables import records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_LOGARITHMIC = ("mse",)  # methods that fail are far from those that do not
_BAND = (0.1, 0.9)  # shares of runs below the shaded band's edges


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
    with replacing(path) as partial:  # without a date in it, the same rows give the same file
        figure.savefig(partial, dpi=130, bbox_inches="tight", metadata={"Software": None})
    return [path]


def _blank(figsize: tuple[float, float]) -> Figure:
    # Imported when a figure is drawn: everything else does without matplotlib, which takes its time to load.
    from matplotlib.figure import Figure

    return Figure(figsize=figsize, layout="constrained")


def _curves(spec: Spec, scale: str, rows: pd.DataFrame) -> Figure:
    """A panel per metric and recipe: mean over runs, and where the middle eight tenths of them lie.

    Not standard deviations: one fit that has failed would spread them beyond what the metric can be.
    """
    numbers = rows[rows["metric"].isin(spec.figure_metrics) & rows["value"].notna()]
    numbers = numbers.assign(value=numbers["value"].astype(float), level=numbers["data_set"].astype(float))
    metrics = [metric for metric in spec.figure_metrics if (numbers["metric"] == metric).any()]
    recipes = [recipe for recipe in RECIPES if (numbers["recipe"] == recipe).any()] or [ANY]
    figure = _blank(figsize=(3.4 * len(recipes) + 1.6, 3.0 * len(metrics) + 0.4))
    grid = figure.subplots(len(metrics), len(recipes), squeeze=False, sharex=True, sharey="row")
    colours = {method.name: f"C{number}" for number, method in enumerate(spec.methods)}
    for axes, metric in zip(grid, metrics, strict=True):
        for axis, recipe in zip(axes, recipes, strict=True):
            # A method that is the same in every recipe is shown wherever the data are its own.
            shown = {recipe, ANY} if spec.world(recipe) == spec.world(ANY) else {recipe}
            of_panel = numbers[(numbers["metric"] == metric) & numbers["recipe"].isin(shown)]
            for name, colour in colours.items():
                _curve(axis, of_panel[of_panel["method"] == name], name, colour)
            axis.grid(alpha=0.2)
            axis.set_yscale("log" if metric in _LOGARITHMIC else "linear")
        axes[0].set_ylabel(MEASURES[metric].title)
    for axis, recipe in zip(grid[0], recipes, strict=True):
        axis.set_title(f"recipe {recipe}")
    for axis in grid[-1]:
        axis.set_xlabel(spec.x_title)
    lines = {line.get_label(): line for axis in grid.flat for line in axis.get_lines()}
    named = [name for name in colours if name in lines]
    figure.legend(
        [lines[name] for name in named],
        named,
        title="mean, and the middle\neight tenths of runs",
        loc="outside right center",
        frameon=False,
    )
    return figure


def _curve(axis: Axes, own: pd.DataFrame, label: str, colour: str) -> None:
    """One method over the levels of the data sets."""
    if own.empty:
        return
    values = own.groupby("level")["value"]
    mean = values.mean()
    axis.plot(mean.index, mean, marker="o", markersize=3, color=colour, label=label)
    low, high = (values.quantile(share) for share in _BAND)
    axis.fill_between(mean.index, low, high, color=colour, alpha=0.12, linewidth=0)


def _example(spec: Spec, scale: str, rows: pd.DataFrame) -> Figure:
    """Features against factors, with the true curves; true and estimated mask."""
    data: dict[tuple[str, ...], Parameters] = {run.key: run.data_parameters for run in spec.runs(scale)}
    places = {key: place for place, key in enumerate(data)}  # of the result's runs, whichever ended first
    panels = sorted(records(rows[rows["metric"] == "codes"]), key=lambda row: places[run_of(row)])
    figure = _blank(figsize=(14, 2.1 * (len(panels) + 1) + 0.6))
    grid = figure.add_gridspec(len(panels) + 1, 7)
    shown = [("true", np.asarray(make_sparse_factors(2, random_state=0).mask))]
    masks = {run_of(row): row["value"] for row in records(rows[rows["metric"] == "mask"])}
    for number, row in enumerate(panels):
        parameters = data[run_of(row)]
        known = make_sparse_factors(random_state=int(row["seed"]), **parameters)
        axes = [figure.add_subplot(grid[number, j]) for j in range(7)]
        codes = np.array(row["value"])
        _against_factors(axes, known, codes, f"{row['method']}\n{row['recipe']}")
        if masks.get(run_of(row)) is not None:
            mask = _in_order(np.array(masks[run_of(row)]), codes, known)
            shown.append((f"{row['method']}, {row['recipe']}", mask))
    for position, (title, mask) in enumerate(shown[:7]):
        axis = figure.add_subplot(grid[len(panels), position])
        # Entries compare within a row only; white is an exact zero.
        size = np.abs(mask) / np.abs(mask).max(1, keepdims=True).clip(1e-30)
        axis.imshow(np.ma.masked_equal(size, 0.0), cmap="Blues", vmin=-0.4, vmax=1, aspect="auto")
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
        curve = data.curves[j]
        assert isinstance(curve, Curve)
        (term,) = curve.terms
        shape = curve(estimate) / term.coefficient
        slope = shape @ data.X[:, j] / max(float(shape @ shape), 1e-12)
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
