"""The trade of simplicity: what simpler and richer fits than the chosen one gain on held-out rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sparsevae.fitting.spine import Spine

__all__ = ["linear_supports", "simplicity_path"]

_COLUMNS = ["model", "shrinkage", "n_active", "n_nonzero", "gain", "chosen"]


def simplicity_path(starts: pd.DataFrame, spine: Spine | None) -> pd.DataFrame | None:
    """Every fit that was weighed, with its factors, links and held-out gain.

    Parameters
    ----------
    starts : DataFrame
        Candidates compared at the end; None is returned where an empty mask is not among them.
    spine : Spine, optional
        The linear axes that the fit kept. Its points come first, from loose to strict.

    Returns
    -------
    DataFrame or None
        Columns model, shrinkage, n_active, n_nonzero, gain (nats per row over no factors), gain_kept
        (relative to the best), chosen.

    Notes
    -----
    Gains along the spine are those of a linear model of standardised values; they are put on the scale of the
    likelihood by the gain that the chosen point has there.
    """
    labels = starts["start"].astype(str)
    bounds = starts["bound"].to_numpy(dtype=float)
    reference = bounds[labels == "none"]
    if not np.isfinite(reference).any():  # nothing to compare with
        return None
    gains = bounds - reference[0]
    rows: list[tuple[object, ...]] = []
    for i, label in enumerate(labels):
        start = starts.iloc[i]
        if spine is not None and spine.supports is not None and label.endswith("linear"):
            rows += _linear_rows(spine, float(gains[i]), bool(start["chosen"]))
        else:
            name = next((kind for kind in ("linear", "network") if label.endswith(kind)), label)
            counts = int(start["n_active"]), int(start["n_nonzero"])
            rows.append((name, np.nan, *counts, float(gains[i]), bool(start["chosen"])))
    path = pd.DataFrame(rows, columns=_COLUMNS)
    best = float(np.nanmax(path["gain"]))
    path.insert(5, "gain_kept", path["gain"] / best if best > 0 else np.nan)
    return path


def linear_supports(spine: Spine | None, n_factors: int) -> np.ndarray | None:
    """Links at each point of a spine, with empty columns up to the number of factors allowed.

    Columns that one feature alone uses are empty, as in a fit.
    """
    if spine is None or spine.supports is None:
        return None
    supports = np.zeros((*spine.supports.shape[:2], n_factors), dtype=bool)
    shared = spine.supports.sum(1, keepdims=True) > 1
    supports[:, :, : spine.supports.shape[2]] = spine.supports & shared
    return supports


def _linear_rows(spine: Spine, gain: float, chosen: bool) -> list[tuple[object, ...]]:
    """A row for each point of a spine, whose chosen one has this gain."""
    points = [*spine.path, *spine.stricter]
    own = next(gain for shrinkage, gain, _ in spine.path if shrinkage == spine.shrinkage)
    supports = linear_supports(spine, spine.factors.n_factors)
    assert supports is not None
    return [
        (
            "linear",
            shrinkage,
            int(support.any(0).sum()),
            int(support.sum()),
            gain * linear / own if own > 0 else np.nan,
            chosen and shrinkage == spine.shrinkage,
        )
        for (shrinkage, linear, _), support in zip(points, supports, strict=True)
    ]
