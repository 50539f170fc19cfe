"""Thresholds of the verdicts from rows of factors: chosen on all tables but one, applied to that one."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression

__all__ = ["CLASSES", "by_class", "choose_limits", "classify", "intervals", "leave_one_out"]

CLASSES = ("identified", "weak", "not identified")
_IDENTIFIED = 0.93  # comes back of the other tables, for 0.9 of the one left out
_EVEN = 0.5
_GRID = np.arange(0.4, 0.991, 0.005)
_FEWEST = 20  # factors above a threshold


def leave_one_out(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Verdicts of each table by thresholds from the others, and these thresholds.

    Parameters
    ----------
    rows : DataFrame
        Of `compare_halves`.

    Returns
    -------
    judged : DataFrame
        The rows with a column ``verdict``.
    limits : DataFrame
        A row per table left out, and "all": match_weak, match_identified.
    """
    limits = {"all": choose_limits(rows)}
    judged = rows.assign(verdict="")
    if rows["table"].nunique() == 1:  # nothing is left where it is left out
        return judged.assign(verdict=classify(rows, *limits["all"])), _limits_table(limits)
    for table in dict.fromkeys(rows["table"]):
        limits[table] = choose_limits(rows[rows["table"] != table])
        own = judged["table"] == table
        judged.loc[own, "verdict"] = classify(judged[own], *limits[table])
    return judged, _limits_table(limits)


def choose_limits(rows: pd.DataFrame) -> tuple[float, float]:
    """The match at which as many come back as not, and the smallest above which most do.

    The first is where a monotone regression of coming back on the match crosses one half.
    """
    known = rows[rows["kept"] & rows["match"].notna()].sort_values("match")
    match, back = known["match"].to_numpy(), known["back"].to_numpy(dtype=float)
    curve = IsotonicRegression(out_of_bounds="clip").fit(match, back)
    lower = float(_GRID[np.searchsorted(curve.predict(_GRID) > _EVEN, True)])
    able = [limit for limit in _GRID if (match >= limit).sum() >= _FEWEST]
    upper = min(
        (limit for limit in able if back[match >= limit].mean() >= _IDENTIFIED), default=float(_GRID[-1])
    )
    return lower, float(max(upper, lower))


def by_class(judged: pd.DataFrame) -> pd.DataFrame:
    """Of each class: factors, of which dropped, fraction that came back, 90 % interval over splits."""
    found = {}
    for verdict in CLASSES:
        own = judged[judged["verdict"] == verdict]
        found[verdict] = {
            "factors": len(own),
            "dropped": int((~own["kept"]).sum()),
            "back": own["back"].mean(),
            **dict(zip(("low", "high"), intervals(own), strict=True)),
        }
    return pd.DataFrame.from_dict(found, orient="index")


def intervals(rows: pd.DataFrame, n_draws: int = 2000) -> tuple[float, float]:
    """90 % interval of the fraction that came back: splits of tables, not factors, are drawn again."""
    sums = rows.groupby(["table", "split"])["back"].agg(["sum", "size"]).to_numpy(dtype=float)
    if not len(sums):
        return np.nan, np.nan
    draws = np.random.default_rng(0).integers(0, len(sums), (n_draws, len(sums)))
    total = sums[draws].sum(1)
    low, high = np.quantile(total[:, 0] / total[:, 1], [0.05, 0.95])
    return float(low), float(high)


def _limits_table(limits: dict[str, tuple[float, float]]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(limits, orient="index", columns=["match_weak", "match_identified"])


def classify(rows: pd.DataFrame, weak: float, identified: float) -> np.ndarray:
    """Verdicts by two thresholds of the match; what was dropped is not identified."""
    match = rows["match"].to_numpy()
    verdict = np.where(match >= identified, CLASSES[0], np.where(match >= weak, CLASSES[1], CLASSES[2]))
    return np.where(rows["kept"], verdict, CLASSES[2])
