"""Path diagram: features, factors, the links between them, and the correlations of the factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from sklearn.utils.validation import check_is_fitted

from sparsevae.plotting.style import CATEGORIES, LINE, MUTED, new_axes, room, short
from sparsevae.validation import check_fraction

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["plot_paths"]

_MOST = 60  # features that can be read
_MOST_ARCS = 15  # correlations that can
_LETTER = 0.078  # inches of a letter in the size of names
_LANE = 0.4  # inches between two nested arcs, with room for a number
_BOX = 0.27  # inches of the height of a factor


def plot_paths(
    model: SparseVAE, *, cut: float = 0.1, correlation_cut: float = 0.1, ax: Axes | None = None
) -> Axes:
    """Path diagram as papers on questionnaires have it: factors left, features right, arrows for links.

    Arrows are blue where a feature rises with the factor and orange where it falls, and the wider the
    stronger the link. Arcs at the left are correlations of the factors. Of more than sixty features the sixty
    with the strongest links are drawn, and of more than fifteen correlations the strongest fifteen.

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
    factors = [short(name, 16) for name in model.get_feature_names_out()[active]]
    features = [short(name) for name in model.feature_names()[order]]
    places = _beside_features(np.abs(strength) * used)
    arcs = _arcs(model.factor_correlation().to_numpy(), places, correlation_cut) if n_features else []
    # Inches from left to right: arcs, factors, arrows, features.
    depth = _LANE * (max((lane for *_, lane in arcs), default=0) + 0.5)
    box = 0.2 + _LETTER * max(map(len, factors), default=0)
    names = 0.1 + _LETTER * max(map(len, features), default=0)
    wanted = (depth + box + 2.8 + names, min(0.6 + 0.3 * max(n_features, 2 * n_factors, 3), 19.0))
    width, height = wanted if ax is None else room(ax)
    ax = new_axes(ax, *wanted)
    ax.set_axis_off()
    if not n_features:
        ax.text(0.5, 0.5, "no active factor", ha="center", va="center", transform=ax.transAxes)
        return ax
    arrows = max(width - depth - box - names, 1.0)
    ax.set_xlim(-depth - box, arrows + names)
    ax.set_ylim(max(n_features, 2) - 0.4, -0.6)
    row = abs(float(np.diff(ax.get_ylim())[0])) / height  # rows in an inch
    for a, name in enumerate(factors):
        for j in np.flatnonzero(used[:, a]).tolist():
            colour = CATEGORIES[1] if strength[j, a] < 0 else LINE
            size = abs(float(strength[j, a]))
            look = {"alpha": 0.25 + 0.75 * min(size, 1.0), "linewidth": 0.6 + 2.0 * size, "color": colour}
            ends = {"posA": (0.0, places[a]), "posB": (arrows - 0.04, j)}
            ax.add_patch(_arrow("-|>", shrinkA=0, shrinkB=0, **ends, **look))
        corner = (-box, places[a] - 0.5 * _BOX * row)
        ax.add_patch(
            FancyBboxPatch(corner, box, _BOX * row, boxstyle="round,pad=0,rounding_size=0.13",
                           mutation_aspect=row, facecolor="white", edgecolor=LINE)
        )  # fmt: skip
        ax.text(-0.5 * box, places[a], name, ha="center", va="center", fontsize=9)
    for j, name in enumerate(features):
        ax.text(arrows, j, name, ha="left", va="center", fontsize=9)
    for low, high, value, lane in arcs:
        _draw_arc(ax, -box, low + 0.2 * _BOX * row, high - 0.2 * _BOX * row, value, lane * _LANE)
    return ax


def _beside_features(weight: np.ndarray) -> np.ndarray:
    """Where factors stand: in the order of the middles of their features, at equal distances."""
    n_features, n_factors = weight.shape
    middle = weight.T @ np.arange(n_features) / np.maximum(weight.sum(0), 1e-12)
    spread = np.linspace(0.5, max(n_features - 1.5, 0.5), n_factors) if n_factors > 1 else middle
    places = np.empty(n_factors)
    places[np.argsort(middle, kind="stable")] = spread
    return places


def _arcs(correlation: np.ndarray, places: np.ndarray, cut: float) -> list[tuple[float, float, float, int]]:
    """Upper end, lower end, correlation and lane of each arc; an arc is outside those that it spans."""
    pairs = [
        (*sorted((float(places[a]), float(places[b]))), float(correlation[a, b]))
        for a in range(len(places))
        for b in range(a)
        if abs(correlation[a, b]) >= max(cut, 1e-12)
    ]
    strongest = sorted(pairs, key=lambda pair: -abs(pair[2]))[:_MOST_ARCS]
    arcs: list[tuple[float, float, float, int]] = []
    for low, high, value in sorted(strongest, key=lambda pair: pair[1] - pair[0]):
        inside = [lane for start, end, _, lane in arcs if start >= low - 1e-9 and end <= high + 1e-9]
        # Arcs of one length around the same place would have their numbers on each other.
        beside = [lane for start, end, _, lane in arcs if abs(start + end - low - high) < 1.0]
        arcs.append((low, high, value, max([*inside, *beside], default=0) + 1))
    return arcs


def _draw_arc(ax: Axes, x: float, low: float, high: float, value: float, depth: float) -> None:
    out = x - depth * 4 / 3  # a cubic curve goes three quarters of the way to its handles
    curve = Path([(x, low), (out, low), (out, high), (x, high)], [Path.MOVETO, *[Path.CURVE4] * 3])
    ax.add_patch(_arrow("<->", path=curve, color=MUTED, linewidth=0.9))
    text = f"{value:.2f}".replace("-", "−")
    ax.text(x - depth, (low + high) / 2, text, ha="center", va="center", fontsize=8, color=MUTED,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0})  # fmt: skip


def _arrow(style: str, **look: Any) -> FancyArrowPatch:
    return FancyArrowPatch(arrowstyle=style, mutation_scale=9, **look)
