"""The protocol: two disjoint halves of the rows, a fit on each, factors matched on all rows.

A factor *comes back* if the rank correlation with its match is at least 0.9. *Match* is the mean matched
correlation over the larger number of factors, *overlap* the mean Jaccard index of the strongest features of
matched pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

__all__ = ["FactorSet", "compare", "halves"]

RETURNED = 0.9  # rank correlation of a factor that comes back
EXPLAINED, FEATURES = 0.05, 3  # a factor counts if it explains so much of the variance of so many features
SAME = 0.9  # correlation above which two factors of one fit count once


class FactorSet(NamedTuple):
    """What one fit says of all rows.

    Attributes
    ----------
    codes : ndarray of shape (n_samples, n_factors)
    shares : ndarray of shape (n_features, n_factors)
        Fraction of each feature's variance that the factor explains.
    """

    codes: np.ndarray
    shares: np.ndarray


def halves(n_samples: int, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Two disjoint random halves of the rows."""
    order = np.random.default_rng(1000 + split).permutation(n_samples)
    return order[: n_samples // 2], order[n_samples // 2 :]


def compare(first: FactorSet, second: FactorSet) -> dict[str, float]:
    """Numbers of one split: factors of either fit, how many come back, match, overlap."""
    a, b = _counted(first), _counted(second)
    found: dict[str, float] = {
        "factors_a": len(a),
        "factors_b": len(b),
        "back": 0,
        "match": 0.0,
        "overlap": 0.0,
    }
    if not len(a) or not len(b):
        return found
    ranks = [np.apply_along_axis(rankdata, 0, s.codes[:, k]) for s, k in ((first, a), (second, b))]
    correlation = np.abs(np.corrcoef(ranks[0].T, ranks[1].T)[: len(a), len(a) :])
    rows, columns = linear_sum_assignment(-correlation)
    matched = correlation[rows, columns]
    n_top = _n_top(len(first.shares))
    overlaps = [
        _jaccard(_top(first.shares[:, a[i]], n_top), _top(second.shares[:, b[j]], n_top))
        for i, j in zip(rows, columns, strict=True)
    ]
    found["back"] = int((matched >= RETURNED).sum())
    found["match"] = float(matched.sum() / max(correlation.shape))
    found["overlap"] = float(np.mean(overlaps))
    return found


def _counted(factors: FactorSet) -> np.ndarray:
    """Factors that count: those that explain something, and of near copies one."""
    able = np.flatnonzero((factors.shares >= EXPLAINED).sum(0) >= FEATURES)
    kept: list[int] = []
    for k in able:
        correlations = [
            abs(np.corrcoef(factors.codes[:, k], factors.codes[:, other])[0, 1]) for other in kept
        ]
        if not any(r > SAME for r in correlations):
            kept.append(int(k))
    return np.array(kept, dtype=int)


def _n_top(n_features: int) -> int:
    """Strongest features compared: ten, five of a short questionnaire, three of nine tests."""
    return 10 if n_features > 25 else 5 if n_features > 9 else 3


def _top(shares: np.ndarray, n: int) -> set[int]:
    return set(np.argsort(-shares, kind="stable")[:n].tolist())


def _jaccard(a: set[int], b: set[int]) -> float:
    return len(a & b) / len(a | b)
