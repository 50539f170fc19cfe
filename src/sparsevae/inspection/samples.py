"""Samples at the ends of a factor: where to read what it is about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from sparsevae.exceptions import ParameterError

__all__ = ["KEPT_SAMPLES", "extreme_samples", "list_samples"]

KEPT_SAMPLES = 50
"""Samples that a fit remembers at each end of a factor."""


def extreme_samples(Z: np.ndarray, rows: np.ndarray, n: int = KEPT_SAMPLES) -> dict[str, np.ndarray]:
    """Rows at both ends of each factor, the outermost first.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_factors)
        Posterior means.
    rows : ndarray of shape (n_rows,)
        Which rows of a table these are.
    n : int
        At each end; half of the rows at most.

    Returns
    -------
    dict
        ``strongest`` and ``weakest``: positions of rows, shape (n, n_factors); ``high`` and ``low``: their
        values.
    """
    n = max(1, min(n, len(Z) // 2))
    order = np.argsort(-Z, axis=0, kind="stable")
    top, bottom = order[:n], order[::-1][:n]
    return {
        "strongest": rows[top],
        "weakest": rows[bottom],
        "high": np.take_along_axis(Z, top, 0),
        "low": np.take_along_axis(Z, bottom, 0),
    }


def list_samples(
    extremes: dict[str, np.ndarray],
    n: int,
    factors: dict[int, str],
    samples: Sequence[object] | np.ndarray | None = None,
) -> pd.DataFrame:
    """The n outermost samples at both ends of each factor.

    Parameters
    ----------
    extremes : dict
        From `extreme_samples`.
    n : int
    factors : dict from int to str
        Names of the factors to list.
    samples : sequence, optional
        Names of the rows of the table; by default their positions.

    Returns
    -------
    DataFrame
        Columns: factor, end, rank, sample, value.
    """
    known = len(extremes["strongest"])
    if n > known:
        raise ParameterError(
            f"Expected n of at most {known} samples at each end; got {n}. Pass the table as X for more, or a "
            "smaller n."
        )
    names = None if samples is None else np.asarray(samples, dtype=object)
    listed = [
        (
            name,
            end,
            rank + 1,
            row if names is None else names[row],
            float(extremes[values][rank, k]),
        )
        for k, name in factors.items()
        for end, values in (("strongest", "high"), ("weakest", "low"))
        for rank, row in enumerate(extremes[end][:n, k].tolist())
    ]
    return pd.DataFrame(listed, columns=["factor", "end", "rank", "sample", "value"])
