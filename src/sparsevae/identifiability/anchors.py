"""Anchor features straight from the correlations of the data: no network, no start, no seed that matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.stats import chi2

from sparsevae.aliases import Matrix, TableLike
from sparsevae.annotations.missing import check_columns_seen
from sparsevae.exceptions import DataError
from sparsevae.identifiability.moments import FoldMoments
from sparsevae.identifiability.one_factor import (
    factor_correlation,
    find_combinations,
    group_loadings,
    structured_rows,
)
from sparsevae.identifiability.rank_test import (
    candidate_pairs,
    contrast_correlation,
    degrees_of_freedom,
    instruments,
    likelihood_ratio,
)
from sparsevae.validation import canonical_csr, check_columns_numeric, check_finite

__all__ = ["AnchorGroups", "anchors_from_covariance"]

LEVELS = (0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 1e-6, 1e-9)
"""Levels of the test among which cross-validation chooses; the smaller, the larger the groups."""

_LEAST_SAMPLES = 40
_LEAST_FEATURES = 4  # two to compare, and two others to compare them by
_SPLITS = (((0, 1), (2, 3)), ((2, 3), (0, 1)), ((0, 2), (1, 3)), ((1, 3), (0, 2)))
_SMALLEST = 1e-12
_NEVER = 1e9  # a statistic beyond every threshold, for pairs that are no candidates


@dataclass(frozen=True)
class AnchorGroups:
    """Groups of features that the correlations show to be anchors of one factor each.

    Attributes
    ----------
    groups : list of integer arrays
        Features of each group, strongest first; largest group first.
    table : DataFrame
        A row per anchor: group, feature, position, loading (correlation with the factor, as far as that is
        known), statistic (the largest of its tests against other members) and threshold.
    factor_correlation : ndarray of shape (n_groups, n_groups)
        Of the factors behind the groups. Two groups with a correlation near one have one factor and two
        curves.
    combinations : list of integer arrays
        Groups left out because others combine to them: replicates of a feature of several factors.
    level : float
        Of the test, as cross-validation chose it.
    threshold : float
        Of the statistic at that level.
    path : DataFrame
        Level, held-out loss relative to that of the unstructured correlations, and mean number of groups.
    """

    groups: list[np.ndarray]
    table: pd.DataFrame
    factor_correlation: np.ndarray
    combinations: list[np.ndarray]
    level: float
    threshold: float
    path: pd.DataFrame = field(repr=False)

    def group_of(self, n_features: int) -> np.ndarray:
        """Group of each feature, -1 for those in none: shape (n_features,)."""
        result = np.full(n_features, -1)
        for g, members in enumerate(self.groups):
            result[members] = g
        return result


def anchors_from_covariance(
    X: TableLike,
    *,
    feature_names: Sequence[object] | np.ndarray | None = None,
    level: float | None = None,
    random_state: int | None = 0,
) -> AnchorGroups:
    r"""Find anchor features, grouped by factor, from the correlations of a table.

    Features i and j are anchors of one factor with one response curve up to scale if some contrast
    :math:`x_i - v x_j` is unrelated to all other features (`sparsevae.identifiability.rank_test`). All pairs
    are tested, with instruments chosen on the other half of the samples; features all of whose pairs pass
    form a group.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        At least 40 samples. Units do not matter. Take logarithms of counts first. NaN for what is missing:
        each correlation is that of the samples that have both features.
    feature_names : sequence of length n_features, optional
        By default the names of a data frame's columns, or x0, x1, ...
    level : float, optional
        Level of each test. By default chosen by cross-validation: the level whose groups, made into the
        one-factor structure they imply, best predict the correlations of samples held out.
    random_state : int or None
        Of the split into four parts.

    Returns
    -------
    AnchorGroups

    Notes
    -----
    Theorem 2 of the paper and Bing et al. (2020), "Adaptive estimation in structured factor models", in a
    form that needs no equal loadings. What cannot be seen in correlations stays unseen: a feature of z1 and
    z1·z2 looks like an anchor of z1 if nothing else depends on the product. An anchor whose curve no other
    anchor shares is not found once there are enough samples to tell the curves apart (A1 asks for two with
    the same curve).

    Examples
    --------
    >>> from sparsevae.datasets import make_anchored_factors
    >>> data = make_anchored_factors(2000, 60, 6, correlation=0.3, nonlinear_share=0.0, random_state=0)
    >>> anchors = anchors_from_covariance(data.X)
    >>> [len(group) for group in anchors.groups]
    [5, 5, 5, 5, 5, 5]
    """
    table, names = _checked(X, feature_names)
    if table.shape[1] < _LEAST_FEATURES:
        return _nothing(level)
    moments = _Folds(table, random_state)
    path = None
    if level is None:
        path = _cross_validate(moments)
        level = float(path["level"].iloc[int(np.argmin(path["loss"]))])
    tests = _PairTests(moments, (0, 1), (2, 3))
    groups = tests.groups(level)
    loadings = [group_loadings(tests.correlation, g) for g in groups]
    between = factor_correlation(tests.correlation, groups, loadings)
    combined = find_combinations(between, [len(g) for g in groups])
    kept = sorted(np.flatnonzero(~combined), key=lambda g: (-len(groups[g]), groups[g].min()))
    order = [np.argsort(-np.abs(h), kind="stable") for h in loadings]
    found = [groups[g][order[g]] for g in kept]
    threshold = tests.threshold(level)
    return AnchorGroups(
        groups=found,
        table=_table(
            found, [loadings[g][order[g]] for g in kept], names, [tests.largest(g) for g in found], threshold
        ),
        factor_correlation=between[np.ix_(kept, kept)],
        combinations=[groups[g] for g in np.flatnonzero(combined)],
        level=level,
        threshold=threshold,
        path=_path() if path is None else path,
    )


class _Folds(FoldMoments):
    """Moments of four folds that remember the instruments of each union of folds."""

    def __init__(self, X: TableLike, random_state: int | None) -> None:
        super().__init__(X, n_folds=4, random_state=random_state)
        self._known: dict[tuple[int, ...], np.ndarray] = {}

    def instruments(self, folds: tuple[int, ...]) -> np.ndarray:
        if folds not in self._known:
            self._known[folds] = instruments(self.correlation(folds), self.n_samples(folds))
        return self._known[folds]


class _PairTests:
    """Tests of all candidate pairs on two sets of folds, each with the instruments of the other."""

    def __init__(self, moments: _Folds, first: tuple[int, ...], second: tuple[int, ...]) -> None:
        both = (*first, *second)
        self.correlation = moments.correlation(both)
        self.rows, self.columns = candidate_pairs(
            self.correlation, moments.instruments(both), moments.n_samples(both)
        )
        self.statistic = np.zeros(len(self.rows))
        self.freedom = 0
        for own, other in ((first, second), (second, first)):
            basis = moments.instruments(other)
            share = contrast_correlation(moments.correlation(own), basis, self.rows, self.columns)
            self.statistic += likelihood_ratio(share, moments.n_samples(own), basis.shape[1])
            self.freedom += degrees_of_freedom(basis.shape[1])
        self._prepare()

    def threshold(self, level: float) -> float:
        return float(chi2.isf(level, self.freedom))

    def groups(self, level: float) -> list[np.ndarray]:
        """Features of which all pairs pass (complete linkage), in groups of at least two."""
        if not len(self.features):
            return []
        labels = fcluster(self._tree, max(self.threshold(level), self._floor) + 1.0, "distance")
        sizes = np.bincount(labels)
        return [self.features[labels == g] for g in np.flatnonzero(sizes >= 2)]

    def largest(self, group: np.ndarray) -> np.ndarray:
        """The largest statistic of each member against the others."""
        position = np.searchsorted(self.features, group)
        return self._distance[np.ix_(position, position)].max(1)

    def _prepare(self) -> None:
        passing = self.statistic <= self.threshold(min(LEVELS))
        self.features = np.unique(np.concatenate([self.rows[passing], self.columns[passing]]))
        if not len(self.features):
            return
        where = np.full(len(self.correlation), -1)
        where[self.features] = np.arange(len(self.features))
        i, j = where[self.rows], where[self.columns]
        both = (i >= 0) & (j >= 0)
        self._distance = np.full((len(self.features),) * 2, _NEVER)
        self._distance[i[both], j[both]] = self._distance[j[both], i[both]] = self.statistic[both]
        np.fill_diagonal(self._distance, 0.0)
        # Statistics below every threshold are alike: there the stronger correlation joins first.
        self._floor = self.threshold(max(LEVELS))
        strength = np.abs(self.correlation[np.ix_(self.features, self.features)])
        order = np.where(self._distance <= self._floor, self._floor + 1.0 - strength, self._distance + 1.0)
        np.fill_diagonal(order, 0.0)
        self._tree = linkage(squareform(order, checks=False), "complete")


def _cross_validate(moments: _Folds) -> pd.DataFrame:
    """Loss of each level on held-out samples, relative to that of the correlations without structure."""
    losses, counts = np.zeros(len(LEVELS)), np.zeros(len(LEVELS))
    for training, held_out in _SPLITS:
        tests = _PairTests(moments, training[:1], training[1:])
        target = moments.correlation(held_out)
        plain = max(float(np.square(target - tests.correlation).sum()), _SMALLEST)  # 0 if nothing varies
        known: dict[bytes, np.ndarray] = {}
        for k, level in enumerate(LEVELS):
            groups = tests.groups(level)
            for g in groups:
                if g.tobytes() not in known:
                    known[g.tobytes()] = group_loadings(tests.correlation, g)
            loadings = [known[g.tobytes()] for g in groups]
            losses[k] += 1.0 + _gain(tests.correlation, target, groups, loadings) / plain
            counts[k] += len(groups)
    return _path(LEVELS, losses / len(_SPLITS), counts / len(_SPLITS))


def _path(levels: ArrayLike = (), loss: ArrayLike = (), n_groups: ArrayLike = ()) -> pd.DataFrame:
    return pd.DataFrame({"level": levels, "loss": loss, "n_groups": n_groups})


def _gain(
    correlation: np.ndarray, target: np.ndarray, groups: list[np.ndarray], loadings: list[np.ndarray]
) -> float:
    """Change of the squared error of all off-diagonal correlations when the groups' structure is imposed."""
    if not groups:
        return 0.0
    members, rows = structured_rows(correlation, groups, loadings)
    change = np.square(target[members] - rows) - np.square(target[members] - correlation[members])
    change[np.arange(len(members)), members] = 0.0
    # Entries between a member and a feature in no group also stand in that feature's row.
    return float(2.0 * change.sum() - change[:, members].sum())


def _nothing(level: float | None) -> AnchorGroups:
    empty = _table([], [], np.empty(0), [], np.nan)
    return AnchorGroups([], empty, np.eye(0), [], np.nan if level is None else level, np.nan, _path())


def _table(
    groups: list[np.ndarray],
    loadings: list[np.ndarray],
    names: np.ndarray,
    statistics: list[np.ndarray],
    threshold: float,
) -> pd.DataFrame:
    rows = [
        (g, names[j], int(j), h, statistic, threshold)
        for g, parts in enumerate(zip(groups, loadings, statistics, strict=True))
        for j, h, statistic in zip(*parts, strict=True)
    ]
    return pd.DataFrame(rows, columns=["group", "feature", "position", "loading", "statistic", "threshold"])


def _checked(X: TableLike, feature_names: Sequence[object] | np.ndarray | None) -> tuple[Matrix, np.ndarray]:
    check_columns_numeric(X)
    names = getattr(X, "columns", None) if feature_names is None else feature_names
    table = canonical_csr(X) if sparse.issparse(X) else np.asarray(X)
    if table.ndim != 2 or table.shape[0] < _LEAST_SAMPLES or table.shape[1] < 1:
        raise DataError(
            f"Expected a table with at least {_LEAST_SAMPLES} samples and a column per feature; got shape "
            f"{table.shape}. Fewer say too little about correlations: pool tables, or read the mask alone."
        )
    if table.dtype.kind not in "iufb":
        table = table.astype(np.float64)
    names = np.array([f"x{j}" for j in range(table.shape[1])] if names is None else list(names), dtype=object)
    if len(names) != table.shape[1]:
        raise DataError(
            f"Expected a name for each of {table.shape[1]} features; got {len(names)}. Pass as many names as "
            "columns."
        )
    check_finite(table, names, may_be_missing=True)
    check_columns_seen(table, names)
    return table, names
