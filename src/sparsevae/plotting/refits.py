"""Which factors and which links came back over refits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from sparsevae.plotting.style import CATEGORIES, LINE, MUTED, new_axes, room, short, spaced, tidy

if TYPE_CHECKING:
    from sparsevae.identifiability import Stability

__all__ = ["plot_stability"]


def plot_stability(stability: Stability, *, ax: Axes | None = None) -> Axes:
    """Share of the refits in which each factor returned, over the selection probabilities of its links.

    Parameters
    ----------
    stability : Stability
        From `sparsevae.stability`.
    ax : Axes, optional

    Returns
    -------
    Axes
        A row per factor: a bar up to its reproducibility, and a dot for each link that at least one refit
        selected.
    """
    share = stability.reproducibility
    n_factors = len(share)
    ax = new_axes(ax, 6.4, float(np.clip(1.0 + 0.3 * n_factors, 1.8, 9.0)))
    rows = np.arange(n_factors)
    ax.barh(rows, share.to_numpy(), color=LINE, alpha=0.28, height=0.62, zorder=1)
    rng = np.random.default_rng(0)
    chosen = stability.selection_probability.to_numpy()
    for k in rows:
        probabilities = chosen[:, k][chosen[:, k] > 0]
        jitter = rng.uniform(-0.24, 0.24, len(probabilities))
        ax.scatter(probabilities, k + jitter, s=7, color=LINE, alpha=0.55, linewidths=0, zorder=2)
    for threshold, words in ((0.5, "weak below"), (0.8, "identified from")):
        ax.axvline(threshold, color=CATEGORIES[1], linewidth=0.9, linestyle=":", zorder=0)
        ax.text(
            threshold, 1.01, f"{words} {threshold:.0%}", transform=ax.get_xaxis_transform(), fontsize=7,
            ha="center", va="bottom", color=MUTED,
        )  # fmt: skip
    shown = spaced(n_factors, room(ax)[1])
    ax.set_yticks(shown, [short(share.index[k], 18) for k in shown])
    ax.set_ylim(n_factors - 0.4, -0.6)
    ax.set_xlim(0.0, 1.02)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    refits = len(stability.refits)
    what = "other seeds" if stability.how == "seed" else "bootstraps"
    ax.set_xlabel(f"share of {refits} refits on {what}: factor (bar), links (dots)")
    tidy(ax)
    return ax
