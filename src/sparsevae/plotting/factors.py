"""Variance explained by factor and view, and the ranked weights of a factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from sparsevae.plotting.samples import find_position
from sparsevae.plotting.style import CATEGORIES, LINE, MUTED, new_axes, short, tidy
from sparsevae.validation import check_positive

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["plot_variance", "plot_weights"]


def plot_variance(
    model: SparseVAE, views: Sequence[object] | np.ndarray | bool | None = None, *, ax: Axes | None = None
) -> Axes:
    """Variance that each active factor explains: bars, or a heat map where features come from several views.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    views : sequence of length n_features or False, optional
        The view of each feature, such as the assay that it comes from; by default those that the model knows.
        False for bars.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "mask_")
    names = [short(name) for name in model.get_feature_names_out()[model.active_factors_]]
    if views is None or views is True:
        views = model.feature_views()
    if views is None or views is False:
        shares = model.variance_explained_[model.active_factors_]
        ax = new_axes(ax, 4.6, 0.9 + 0.28 * max(len(names), 1))
        ax.barh(range(len(names)), 100 * shares, color=LINE, height=0.65)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel("variance explained, %")
        tidy(ax)
        return ax
    table = model.explained_by_view(views).iloc[:-1]
    ax = new_axes(ax, 2.4 + 0.9 * table.shape[1], 1.1 + 0.3 * max(len(names), 1))
    image = ax.imshow(100 * table.to_numpy(), cmap="Blues", vmin=0.0, aspect="auto")
    ax.set_xticks(range(table.shape[1]), [short(view) for view in table.columns])
    ax.set_yticks(range(len(names)), names)
    for i, row in enumerate(100 * table.to_numpy()):
        for j, value in enumerate(row):
            colour = "white" if value > 0.6 * max(100 * table.to_numpy().max(), 1e-12) else "#22272d"
            ax.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=8, color=colour)
    bar = ax.figure.colorbar(image, ax=ax, pad=0.03)
    bar.set_label("variance explained, %", color="#3a424b")
    bar.outline.set_visible(False)
    tidy(ax, sides=("top", "right", "bottom", "left"))
    return ax


def plot_weights(model: SparseVAE, factor: str | int = 0, n: int = 20, *, ax: Axes | None = None) -> Axes:
    """The strongest features of a factor, ranked; dots are filled for anchors, features of this factor alone.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    factor : str or int
        By name, or position from 0.
    n : int
        Features.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "mask_")
    check_positive("n", n, integer=True)
    k = find_position(factor, model.get_feature_names_out(), "factor")
    order = model.strongest_features(k)[:n]
    strength = model.link_strength()[order, k]
    anchors = (model.mask_[order] != 0).sum(1) == 1
    colours = [CATEGORIES[1] if value < 0 else LINE for value in strength]
    ax = new_axes(ax, 4.6, 0.9 + 0.24 * max(len(order), 1))
    ax.hlines(range(len(order)), 0, strength, color=colours, linewidth=1.4)
    faces = [colour if anchor else "white" for colour, anchor in zip(colours, anchors, strict=True)]
    ax.scatter(strength, range(len(order)), s=26, c=faces, edgecolors=colours, linewidths=1.4, zorder=3)
    ax.set_yticks(range(len(order)), [short(name) for name in model.feature_names()[order]])
    ax.invert_yaxis()
    ax.axvline(0, color=MUTED, linewidth=0.8)
    ax.set_xlabel(f"strength in {short(model.get_feature_names_out()[k])}, signed")
    tidy(ax)
    return ax
