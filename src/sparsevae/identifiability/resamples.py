r"""Which factors come back in halves of the rows, and how far their loadings move: cheap, part of every fit.

The rows are halved at random a few times. A linear factor analysis of each half, with as many factors as the
fit, is asked for the factors of the same rows; these are matched to the factors of the fit. If A and B are
estimates from two halves, each has twice the variance of one from all rows, and they are independent. So
:math:`(A - B)^2 / 4` has the sampling variance of the fit for its mean, and a match r of the two halves
stands for about :math:`1 - (1 - r)/2` between two samples of the size of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from sparsevae.aliases import State
from sparsevae.decoder.threads import side_by_side
from sparsevae.factor_analysis import LinearFactors, analyse_factors, find_parts
from sparsevae.fitting.spine import SHRINKAGES, sparse_loadings
from sparsevae.identifiability.confirmatory import confirm_factors, free_loadings, is_confirmable

__all__ = ["Resamples", "resample_factors", "spines_of_halves"]

_PAIRS = (10, 4)  # halvings of narrow and of wide tables
_NARROW = 100  # features
_FEWEST = 20  # rows that are halved
_LARGEST_GROUP = 4  # factors
_MORE, _SEEN, _CLEARLY = 3, 0.8, 0.02  # factors to try beyond those of a fit: where, and for what gain
_SHOWN = 0.5  # rank correlation with a linear factor below which the linear analysis does not see a factor

Analysis = Callable[[np.ndarray, int], LinearFactors]


class Resamples(NamedTuple):
    """What halves of the rows say of the active factors of a fit.

    Attributes
    ----------
    agreement : ndarray of shape (n_pairs, n_active)
        Absolute rank correlation of what the two halves of a pair have for a factor; 0 where one has nothing.
    linear : ndarray of shape (n_active,)
        The same of the factor with its match in the linear analysis of all rows.
    companions : integer ndarray of shape (n_active, n_sizes)
        Which factors to take together with one, nearest first, so that their space comes back best; -1 for
        none.
    spans : ndarray of shape (n_active, n_sizes)
        The smallest canonical correlation, between halves, of the space of the factor and so many companions.
    selection : ndarray of shape (n_features, n_active)
        Fraction of the halves whose sparse loadings have the link; a half without the factor has no link.
    deviation : ndarray of shape (n_features, n_active)
        Standard error of the loadings, in units of the inputs; NaN where no half shows the factor.
    loadings : ndarray of shape (n_features, n_active)
        On given links without a penalty, in the same units; zero where there is none.
    """

    agreement: np.ndarray
    linear: np.ndarray
    companions: np.ndarray
    spans: np.ndarray
    selection: np.ndarray
    deviation: np.ndarray
    loadings: np.ndarray

    @property
    def match(self) -> np.ndarray:
        """Mean agreement of the halves on each factor: shape (n_active,); NaN where no linear one is it."""
        return np.where(self.linear >= _SHOWN, self.agreement.mean(0), np.nan)

    @property
    def return_rate(self) -> np.ndarray:
        """Fraction of the pairs of halves that agree on a factor as two samples of this size at 0.9 would."""
        return np.where(self.linear >= _SHOWN, (self.agreement >= 0.8).mean(0), np.nan)

    def group(self, a: int, least: float) -> tuple[list[int], float] | None:
        """The smallest set of factors with this one whose space the halves agree on, and how closely."""
        if not self.linear[a] >= _SHOWN:
            return None
        for size, value in enumerate(self.spans[a], start=1):
            if self.companions[a, size - 1] < 0:
                return None
            if value >= least:
                return sorted([a, *self.companions[a, :size].tolist()]), float(value)
        return None

    def to_dict(self) -> dict[str, np.ndarray]:
        """Plain arrays."""
        return self._asdict()

    @classmethod
    def from_dict(cls, values: State) -> Resamples:
        """What `to_dict` described."""
        return cls(**{name: np.asarray(values[name]) for name in cls._fields})


def resample_factors(
    inputs: np.ndarray,
    shown: np.ndarray,
    codes: np.ndarray,
    support: np.ndarray,
    *,
    n_samples: float,
    counts: bool = False,
    links: np.ndarray | None = None,
) -> Resamples | None:
    """Look for the factors of a fit in halves of its rows.

    Parameters
    ----------
    inputs : ndarray of shape (n_rows, n_features)
        What the encoder sees of the rows of the fit, NaN for what is missing.
    shown : ndarray of shape (n_shown, n_features)
        The same of the rows on which factors are compared.
    codes : ndarray of shape (n_shown, n_active)
        Active factors of these rows under the fit.
    support : boolean ndarray of shape (n_features, n_active)
        Links of the fit.
    n_samples : float
        Rows of the fit, of which ``inputs`` may have some only.
    counts : bool
        Whether all features are counts, whose factors may be parts that only add up.
    links : boolean ndarray of shape (n_features, n_active), optional
        Those that loadings without a penalty have; by default all of the fit.

    Returns
    -------
    Resamples or None
        None where there are too few rows or features for a factor analysis, or no factor.
    """
    start = _begin(inputs, shown, codes, support, n_samples, counts)
    if start is None:
        return None
    varying, X, seen, ranks, whole, shrinkage = start
    n_features, n_active = support.shape
    n_factors = whole.factors.n_factors
    links = (support if links is None else links)[varying]
    whole = _look(whole.analyse, X, seen, ranks, links, n_factors) or whole
    rng, n_pairs = np.random.default_rng(0), _PAIRS[n_features > _NARROW]
    halves = [half for _ in range(n_pairs) for half in np.array_split(rng.permutation(len(X)), 2)]

    def look(rows: np.ndarray) -> _Look | None:
        # With the links of the whole: a standard error is that of one estimator.
        return _look(whole.analyse, X[rows], seen, ranks, links, n_factors)

    looks = side_by_side(look, halves, bytes_each=2 * X.nbytes)  # a few copies of half of the table
    pairs = [(a, b) for a, b in zip(looks[::2], looks[1::2], strict=True) if a is not None and b is not None]
    agreement, selection = np.zeros((n_pairs, n_active)), np.zeros((n_features, n_active))
    deviation = np.full((n_features, n_active), np.nan)
    companions, spans = _companions(pairs, n_active)
    if pairs:
        agreement[: len(pairs)] = [np.abs((a.codes * b.codes).sum(0)) for a, b in pairs]
        selected = side_by_side(
            lambda half: _links(half, n_samples, shrinkage), [half for pair in pairs for half in pair]
        )
        selection[varying] = np.sum(selected, axis=0) / (2 * n_pairs)
        squares = np.stack([np.square(a.free - b.free) / 4.0 for a, b in pairs])
        known = ~np.isnan(squares).all((0, 1))
        kept = np.nanmean(squares[:, :, known], axis=0) * min(1.0, len(inputs) / n_samples)
        deviation[np.ix_(varying, known)] = np.sqrt(kept)
    loadings = np.zeros((n_features, n_active))
    loadings[varying] = np.where(links, whole.free, 0.0)
    return Resamples(agreement, whole.match, companions, spans, selection, deviation, loadings)


def spines_of_halves(
    inputs: np.ndarray,
    shown: np.ndarray,
    codes: np.ndarray,
    support: np.ndarray,
    seeds: np.ndarray,
    *,
    n_samples: float,
    counts: bool = False,
) -> list[tuple[np.ndarray, np.ndarray] | None] | None:
    """Sparse linear models of halves of the rows, one for each seed.

    Parameters
    ----------
    inputs, shown, codes, support, n_samples, counts
        As for `resample_factors`.
    seeds : integer array of shape (n_halves,)

    Returns
    -------
    list of (mask, codes), or None
        Loadings of shape (n_features, n_factors), and ranks of the codes of the rows shown. None for a half
        that cannot be analysed; None in all where `resample_factors` says nothing.
    """
    start = _begin(inputs, shown, codes, support, n_samples, counts)
    if start is None:
        return None
    varying, X, seen, ranks, whole, shrinkage = start
    found: list[tuple[np.ndarray, np.ndarray] | None] = []
    for seed in seeds:
        rows = np.random.default_rng(seed).permutation(len(X))[: len(X) // 2]
        look = _look(whole.analyse, X[rows], seen, ranks, support[varying], whole.factors.n_factors)
        if look is None:
            found.append(None)
            continue
        sparse = sparse_loadings(look.factors, n_samples, shrinkage).loadings
        mask = np.zeros((len(support), codes.shape[1]))
        mask[varying] = np.where(look.partner >= 0, sparse[:, look.partner], 0.0)
        found.append((mask, look.codes))
    return found


class _Look(NamedTuple):
    """A linear analysis of some rows, in the order and sign of the factors of the fit."""

    analyse: Analysis
    factors: LinearFactors
    partner: np.ndarray  # column of the analysis for each factor of the fit, -1 for none
    match: np.ndarray
    codes: np.ndarray  # ranks of the partner's codes, centred and of norm one; zeros for none
    free: (
        np.ndarray
    )  # loadings of the partner, of links without a penalty, in units of the inputs; NaN for none


def _begin(
    inputs: np.ndarray,
    shown: np.ndarray,
    codes: np.ndarray,
    support: np.ndarray,
    n_samples: float,
    counts: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, _Look, float] | None:
    """Features that vary, their inputs, ranks of the codes, the analysis of all rows and its shrinkage."""
    n_active = support.shape[1]
    scale = _moments(inputs)[1]
    varying = np.flatnonzero(scale > 1e-6)
    n_factors = min(n_active, len(varying) - 1)
    if len(inputs) < _FEWEST or n_factors < 1 or not codes.std(0).all():
        return None
    X, ranks = inputs[:, varying].astype(np.float64), _ranks(codes)
    seen = shown[:, varying].astype(np.float64)
    kinds: list[Analysis] = [analyse_factors]
    if counts and not np.isnan(X).any():
        kinds.append(find_parts)
    whole = _nearest(kinds, X, seen, ranks, support[varying], n_factors)
    if whole is None:
        return None
    shrinkage = max(SHRINKAGES, key=lambda value: _overlap(_links(whole, n_samples, value), support[varying]))
    return varying, X, seen, ranks, whole, shrinkage


def _nearest(
    kinds: list[Analysis],
    X: np.ndarray,
    shown: np.ndarray,
    ranks: np.ndarray,
    support: np.ndarray,
    n_factors: int,
) -> _Look | None:
    """The linear analysis of all rows that has the factors of the fit best.

    Curves and products of factors look like further factors to it: some more are tried where it misses one.
    """
    best: _Look | None = None
    for more in range(min(_MORE, X.shape[1] - 1 - n_factors) + 1):
        looks = [
            look
            for kind in kinds
            if (look := _look(kind, X, shown, ranks, support, n_factors + more)) is not None
        ]
        for look in looks:
            if best is None or look.match.mean() > best.match.mean() + _CLEARLY * bool(more):
                best = look
        if best is not None and best.match.min() >= _SEEN:
            break
    return best


def _look(
    analyse: Analysis,
    X: np.ndarray,
    shown: np.ndarray,
    ranks: np.ndarray,
    support: np.ndarray,
    n_factors: int,
) -> _Look | None:
    """Analyse some rows; None where the arithmetic fails on them."""
    mean, scale = _moments(X)
    scale = np.maximum(scale, 1e-6)
    try:
        factors = analyse((X - mean) / scale, n_factors)
        codes = _ranks(np.nan_to_num((shown - mean) / scale) @ factors.maps())
    except np.linalg.LinAlgError:
        return None
    correlation = ranks.T @ codes
    mine, theirs = linear_sum_assignment(-np.abs(correlation))
    sign = np.where(correlation[mine, theirs] < 0, -1.0, 1.0)
    n_active = ranks.shape[1]
    partner, match = np.full(n_active, -1), np.zeros(n_active)
    partner[mine], match[mine] = theirs, np.abs(correlation[mine, theirs])
    aligned, dense = np.zeros_like(ranks), np.full((X.shape[1], n_active), np.nan)
    aligned[:, mine], dense[:, mine] = codes[:, theirs] * sign, factors.loadings[:, theirs] * sign
    free = dense
    if len(mine) == n_active == factors.n_factors:
        turned = factors.correlation[np.ix_(theirs, theirs)] * np.outer(sign, sign)
        given = _given_links((X - mean) / scale, LinearFactors(dense, turned, factors.uniqueness), support)
        free = np.where(support, given, dense)
    return _Look(analyse, factors, partner, match, aligned, free * scale[:, None])


def _given_links(X: np.ndarray, factors: LinearFactors, support: np.ndarray) -> np.ndarray:
    """Loadings on the links of the fit: with the axes free where anchors hold them, else with axes held."""
    if X.shape[1] <= _NARROW and is_confirmable(support) and not np.isnan(X).any():
        own = support.any(1)
        found = confirm_factors(
            (X.T @ X / len(X))[np.ix_(own, own)], np.where(support, np.sign(factors.loadings), 0)[own]
        )
        if found is not None:
            loadings = np.zeros(support.shape)
            loadings[own] = found.loadings
            return loadings
    return free_loadings(factors, support)


def _links(look: _Look, n_samples: float, shrinkage: float) -> np.ndarray:
    """Support of the sparse loadings, as of a table of all rows: boolean, (n_features, n_active)."""
    used = sparse_loadings(look.factors, n_samples, shrinkage).loadings != 0
    return np.where(look.partner >= 0, used[:, look.partner], False)


def _overlap(links: np.ndarray, support: np.ndarray) -> float:
    """Jaccard index of two sets of links."""
    return float((links & support).sum() / max((links | support).sum(), 1))


def _companions(pairs: list[tuple[_Look, _Look]], n_active: int) -> tuple[np.ndarray, np.ndarray]:
    """For each factor, others to take it together with, found greedily, and what their spaces share."""
    n_sizes = min(_LARGEST_GROUP, n_active) - 1
    companions, spans = np.full((n_active, n_sizes), -1), np.zeros((n_active, n_sizes))
    if not pairs:
        return companions, spans
    grams = [(a.codes.T @ a.codes, a.codes.T @ b.codes, b.codes.T @ b.codes) for a, b in pairs]
    for k in range(n_active):
        members = [k]
        for size in range(n_sizes):
            others = [other for other in range(n_active) if other not in members]
            values = [
                np.mean([_least_canonical(*gram, [*members, other]) for gram in grams]) for other in others
            ]
            best = int(np.argmax(values))
            members.append(others[best])
            companions[k, size], spans[k, size] = others[best], values[best]
    return companions, spans


def _least_canonical(aa: np.ndarray, ab: np.ndarray, bb: np.ndarray, members: list[int]) -> float:
    """Smallest canonical correlation of two sets of variables, from their products."""
    own = np.ix_(members, members)
    roots = []
    for gram in (aa[own], bb[own]):
        values, vectors = np.linalg.eigh(gram)
        if values[0] < 1e-8:
            return 0.0
        roots.append(vectors / np.sqrt(values))
    return float(np.linalg.svd(roots[0].T @ ab[own] @ roots[1], compute_uv=False)[-1])


def _moments(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column over what is there; 0 for a column without values."""
    n_seen = np.maximum((~np.isnan(X)).sum(0), 1)
    mean = np.nansum(X, 0, dtype=np.float64) / n_seen
    return mean, np.sqrt(np.nansum(np.square(X - mean), 0) / n_seen)


def _ranks(codes: np.ndarray) -> np.ndarray:
    """Ranks of each column, centred and of norm one, so that products are rank correlations."""
    ranks = rankdata(codes, axis=0)
    ranks = ranks - ranks.mean(0)
    return np.asarray(ranks / np.maximum(np.linalg.norm(ranks, axis=0), 1e-12))
