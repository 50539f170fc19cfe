"""Response curves with the data behind them, and samples in the space of two factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from sparsevae.exceptions import ParameterError
from sparsevae.plotting.style import CATEGORIES, DATA, LINE, MUTED, new_axes, short, tidy
from sparsevae.validation import shown

if TYPE_CHECKING:
    from sparsevae.aliases import TableLike
    from sparsevae.estimators import SparseVAE

__all__ = ["find_position", "plot_embedding", "plot_response"]

_POINTS = 1500
_KINDS = len(CATEGORIES)


class _Look(TypedDict):
    s: float
    alpha: float
    linewidths: float


def plot_response(
    model: SparseVAE,
    feature: str | int,
    factor: str | int | None = None,
    *,
    X: TableLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Expected value of a feature as a factor varies and the others are at their mean, in its own units.

    Parameters
    ----------
    model : SparseVAE
        Fitted.
    feature : str or int
        By name, or position from 0.
    factor : str or int, optional
        By name, or position from 0; by default the feature's strongest.
    X : array, data frame or sparse matrix of shape (n_samples, n_features), optional
        Data to draw behind the curve: of real-valued features the values less what other factors explain.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    check_is_fitted(model, "mask_")
    j = find_position(feature, model.feature_names(), "feature")
    if factor is None:
        k = int(np.argmax(model.variance_shares_[j] * (model.mask_[j] != 0)))
    else:
        k = find_position(factor, model.get_feature_names_out(), "factor")
    found = model.responses(k, [j], X, n_points=_POINTS)
    ax = new_axes(ax, 3.6, 2.8)
    if len(found.at):
        size = 14.0 if len(found.at) <= 300 else 6.0
        ax.scatter(found.at, found.points[:, 0], s=size, color=DATA, alpha=0.45, linewidths=0, zorder=1)
    ax.plot(found.grid, found.curves[:, 0], color=LINE, linewidth=2.2, zorder=2)
    ax.set_xlabel(short(model.get_feature_names_out()[k]))
    ax.set_ylabel(short(model.feature_names()[j]))
    tidy(ax)
    return ax


def plot_embedding(
    codes: TableLike,
    labels: Sequence[object] | np.ndarray | None = None,
    *,
    factors: tuple[int, int] = (0, 1),
    names: Sequence[object] | np.ndarray | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Samples at their values of two factors, coloured by a label.

    Parameters
    ----------
    codes : array or data frame of shape (n_samples, n_factors)
        From ``transform``.
    labels : sequence of length n_samples, optional
        Numbers of more than eight values get a colour scale, anything else a legend: of more than eight kinds
        the seven most frequent have colours, the others are grey.
    factors : (int, int)
        Columns of ``codes``.
    names : sequence of str, optional
        Of all factors; by default the columns of a data frame, or their positions.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    values = np.asarray(codes, dtype=float)
    if values.ndim != 2 or not all(0 <= k < values.shape[1] for k in factors):
        raise ParameterError(
            f"Expected codes with columns {factors[0]} and {factors[1]}; got shape {values.shape}. Pass what "
            "transform returned, and factors= among its columns."
        )
    if labels is not None and len(labels) != len(values):
        raise ParameterError(
            f"Expected a label for each of {len(values)} samples; got {len(labels)}. Pass as many as rows."
        )
    if names is None:
        columns = getattr(codes, "columns", range(values.shape[1]))
        names = [f"factor {name}" if isinstance(name, int) else name for name in columns]
    ax = new_axes(ax, 5.2, 4.4)
    x, y = values[:, factors[0]], values[:, factors[1]]
    look: _Look = {"s": float(np.clip(9000 / max(len(x), 1), 4, 24)), "alpha": 0.7, "linewidths": 0}
    if labels is None:
        ax.scatter(x, y, color=LINE, **look)
    elif _is_scale(labels):
        points = ax.scatter(x, y, c=np.asarray(labels, dtype=float), cmap="viridis", **look)
        bar = ax.figure.colorbar(points, ax=ax, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0)
    else:
        _kinds(ax, x, y, [str(label) for label in labels], look)
    ax.axhline(0, color="#e4e7ea", zorder=0, linewidth=0.8)
    ax.axvline(0, color="#e4e7ea", zorder=0, linewidth=0.8)
    ax.set_xlabel(short(names[factors[0]]))
    ax.set_ylabel(short(names[factors[1]]))
    tidy(ax)
    return ax


def _kinds(ax: Axes, x: np.ndarray, y: np.ndarray, labels: list[str], look: _Look) -> None:
    kinds, index, counts = np.unique(labels, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")
    named = frequent if len(kinds) <= _KINDS else frequent[: _KINDS - 1]
    rest = ~np.isin(index, named)
    if rest.any():
        label = f"{len(kinds) - len(named)} other kinds"
        faint: _Look = {**look, "alpha": 0.35}
        ax.scatter(x[rest], y[rest], color=MUTED, label=label, **faint)
    for colour, kind in zip(CATEGORIES, np.sort(named), strict=False):
        own = index == kind
        ax.scatter(x[own], y[own], color=colour, label=short(kinds[kind]), **look)
    legend = ax.legend(
        frameon=False, fontsize=8, markerscale=1.5, loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set_alpha(1.0)


def _is_scale(labels: Sequence[object] | np.ndarray) -> bool:
    values = np.asarray(labels)
    return values.dtype.kind in "iuf" and len(np.unique(values)) > _KINDS


def find_position(wanted: str | int, names: np.ndarray, what: str) -> int:
    """Position of a feature or factor that is meant by name or position."""
    if isinstance(wanted, int | np.integer) and 0 <= wanted < len(names):
        return int(wanted)
    found = np.flatnonzero(names == wanted)
    if len(found) == 0:
        raise ParameterError(
            f"Expected {what} to be a name of the fit or a position below {len(names)}; got {wanted!r}. "
            f"Names are {shown(names.tolist())}."
        )
    return int(found[0])
