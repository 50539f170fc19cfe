"""Path diagram: features, factors, the links between them, and the correlations of the factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch
from sklearn.utils.validation import check_is_fitted

from sparsevae.plotting.style import CATEGORIES, LINE, MUTED, new_axes, short
from sparsevae.validation import check_fraction

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["plot_paths"]

_MOST = 60  # features that can be read


def plot_paths(
    model: SparseVAE, *, cut: float = 0.1, correlation_cut: float = 0.1, ax: Axes | None = None
) -> Axes:
    """Path diagram as papers on questionnaires have it: factors left, features right, arrows for links.

    Of more than sixty features the sixty with the strongest links are drawn.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    cut : float
        Links of a smaller strength are not drawn.
    correlation_cut : float
        Correlations of factors of a smaller size are not drawn.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "mask_")
    check_fraction("cut", cut)
    check_fraction("correlation_cut", correlation_cut)
    active, order = model.active_factors_, model.feature_order()
    strength = model.link_strength()[order][:, active]
    used = np.abs(strength) >= max(cut, 1e-12)
    kept = np.flatnonzero(used.any(1))
    kept = np.sort(kept[np.argsort(-np.abs(strength[kept]).max(1, initial=0.0), kind="stable")[:_MOST]])
    order, strength, used = order[kept], strength[kept], used[kept]
    n_features, n_factors = strength.shape
    ax = new_axes(ax, 6.4, min(1.0 + 0.3 * max(n_features, 2 * n_factors, 3), 19.0))
    ax.set_axis_off()
    ax.set_xlim(-0.55, 1.6)
    ax.set_ylim(max(n_features, 1) - 0.4, -0.6)
    if not n_features:
        ax.text(0.5, 0.5, "no active factor", ha="center", va="center", transform=ax.transAxes)
        return ax
    rows = np.arange(n_features)
    # A factor stands beside the middle of its features, and no two of them on each other.
    weight = np.abs(strength) * used
    middle = weight.T @ rows / np.maximum(weight.sum(0), 1e-12)
    spread = np.linspace(0.5, max(n_features - 1.5, 0.5), n_factors) if n_factors > 1 else middle
    places = np.empty(n_factors)
    places[np.argsort(middle, kind="stable")] = spread
    for a in range(n_factors):
        for j in np.flatnonzero(used[:, a]).tolist():
            colour = CATEGORIES[1] if strength[j, a] < 0 else LINE
            size = abs(float(strength[j, a]))
            look = {"alpha": 0.25 + 0.75 * min(size, 1.0), "linewidth": 0.6 + 2.0 * size, "color": colour}
            ax.add_patch(_arrow((0.0, places[a]), (0.98, j), "-|>", shrinkA=16, shrinkB=2, **look))
    _correlations(ax, model.factor_correlation().to_numpy(), places, correlation_cut)
    names = model.get_feature_names_out()[active]
    for a, name in enumerate(names):
        ax.text(0.0, places[a], short(name, 16), ha="center", va="center", fontsize=9,
                bbox={"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": LINE})  # fmt: skip
    for j, feature in enumerate(model.feature_names()[order]):
        ax.text(1.0, j, short(feature), ha="left", va="center", fontsize=9)
    return ax


def _correlations(ax: Axes, correlation: np.ndarray, places: np.ndarray, cut: float) -> None:
    for a in range(len(places)):
        for b in range(a):
            value = float(correlation[a, b])
            if abs(value) < max(cut, 1e-12):
                continue
            low, high = sorted((places[a], places[b]))
            bend = 0.25 + 0.1 * (high - low) / max(np.ptp(places), 1e-9)
            curve = f"arc3,rad={bend}"
            ax.add_patch(
                _arrow((-0.12, low), (-0.12, high), "<->", color=MUTED, linewidth=0.8, connectionstyle=curve)
            )
            place = (-0.34 - 0.1 * bend, (low + high) / 2)
            ax.text(*place, f"{value:.2f}", ha="center", va="center", fontsize=7.5, color=MUTED)


def _arrow(start: tuple[float, float], end: tuple[float, float], style: str, **look: Any) -> FancyArrowPatch:
    return FancyArrowPatch(start, end, arrowstyle=style, mutation_scale=9, **look)
