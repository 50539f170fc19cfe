r"""Which axes, and how many: those that come back in halves of the rows.

Parallel analysis says how many linear factors a table has. On large tables that is more than any rotation can
fix: other rows show other axes. So the rows are halved a few times, both halves are analysed, and a number of
factors is worth what returns,

.. math:: \sum_k g(r_k) - c \sum_k (1 - g(r_k)),

with the rank correlations r of matched factors and g from 0 (r = 0.6) to 1 (r = 0.9): a factor that does not
return costs half of what one that returns is worth (docs/research/replication.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from sparsevae.decoder.threads import side_by_side
from sparsevae.factor_analysis import (
    LinearFactors,
    analyse_counts,
    analyse_factors,
    analyse_sparse_factors,
    find_parts,
    find_parts_of_counts,
)

__all__ = ["Analysis", "choose_axes", "matched_correlations", "worth"]

Analysis = Callable[[np.ndarray, int], LinearFactors]
Analyses = Callable[[np.ndarray, Iterable[int]], Iterator[LinearFactors]]

_FEWEST_ROWS = 200  # halves of fewer say little
_FEW = 8  # factors; for more, halvings are fewer because each is slow
_HALVINGS = (10, 8)  # of few factors and of many
# Of few features they cost little: a sixth factor of bfi is worth 0.2, with ten halvings now and then 0.5.
_MORE_HALVINGS, _FEW_FEATURES = 40, 100
# Numbers of factors that are tried: far enough from each other that other rows lead to the same one.
_SERIES = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100)
_FEATURES = 1000  # compared, at most
_SHOWN_BY = (3, 0.05)  # features, and the fraction of their variance from which on they show a factor
_RETURNS = (0.6, 0.9)  # rank correlations of factors that do not return, and that do
_COST = 0.5  # of a factor that does not return
_NEARLY = 0.1  # of the best worth, that a larger number of factors may lack
_LAST = 0.5  # what the last of few factors must be worth
_MORE = 0.1  # factors, that it must bring back beyond those of the best
_PARTS_CLEARLY = 1.1  # times the worth of rotated factors, to prefer parts
# What parts are worth differs by 2 between halvings: the mean of four now and then chose other axes.
_PARTS_HALVINGS = 4, 16  # at least, and at most, until two standard errors tell
_TELLS = 2.0
# The sparsest axes of known factors return at 0.93 and above, and as well as smooth ones; the worst of real
# tables at 0.6 to 0.8, where smooth ones return at 0.7 to 0.95.
_SPARSE_HALVINGS, _SPARSE_RETURNS, _AS_WELL = 4, 0.9, 0.005


def choose_axes(X: np.ndarray, n_factors: int, *, counts: bool) -> tuple[Analysis, int]:
    """Rotated factors, or for counts parts that only add up; and how many.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Standardised rows; NaN for what is missing.
    n_factors : int
        Number of linear factors: there may be fewer, not more.
    counts : bool
        Whether all features are counts.
    """
    if len(X) < _FEWEST_ROWS:
        return analyse_factors, n_factors
    X = X[:, :: math.ceil(X.shape[1] / _FEATURES)]
    n_factors = min(n_factors, X.shape[1] - 1)
    few = n_factors <= _FEW
    n_halvings = _MORE_HALVINGS if few and X.shape[1] <= _FEW_FEATURES else _HALVINGS[not few]
    halvings = _halve(len(X), n_halvings)
    value, found = _best_count(analyse_counts, X, halvings, _fewer(n_factors))
    if counts:
        tried = [n_factors, math.ceil(n_factors / 2)] if n_factors > _FEW else [n_factors]
        least = _PARTS_CLEARLY * value
        parts_value, n_parts = _chosen({count: _parts_worth(X, count, least) for count in tried})
        if parts_value > least:
            return find_parts, n_parts
    return (analyse_sparse_factors if _sparse_axes_return(X, found) else analyse_factors), found


def _sparse_axes_return(X: np.ndarray, n_factors: int) -> bool:
    """Whether the axes of the sparsest loadings return between halves of the rows as well as smooth ones."""
    filled, kinds = np.nan_to_num(X), (analyse_sparse_factors, analyse_factors)
    means = []

    def codes(job: tuple[Analysis, np.ndarray]) -> np.ndarray:
        analyse, rows = job
        return next(
            _codes(lambda X, counts: map(partial(analyse, X), counts), X, filled, rows, iter([n_factors]))
        )

    for halves in _halve(len(X), _SPARSE_HALVINGS if n_factors > 1 else 0):
        sparse, smooth = (_matches(*side_by_side(codes, [(kind, rows) for rows in halves])) for kind in kinds)
        if len(sparse) < n_factors or sparse.min() < _SPARSE_RETURNS:
            return False
        means.append(sparse.mean() - smooth.mean())
    return bool(means) and float(np.mean(means)) >= -_AS_WELL


def worth(correlations: np.ndarray, n_factors: int) -> float:
    """What factors are worth whose matches in the other half have these rank correlations."""
    low, high = _RETURNS
    returned = np.clip((correlations - low) / (high - low), 0.0, 1.0).sum()
    return float(returned - _COST * (n_factors - returned))


def matched_correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Absolute rank correlations of factors matched one to one: shape (n_factors,)."""
    a, b = (rankdata(codes, axis=0) for codes in (first, second))
    a, b = a - a.mean(0), b - b.mean(0)
    scale = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)
    correlation = np.abs(a.T @ b) / np.maximum(scale, 1e-12)
    return np.asarray(correlation[linear_sum_assignment(-correlation)])


def _fewer(n_factors: int) -> Iterator[int]:
    """The number itself, and those of the series below it."""
    yield n_factors
    yield from (count for count in reversed(_SERIES) if count < n_factors)


def _best_count(
    analyses: Analyses, X: np.ndarray, halvings: list[list[np.ndarray]], counts: Iterable[int]
) -> tuple[float, int]:
    """What the best number of factors is worth, and that number or a larger one.

    The largest is taken that is worth nearly as much and brings more factors back; of few factors the last
    must be worth half a factor. Numbers come in decreasing order; as n factors are worth n at most, the
    search among many ends early.
    """
    ahead: list[int] = []  # the analyses of all halves ask for the same numbers, one after the other

    def asked() -> Iterator[int]:
        position = 0
        while True:
            yield ahead[position]
            position += 1

    filled = np.nan_to_num(X)
    pairs = [[_codes(analyses, X, filled, rows, asked()) for rows in halves] for halves in halvings]
    values: dict[int, float] = {}
    for count in counts:
        if values and count <= max(values.values()) and max(values) > _FEW:
            break
        ahead.append(count)

        def compare(pair: list[Iterator[np.ndarray]], count: int = count) -> float:
            a, b = pair
            return worth(_matches(next(a), next(b)), count)

        values[count] = float(np.mean(side_by_side(compare, pairs)))
    return _chosen(values)


def _chosen(values: dict[int, float]) -> tuple[float, int]:
    """What the number of factors is worth that is taken, and that number, given what each is worth."""
    best = max(values, key=lambda count: values[count])
    value, least = values[best], _returned(values[best], best) + _MORE
    larger = [k for k, v in values.items() if v >= value - _NEARLY * abs(value) and _returned(v, k) >= least]
    chosen = max([best, *larger])
    while chosen <= _FEW and values[chosen] - values.get(chosen - 1, -math.inf) < _LAST:
        chosen -= 1
    return values[chosen], chosen


def _parts_worth(X: np.ndarray, n_factors: int, least: float) -> float:
    """What parts are worth, by as many halvings as tell it from ``least``."""
    filled, found = np.nan_to_num(X), []
    fewest, most = _PARTS_HALVINGS

    def codes(rows: np.ndarray) -> np.ndarray:
        return next(_codes(find_parts_of_counts, X, filled, rows, iter([n_factors])))

    for halves in _halve(len(X), most):
        first, second = side_by_side(codes, halves)
        found.append(worth(_matches(first, second), n_factors))
        error = np.std(found) / math.sqrt(len(found))
        if len(found) >= fewest and abs(np.mean(found) - least) > _TELLS * error:
            break
    return float(np.mean(found))


def _returned(value: float, n_factors: int) -> float:
    """How many factors return, of a number of them that is worth so much."""
    return (value + _COST * n_factors) / (1.0 + _COST)


def _codes(
    analyses: Analyses, X: np.ndarray, filled: np.ndarray, rows: np.ndarray, counts: Iterator[int]
) -> Iterator[np.ndarray]:
    """For each number of factors the codes of all rows, by factors of some of them that features show."""
    half = X[rows]
    n_seen = np.maximum((~np.isnan(half)).sum(0), 1)
    mean = np.nansum(half, 0) / n_seen
    scale = np.maximum(np.sqrt(np.nansum(np.square(half - mean), 0) / n_seen), 1e-6)
    n_shown, least = _SHOWN_BY
    for factors in analyses((half - mean) / scale, counts):
        shown = (np.square(factors.loadings) >= least).sum(0) >= n_shown
        yield filled @ (factors.maps()[:, shown] / scale[:, None]).astype(filled.dtype)


def _matches(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    if not (first.shape[1] and second.shape[1]):
        return np.zeros(0)
    return matched_correlations(first, second)


def _halve(n_samples: int, n_halvings: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    return [np.array_split(rng.permutation(n_samples), 2) for _ in range(n_halvings)]
