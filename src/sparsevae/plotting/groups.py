"""Factors by group: dots for means, a structure plot for samples, and a map of all factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from sparsevae.aliases import TableLike
from sparsevae.exceptions import ParameterError
from sparsevae.plotting.samples import plot_embedding
from sparsevae.plotting.style import colour_of, diverging, new_axes, room, short, tidy
from sparsevae.validation import check_choice

__all__ = ["plot_groups", "plot_map", "plot_structure"]

_LABEL = 0.19  # inches between the names of two groups
_REST = "#dfe3e7"  # of a sample that no factor claims

Names = Sequence[object] | np.ndarray


def plot_groups(
    codes: TableLike, groups: Names, *, names: Names | None = None, ax: Axes | None = None
) -> Axes:
    """Dot plot of factors by group: the colour is the mean, the size the fraction of samples above zero.

    Factors that are the same for all samples, because the fit does not use them, are left out.

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
    ax = new_axes(ax, max(2.2 + 0.42 * len(factors), 4.0), max(1.7 + 0.34 * len(kinds), 3.0))
    x, y = np.meshgrid(range(len(factors)), range(len(kinds)))
    limit = max(float(np.abs(means).max()), 1e-9)
    points = ax.scatter(
        x.ravel(), y.ravel(), s=_dot_sizes(above.ravel()), c=means.ravel(), cmap=diverging(),
        norm=TwoSlopeNorm(0.0, -limit, limit), edgecolors="#c4cad0", linewidths=0.5,
    )  # fmt: skip
    ax.set_xticks(range(len(factors)), [short(name, 14) for name in factors], rotation=60, ha="right")
    ax.set_yticks(range(len(kinds)), [short(kind) for kind in kinds])
    ax.set_xlim(-0.6, len(factors) - 0.4)
    ax.set_ylim(len(kinds) - 0.4, -0.6)
    bar = ax.figure.colorbar(points, ax=ax, pad=0.03)
    bar.set_label("mean of the factor", color="#3a424b")
    bar.outline.set_visible(False)
    for fraction in (0.1, 0.5, 1.0):
        size = float(_dot_sizes(np.array(fraction)))
        ax.scatter([], [], s=size, c="white", edgecolors="#6b7480", linewidths=0.8, label=f"{fraction:.0%}")
    ax.legend(
        title="samples above zero", title_fontsize=8, fontsize=8, ncols=3, frameon=False,
        loc="lower left", bbox_to_anchor=(0.0, 1.0), alignment="left", borderaxespad=0.2,
    )  # fmt: skip
    tidy(ax, sides=("top", "right", "bottom", "left"))
    return ax


def plot_structure(
    codes: TableLike, groups: Names | None = None, *, names: Names | None = None, ax: Axes | None = None
) -> Axes:
    """Structure plot: for each sample the parts of the factors that it is high in, as a bar; by group.

    Parts are the values above zero, the average. They are divided by their sum if it is above one, a
    standard deviation; of other samples the rest of the bar is grey: they are near the average, or below it,
    in all factors. Factors that are the same for all samples are left out.

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
    above = np.maximum(values, 0.0)
    above /= np.maximum(above.sum(1, keepdims=True), 1.0)
    parts = np.column_stack([above, 1.0 - above.sum(1)])
    order = np.lexsort((-parts.max(1), parts.argmax(1), labels.astype(str)))
    ax = new_axes(ax, 8.0, max(3.2, 0.5 + 0.2 * len(factors)))
    edges = np.arange(len(order) + 1) - 0.5
    tops = np.column_stack([np.zeros(len(order)), parts[order].cumsum(1)])
    looks = [
        *((colour_of(k), short(name, 14)) for k, name in enumerate(factors)),
        (_REST, "average or below"),
    ]
    for k, (colour, label) in enumerate(looks):
        ax.stairs(tops[:, k + 1], edges, baseline=tops[:, k], fill=True, color=colour, label=label)
    kinds, starts = np.unique(labels[order].astype(str), return_index=True)
    ends = np.append(starts[1:], len(order))
    if groups is not None:
        gap = _LABEL * len(order) / max(room(ax)[0], 1.0)
        names_of = [short(kind, 16) for kind in kinds]
        ax.set_xticks(
            _apart((starts + ends) / 2, gap), names_of, rotation=50, ha="right", rotation_mode="anchor"
        )
        for end in ends[:-1]:
            ax.axvline(end - 0.5, color="white", linewidth=1.5)
    else:
        ax.set_xticks([])
    ax.set_xlim(-0.5, len(order) - 0.5)
    ax.set_ylim(0, 1)
    ax.set_ylabel("part of the sample")
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    tidy(ax)
    ax.tick_params(axis="x", length=0)  # labels of narrow groups stand beside their middle
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


def _dot_sizes(fraction: np.ndarray) -> np.ndarray:
    return 12 + 150 * fraction


def _apart(places: np.ndarray, gap: float) -> np.ndarray:
    """Sorted places moved as little to the right, and then to the left, as a gap between them needs."""
    last = max(places[-1], places[0] + gap * (len(places) - 1))
    steps = gap * np.arange(len(places))
    moved = np.maximum.accumulate(places - steps) + steps
    return np.minimum(moved, last - steps[::-1])


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
    columns = list(getattr(codes, "columns", range(values.shape[1])) if names is None else names)
    varied = np.flatnonzero(np.ptp(values, axis=0) > 0)
    kept = varied if len(varied) else np.arange(values.shape[1])
    return values[:, kept], labels, [columns[k] for k in kept]
