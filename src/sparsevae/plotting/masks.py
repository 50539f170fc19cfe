"""The mask with features ordered by factor, and the correlations of the factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from sparsevae.plotting.style import diverging, new_axes, room, short, spaced, tidy

if TYPE_CHECKING:
    from sparsevae.estimators import SparseVAE

__all__ = ["plot_factor_correlation", "plot_mask"]

_NAMED = 60  # features up to which every row has its name
_CELL = 0.3  # inches that a number in a cell needs
_ROWS = 700  # of the picture; more features are drawn several to a row


def plot_mask(model: SparseVAE, *, ax: Axes | None = None) -> Axes:
    """Heat map of the mask: features in rows, ordered by their strongest factor; exact zeros are white.

    The colour of a link is its signed strength: the root of the share of the feature's variance that the
    factor explains, with the sign of the average slope; for a linear model, the standardised loading.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    ax : Axes, optional
        Where to draw; by default on a new figure of a size that suits the mask.

    Returns
    -------
    Axes
        ``ax.figure.savefig("mask.png")`` writes a picture.
    """
    check_is_fitted(model, "mask_")
    active = model.active_factors_
    order = model.feature_order()
    strength = model.link_strength()[order][:, active]
    shown = np.ma.masked_array(strength, model.mask_[order][:, active] == 0)
    n_features, n_factors = shown.shape
    height = 0.9 + 0.24 * n_features if n_features <= _NAMED else 7.5
    ax = new_axes(ax, min(2.6 + 0.42 * max(n_factors, 2), 12.0), height)
    if n_factors == 0:
        ax.text(0.5, 0.5, "no active factor", ha="center", va="center", transform=ax.transAxes)
        ax.set_axis_off()
        return ax
    image = ax.imshow(
        _strongest_of_rows(shown, _ROWS),
        cmap=diverging(),
        vmin=-1.0,
        vmax=1.0,
        aspect="auto",
        interpolation="none",
        extent=(-0.5, n_factors - 0.5, n_features - 0.5, -0.5),
    )
    _label(ax, model, order, n_factors)
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 2.4 / height), aspect=12, pad=0.03)
    bar.set_label("strength, signed", color="#3a424b")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelcolor="#3a424b")
    return ax


def plot_factor_correlation(model: SparseVAE, *, ax: Axes | None = None) -> Axes:
    """Heat map of the prior correlations of the active factors; with numbers in the cells where they fit.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "mask_")
    active = model.active_factors_
    correlation = model.factor_covariance_[np.ix_(active, active)]
    n_factors = len(active)
    side = min(1.8 + 0.42 * max(n_factors, 2), 8.0)
    ax = new_axes(ax, side + 0.7, side)
    image = ax.imshow(correlation, cmap=diverging(), vmin=-1.0, vmax=1.0)
    names = [short(name, 14) for name in model.get_feature_names_out()[active]]
    shown = spaced(n_factors, min(room(ax)))
    labels = [names[k] for k in shown]
    ax.set_xticks(shown, labels, rotation=60, ha="right", rotation_mode="anchor")
    ax.set_yticks(shown, labels)
    if n_factors * _CELL <= min(room(ax)):
        for i in range(n_factors):
            for j in range(n_factors):
                value = correlation[i, j]
                colour = "white" if abs(value) > 0.7 else "#22272d"
                ax.text(j, i, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=8)
    tidy(ax, sides=("top", "right", "bottom", "left"))
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.7, pad=0.03)
    bar.set_label("correlation", color="#3a424b")
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelcolor="#3a424b")
    return ax


def _label(ax: Axes, model: SparseVAE, order: np.ndarray, n_factors: int) -> None:
    names = model.get_feature_names_out()[model.active_factors_]
    width, height = room(ax)
    shown = spaced(n_factors, width)
    ax.set_xticks(shown, [short(names[k], 14) for k in shown])
    ax.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False)
    for label in ax.get_xticklabels():
        label.set(rotation=60, ha="left", rotation_mode="anchor")
    if len(order) <= _NAMED:
        features = model.feature_names()[order]
        shown = spaced(len(order), height)
        ax.set_yticks(shown, [short(features[j]) for j in shown])
        ax.set_xticks(np.arange(n_factors + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(len(order) + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="#e4e7ea", linewidth=0.7)
        ax.tick_params(which="minor", length=0)
    else:
        ax.set_ylabel(f"{len(order):,} features, by their strongest factor", color="#3a424b")
        ax.set_xticks(np.arange(n_factors + 1) - 0.5, minor=True)
        ax.grid(which="minor", axis="x", color="#eceef0", linewidth=0.6)
        ax.tick_params(which="minor", length=0)
    tidy(ax, sides=("top", "right", "bottom", "left"))


def _strongest_of_rows(values: np.ma.MaskedArray, most: int) -> np.ma.MaskedArray:
    """At most so many groups of rows, of each the entry of largest size: averages would fade single links."""
    if len(values) <= most:
        return values
    size = np.abs(values.filled(0.0))
    groups = np.array_split(np.arange(len(values)), most)
    first = np.array([group[0] for group in groups])
    winner = np.stack([group[0] + size[group].argmax(0) for group in groups])
    columns = np.arange(values.shape[1])
    used = np.add.reduceat(~np.ma.getmaskarray(values), first, axis=0) > 0
    return np.ma.masked_array(values.filled(0.0)[winner, columns], ~used)
