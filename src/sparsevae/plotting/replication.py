"""Which factors came back in other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from sparsevae.metrics.replication import RETURNED
from sparsevae.plotting.style import CATEGORIES, DATA, LINE, MUTED, new_axes, room, short, spaced, tidy

if TYPE_CHECKING:
    from sparsevae.replication import Replication

__all__ = ["picture_size", "plot_replication"]

_FEATURES = 3  # named under each factor


def plot_replication(replication: Replication, *, ax: Axes | None = None) -> Axes:
    """How well fits to other rows show each factor, and in how many splits it came back.

    Parameters
    ----------
    replication : Replication
        From `sparsevae.replicate`.
    ax : Axes, optional

    Returns
    -------
    Axes
        A row per factor: a dot for the rank correlation with its match in each fit to a part of the rows, a
        bar up to their mean, blue where the factor came back in every split.
    """
    factors, matches = replication.factors, replication.matches
    n_factors = len(factors)
    ax = new_axes(ax, *picture_size(n_factors))
    rows, rng = np.arange(n_factors), np.random.default_rng(0)
    always = (factors["returned"] == factors["n_splits"]).to_numpy()
    colours = [LINE if back else DATA for back in always]
    ax.barh(rows, factors["correlation"], color=colours, alpha=0.28, height=0.62, zorder=1)
    for k, name in enumerate(factors["factor"]):
        values = matches.loc[matches["factor"] == name, "correlation"].to_numpy()
        ax.scatter(
            values, k + rng.uniform(-0.18, 0.18, len(values)), s=11, color=colours[k], linewidths=0, zorder=2
        )
    ax.axvline(RETURNED, color=CATEGORIES[1], linewidth=0.9, linestyle=":", zorder=0)
    ax.text(
        RETURNED, 1.01, f"back from {RETURNED:g}", transform=ax.get_xaxis_transform(), fontsize=7,
        ha="center", va="bottom", color=MUTED,
    )  # fmt: skip
    labelled = spaced(n_factors, room(ax)[1])
    ax.set_yticks(labelled, [_label(factors.iloc[k]) for k in labelled], fontsize=8)
    for k in labelled:
        row = factors.iloc[k]
        ax.text(1.03, k, f"{row['returned']} of {row['n_splits']}", fontsize=8, va="center", color=colours[k])
    ax.text(1.03, 1.01, "splits", transform=ax.get_xaxis_transform(), fontsize=7, va="bottom", color=MUTED)
    ax.set_ylim(max(n_factors, 1) - 0.4, -0.6)
    ax.set_xlim(0.0, 1.02)
    ax.set_xlabel("rank correlation in fits to parts of the rows (dots) and their mean (bar)", fontsize=8)
    ax.set_title(_title(replication), fontsize=9, loc="left", pad=16)
    ax.tick_params(axis="x", labelsize=8)
    tidy(ax)
    return ax


def picture_size(n_factors: int) -> tuple[float, float]:
    """Width and height in inches that suit this many factors."""
    return 6.4, float(np.clip(1.3 + 0.34 * n_factors, 2.0, 12.0))


def _label(row: Any) -> str:
    strongest = ", ".join(short(name, 14) for name in row["features"][:_FEATURES])
    return f"{short(row['factor'], 18)}: {strongest}"


def _title(replication: Replication) -> str:
    """The counts of each method."""
    means = replication.means.iterrows()
    counts = [
        f"{name} {row['back']:.3g} of {max(row['factors_a'], row['factors_b']):.3g}" for name, row in means
    ]
    between = "studies" if replication.studies else "halves"
    return f"Come back between {between}: {', '.join(counts)}"
