"""How a fit went: the terms of the objective epoch by epoch, and how the mask emptied."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from sparsevae.estimators import SparsityPath
from sparsevae.plotting.style import CATEGORIES, LINE, MUTED, new_axes, room, tidy

if TYPE_CHECKING:
    from sparsevae.estimators.factor_estimator import FactorEstimator

__all__ = ["phase_spans", "plot_history", "plot_sparsity_path"]

_WIDE = 4.6  # inches in which a legend of two columns does not hide the lines
_LETTER = 0.08  # inches of the name of a phase
_TERMS = ("objective", "reconstruction", "kl", "mask_penalty", "noise_penalty", "weight_penalty")


def plot_history(model: FactorEstimator | pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Terms of the objective for each epoch, per sample, with the phases of the fit.

    Terms that are zero throughout are left out. Objectives of different phases have different penalties.

    Parameters
    ----------
    model : estimator with ``history_``, or the data frame itself
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    history = _history(model)
    ax = new_axes(ax, 7.2, 3.6)
    terms = [name for name in _TERMS if name in history and (history[name].fillna(0.0) != 0).any()]
    epochs = np.arange(1, len(history) + 1)
    for name, colour in zip(terms, CATEGORIES, strict=False):
        values = history[name].to_numpy(dtype=float)
        ax.plot(epochs, values, color=colour, linewidth=1.6, label=name.replace("_", " "))
    if "validation" in history and history["validation"].notna().any():
        held_out = history["validation"].to_numpy(dtype=float)
        ax.plot(
            epochs, -held_out, color=MUTED, linewidth=1.2, linestyle="--", label="held-out bound, negative"
        )
    _limit_to_the_settled_range(ax, history, terms)
    _phases(ax, history)
    ax.set_xlabel("epoch")
    ax.set_ylabel("nats per sample")
    legend = partial(ax.legend, frameon=False, fontsize=8, labelcolor="#3a424b")
    if room(ax)[0] < _WIDE:
        legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        legend(loc="upper right", ncols=2)
    tidy(ax)
    return ax


def plot_sparsity_path(
    source: SparsityPath | FactorEstimator | pd.DataFrame, *, ax: Axes | None = None
) -> Axes:
    """How many entries of the mask are not zero, along the spike rate or along the epochs of a fit.

    Parameters
    ----------
    source : SparsityPath, estimator with ``history_``, or its data frame
        From `sparsity_path`: the non-zeros at each rate and the held-out score beside them. From a fit: the
        non-zeros and the active factors at each epoch.
    ax : Axes, optional

    Returns
    -------
    Axes
        Of the non-zeros; what is beside them is on a twin at its right.
    """
    ax = new_axes(ax, 7.2, 3.2)
    if isinstance(source, SparsityPath):
        twin = _along_rates(ax, source)
    else:
        twin = _along_epochs(ax, _history(source))
    ax.set_ylim(0, None)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set_ylabel("non-zero links", color=LINE)
    tidy(ax)
    tidy(twin, sides=("top", "left", "bottom"))
    return ax


def phase_spans(history: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Runs of epochs in one phase: name, first and last epoch, counted from 1."""
    if "phase" not in history or not len(history):
        return []
    names = history["phase"].astype(str).to_numpy()
    starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])
    ends = np.r_[starts[1:], len(names)]
    return [(names[a], int(a) + 1, int(b)) for a, b in zip(starts, ends, strict=True)]


def _along_rates(ax: Axes, path: SparsityPath) -> Axes:
    steps = path.table
    rates = steps["multiple"].to_numpy(dtype=float)
    ax.step(rates, steps["n_nonzero"], color=LINE, linewidth=1.8, where="mid")
    ax.set_xscale("log")
    ax.set_xlabel("spike rate, in multiples of the default")
    ax.axvline(rates[path.chosen], color=MUTED, linewidth=1.0, linestyle=":")
    ax.text(
        rates[path.chosen], 1.01, "chosen", transform=ax.get_xaxis_transform(), fontsize=8,
        ha="center", va="bottom", color=MUTED,
    )  # fmt: skip
    twin = ax.twinx()
    twin.errorbar(
        rates, steps["score"], yerr=steps["standard_error"].fillna(0.0), capsize=2,
        color=CATEGORIES[1], linewidth=1.4, marker="o", markersize=3.5,
    )  # fmt: skip
    twin.set_ylabel("held-out score, nats", color=CATEGORIES[1])
    return twin


def _along_epochs(ax: Axes, history: pd.DataFrame) -> Axes:
    epochs = np.arange(1, len(history) + 1)
    ax.step(epochs, history["n_nonzero"], color=LINE, linewidth=1.8, where="mid")
    _phases(ax, history)
    ax.set_xlabel("epoch")
    twin = ax.twinx()
    twin.step(epochs, history["n_active"], color=CATEGORIES[1], linewidth=1.4, linestyle="--", where="mid")
    twin.set_ylim(0, max(1.0, 1.25 * float(history["n_active"].max())))
    twin.set_ylabel("active factors", color=CATEGORIES[1])
    twin.yaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    return twin


def _history(model: FactorEstimator | pd.DataFrame) -> pd.DataFrame:
    if isinstance(model, pd.DataFrame):
        return model
    check_is_fitted(model, "history_")
    return model.history_


def _limit_to_the_settled_range(ax: Axes, history: pd.DataFrame, terms: list[str]) -> None:
    """The first epochs of a fit are off the scale of all others: they may leave the picture."""
    settled = history[terms].iloc[min(10, len(history) // 4) :].to_numpy(dtype=float)
    if settled.size and np.isfinite(settled).any():
        low, high = np.nanmin(settled), np.nanmax(settled)
        room = 0.12 * max(high - low, 1e-9)
        ax.set_ylim(low - room, high + 2.5 * room)


def _phases(ax: Axes, history: pd.DataFrame) -> None:
    spans, width = phase_spans(history), room(ax)[0]
    for i, (name, first, last) in enumerate(spans):
        if i % 2:
            ax.axvspan(first - 0.5, last + 0.5, color="#f3f5f7", zorder=0, linewidth=0)
        if (last - first + 1) / len(history) * width >= _LETTER * len(name):
            ax.text(
                (first + last) / 2,
                1.01,
                name,
                transform=ax.get_xaxis_transform(),
                ha="center",
                va="bottom",
                fontsize=8,
                color=MUTED,
            )
    ax.set_xlim(0.5, max(len(history), 1) + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
