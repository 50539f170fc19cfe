r"""What the zeros of a mask settle by themselves, for almost all values of the loadings.

- `short_set`: the counting rule. Every q factors have at least 2q + 1 features: then the noise variances of a
  linear model are settled (Hosszejni and Frühwirth-Schnatter, arXiv 2211.00671). The rule is sufficient, not
  necessary. It is proved for uncorrelated factors by the ranks of submatrices of the loadings L, and for
  correlated ones :math:`L \Phi^{1/2}` has the same ranks.
- `mixtures`: rotations. Given the noise variances, :math:`L \Phi L^\top` is known, and other loadings with
  these zeros are L M with an invertible M. Column k of M must be orthogonal to the rows of L that are zero in
  column k. It is a multiple of the k-th unit vector if these rows have rank K - 1 (Jöreskog's conditions; see
  Peeters, arXiv 1909.08022).
- `contained`: whether another factor has all features of a factor. It can then be mixed into it without
  changing a zero, whatever the curves. That no other has is the structural sparsity of Zheng, Ng and Zhang
  (arXiv 2206.07751), which settles independent factors without noise.
- `matched`: the matching criterion of Sturma, Kranzlmueller, Portakal and Drton (arXiv 2502.02986), for
  linear models with uncorrelated factors, on small sets.

The generic rank of a matrix with given zeros is the size of its largest matching of rows with columns.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_bipartite_matching, maximum_flow

__all__ = ["MatchingProof", "contained", "matched", "mixtures", "short_set"]


class MatchingProof(NamedTuple):
    """Features by which the matching criterion settles a factor.

    The square of the loading of ``feature`` follows from the covariances of ``feature`` and ``first`` with
    ``feature`` and ``second``, two sets of one size, once the factors settled before are taken away.
    """

    feature: int
    first: tuple[int, ...]
    second: tuple[int, ...]


def short_set(support: np.ndarray) -> list[int]:
    """Factors that break the counting rule: q of them with fewer than 2q + 1 features; empty if none do.

    Parameters
    ----------
    support : boolean array of shape (n_features, n_factors)

    Notes
    -----
    Each factor asks for two features of its own, one of them for three. By Hall's theorem this can be had,
    whichever asks for three, exactly if the rule holds. A minimum cut names the set.
    """
    n_features, n_factors = support.shape
    source, sink = n_factors + n_features, n_factors + n_features + 1
    features, factors = np.nonzero(support)
    rows = [np.full(n_factors, source), factors, n_factors + np.arange(n_features)]
    columns = [np.arange(n_factors), n_factors + features, np.full(n_features, sink)]
    positions = np.concatenate(rows), np.concatenate(columns)
    for k in range(n_factors):
        asked = np.full(n_factors, 2)
        asked[k] = 3
        capacity = np.concatenate([asked, np.full(len(features), 3), np.ones(n_features, dtype=int)])
        graph = csr_array((capacity.astype(np.int32), positions), shape=(sink + 1, sink + 1))
        found = maximum_flow(graph, source, sink)
        if found.flow_value < asked.sum():
            left = csr_array(graph - found.flow)
            left.eliminate_zeros()
            reached = breadth_first_order(left, source, return_predecessors=False)
            return sorted(int(node) for node in reached if node < n_factors)
    return []


def mixtures(support: np.ndarray) -> np.ndarray:
    """Which columns of loadings can take up others without losing a zero, where factors may correlate.

    Parameters
    ----------
    support : boolean array of shape (n_features, n_factors)

    Returns
    -------
    boolean ndarray of shape (n_factors, n_factors)
        At [l, k], whether multiples of column l can be added to column k, alone or with others.
    """
    n_factors = support.shape[1]
    found = np.zeros((n_factors, n_factors), dtype=bool)
    for k in range(n_factors):
        rows = support[~support[:, k]]
        rank = _rank(np.delete(rows, k, axis=1))
        if rank == n_factors - 1:
            continue
        for other in (factor for factor in range(n_factors) if factor != k):
            # A combination that the rows do not see has this column if the rank does not need it.
            found[other, k] = _rank(np.delete(rows, [k, other], axis=1)) == rank
    return found


def contained(support: np.ndarray) -> np.ndarray:
    """At [l, k], whether factor k has all features of factor l: boolean, (n_factors, n_factors).

    Parameters
    ----------
    support : boolean array of shape (n_features, n_factors)
    """
    used = support.astype(np.int64)
    inside = used.T @ used == used.sum(0)[:, None]
    np.fill_diagonal(inside, False)
    return np.asarray(inside)


def matched(support: np.ndarray, largest: int = 3) -> dict[int, MatchingProof]:
    """Factors that the matching criterion settles one after the other, where factors are uncorrelated.

    Parameters
    ----------
    support : boolean array of shape (n_features, n_factors)
    largest : int
        Size of the sets of factors that are tried.

    Notes
    -----
    Of the factors not settled, feature v has h alone. Sets W and U of as many other features are disjoint,
    matched with each other through different factors, and not if v joins both. It is so in two cases, which
    are those searched: features w and u that share h alone; and as many features W as there are factors in a
    set C with h, that have no factor outside C, with as many others U, each matched with all of C.
    """
    proofs: dict[int, MatchingProof] = {}
    while True:
        left = support.copy()
        left[:, list(proofs)] = False
        todo = [int(h) for h in np.flatnonzero(left.any(0))]
        found = next(((h, proof) for h in todo if (proof := _prove(left, h, todo, largest))), None)
        if found is None:
            return proofs
        proofs[found[0]] = found[1]


def _prove(left: np.ndarray, h: int, todo: list[int], largest: int) -> MatchingProof | None:
    """Sets of features that settle factor h among those left, if a search of small sets finds them."""
    alone = np.flatnonzero(left[:, h] & (left.sum(1) == 1))
    if not len(alone):
        return None
    v = int(alone[0])  # features of h alone are all alike
    others = np.flatnonzero(left[:, h] & (np.arange(len(left)) != v))
    used = left[others].astype(np.int64)
    first, second = np.nonzero(np.triu(used @ used.T == 1, 1))
    if len(first):
        return MatchingProof(v, (int(others[first[0]]),), (int(others[second[0]]),))
    rest = [k for k in todo if k != h]
    for size in range(2, min(largest, len(todo)) + 1):
        for chosen in combinations(rest, size - 1):
            columns = [h, *chosen]
            usable = left[:, columns].copy()
            usable[v] = False
            inside = left.sum(1) == left[:, columns].sum(1)
            partners = _match(np.concatenate([usable & inside[:, None], usable], axis=1))
            if (partners >= 0).all():
                features = partners.tolist()
                return MatchingProof(v, tuple(features[:size]), tuple(features[size:]))
    return None


def _match(allowed: np.ndarray) -> np.ndarray:
    """The row that each column has in a largest matching, -1 for none."""
    return np.asarray(maximum_bipartite_matching(csr_array(allowed), perm_type="row"))


def _rank(allowed: np.ndarray) -> int:
    """Generic rank of a matrix that may differ from zero where allowed."""
    return 0 if 0 in allowed.shape else int((_match(allowed) >= 0).sum())
