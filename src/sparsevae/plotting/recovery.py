"""What is found in tables of growing length."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes

from sparsevae.plotting.style import CATEGORIES, MUTED, new_axes, tidy

__all__ = ["plot_power"]

_MEASURES = {
    "right_number": "right number of factors",
    "support": "links (F1)",
    "factors": "factors (rank correlation)",
}


def plot_power(table: pd.DataFrame, *, goal: float = 0.9, ax: Axes | None = None) -> Axes:
    """Recovery of the number of factors, of links and of factors, against the number of rows.

    Parameters
    ----------
    table : DataFrame
        The ``table`` of a `Power` result: a row per number of rows.
    goal : float
        Drawn as a line.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, 5.4, 3.4)
    for (name, label), colour in zip(_MEASURES.items(), CATEGORIES, strict=False):
        ax.plot(table.index, table[name], color=colour, marker="o", markersize=4, linewidth=1.8, label=label)
    ax.axhline(goal, color=MUTED, linewidth=0.9, linestyle=":")
    ax.set_xscale("log")
    ax.set_xticks(list(table.index), [f"{n:,}" for n in table.index])
    ax.minorticks_off()
    ax.set_ylim(-0.03, 1.05)
    ax.set_xlabel("rows")
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    tidy(ax)
    return ax
