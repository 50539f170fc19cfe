"""Factors by group: dots for means, a structure plot for samples, and a map of all factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from sparsevae.aliases import TableLike
from sparsevae.exceptions import ParameterError
from sparsevae.plotting.samples import plot_embedding
from sparsevae.plotting.style import CATEGORIES, diverging, new_axes, short, tidy
from sparsevae.validation import check_choice

__all__ = ["plot_groups", "plot_map", "plot_structure"]

Names = Sequence[object] | np.ndarray


def plot_groups(
    codes: TableLike, groups: Names, *, names: Names | None = None, ax: Axes | None = None
) -> Axes:
    """Dot plot of factors by group: the colour is the mean, the size the fraction of samples above zero.

    Parameters
    ----------
    codes : array or data frame of shape (n_samples, n_factors)
        From ``transform``.
    groups : sequence of length n_samples
        The group of each sample.
    names : sequence of str, optional
        Of the factors; by default the columns of a data frame, or their positions.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    values, labels, factors = _checked(codes, groups, names)
    kinds = sorted(set(labels))
    means = np.array([values[labels == kind].mean(0) for kind in kinds])
    above = np.array([(values[labels == kind] > 0).mean(0) for kind in kinds])
    ax = new_axes(ax, 2.2 + 0.42 * len(factors), 1.2 + 0.34 * len(kinds))
    x, y = np.meshgrid(range(len(factors)), range(len(kinds)))
    limit = max(float(np.abs(means).max()), 1e-9)
    points = ax.scatter(
        x.ravel(), y.ravel(), s=12 + 150 * above.ravel(), c=means.ravel(), cmap=diverging(),
        norm=TwoSlopeNorm(0.0, -limit, limit), edgecolors="#c4cad0", linewidths=0.5,
    )  # fmt: skip
    ax.set_xticks(range(len(factors)), [short(name, 14) for name in factors], rotation=60, ha="right")
    ax.set_yticks(range(len(kinds)), [short(kind) for kind in kinds])
    ax.set_xlim(-0.6, len(factors) - 0.4)
    ax.set_ylim(len(kinds) - 0.4, -0.6)
    bar = ax.figure.colorbar(points, ax=ax, pad=0.03)
    bar.set_label("mean of the factor", color="#3a424b")
    bar.outline.set_visible(False)
    tidy(ax, sides=("top", "right", "bottom", "left"))
    return ax


def plot_structure(
    codes: TableLike, groups: Names | None = None, *, names: Names | None = None, ax: Axes | None = None
) -> Axes:
    """Structure plot: for each sample the parts of the factors that it is high in, as a bar; by group.

    Parts are the values above zero, divided by their sum.

    Parameters
    ----------
    codes : array or data frame of shape (n_samples, n_factors)
        From ``transform``.
    groups : sequence of length n_samples, optional
        The group of each sample.
    names : sequence of str, optional
        Of the factors; by default the columns of a data frame, or their positions.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    given = ["all"] * len(np.asarray(codes)) if groups is None else groups
    values, labels, factors = _checked(codes, given, names)
    parts = np.maximum(values, 0.0)
    parts = parts / np.maximum(parts.sum(1, keepdims=True), 1e-12)
    order = np.lexsort((-parts.max(1), parts.argmax(1), labels.astype(str)))
    ax = new_axes(ax, 8.0, 2.6)
    bottom, places = np.zeros(len(order)), np.arange(len(order))
    for k, name in enumerate(factors):
        colour = CATEGORIES[k % len(CATEGORIES)]
        top = bottom + parts[order, k]
        ax.fill_between(places, bottom, top, step="mid", color=colour, linewidth=0, label=short(name, 14))
        bottom = top
    kinds, starts = np.unique(labels[order].astype(str), return_index=True)
    ends = np.append(starts[1:], len(order))
    if groups is not None:
        ax.set_xticks((starts + ends) / 2, [short(kind, 16) for kind in kinds], rotation=30, ha="right")
        for end in ends[:-1]:
            ax.axvline(end - 0.5, color="white", linewidth=1.5)
    else:
        ax.set_xticks([])
    ax.set_xlim(-0.5, len(order) - 0.5)
    ax.set_ylim(0, 1)
    ax.set_ylabel("part of the sample")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(ax)
    return ax


def plot_map(
    codes: TableLike,
    labels: Names | None = None,
    *,
    method: str = "pca",
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """All factors of each sample in two dimensions, coloured by anything.

    Parameters
    ----------
    codes : array or data frame of shape (n_samples, n_factors)
        From ``transform``.
    labels : sequence of length n_samples, optional
        Numbers or kinds, as for `plot_embedding`.
    method : {"pca", "umap"}
        Principal components of the factors, or UMAP, for which umap-learn must be installed.
    random_state : int
        Of UMAP.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    check_choice("method", method, ("pca", "umap"))
    values, _, _ = _checked(codes, np.zeros(len(np.asarray(codes))), None)
    if method == "pca":
        centred = values - values.mean(0)
        u, s, _ = np.linalg.svd(centred, full_matrices=False)
        flat = np.zeros((len(values), 2))
        flat[:, : min(2, len(s))] = (u * s)[:, :2]
    else:
        try:
            from umap import UMAP
        except ImportError as error:
            raise ParameterError(
                "Expected umap-learn, for method='umap'; it is not installed: pip install umap-learn, or "
                "method='pca'."
            ) from error
        flat = UMAP(random_state=random_state, n_jobs=1).fit_transform(values)
    kind = method.upper()
    return plot_embedding(flat, labels, names=[f"{kind} 1", f"{kind} 2"], ax=ax)


def _checked(
    codes: TableLike, groups: Names, names: Names | None
) -> tuple[np.ndarray, np.ndarray, list[object]]:
    values = np.asarray(codes, dtype=float)
    if values.ndim != 2 or 0 in values.shape:
        raise ParameterError(
            f"Expected codes of shape (n_samples, n_factors); got shape {values.shape}. Pass what transform "
            "returned."
        )
    labels = np.array([str(group) for group in groups], dtype=object)
    if len(labels) != len(values):
        raise ParameterError(
            f"Expected a group for each of {len(values)} samples; got {len(labels)}. Pass as many as rows."
        )
    columns = getattr(codes, "columns", range(values.shape[1])) if names is None else names
    return values, labels, list(columns)
