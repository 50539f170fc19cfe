"""The true and the recovered mask, drawn side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

__all__ = ["draw_masks"]


def draw_masks(true_mask: np.ndarray, mask: np.ndarray, feature_labels: list[str], path: Path) -> None:
    """Draw two masks with a row per feature; exact zeros stay white.

    Parameters
    ----------
    true_mask : ndarray of shape (n_features, n_true_factors)
    mask : ndarray of shape (n_features, n_factors)
        Its first columns are matched to the true factors.
    feature_labels : list of str
    path : Path
        PNG, SVG or PDF.
    """
    n_features = len(mask)
    # A Figure of its own, without pyplot: no window system, no state left behind.
    figure = Figure(figsize=(6.0, 1.0 + 0.4 * n_features), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, title, values in ((left, "true mask", true_mask), (right, "recovered mask", mask)):
        shown = np.ma.masked_equal(np.abs(values), 0)
        axes.imshow(
            shown, cmap="viridis_r", vmin=0, vmax=max(1.0, float(np.abs(values).max())), aspect="auto"
        )
        axes.set_title(title)
        axes.set_xticks(range(values.shape[1]), [f"factor {k + 1}" for k in range(values.shape[1])])
        axes.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(n_features + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="0.85")
        axes.tick_params(which="both", length=0)
    left.set_yticks(range(n_features), feature_labels)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
