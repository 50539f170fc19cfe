"""Recall and NDCG of ranked items, and the split of users' items into seen and hidden ones.

Items with equal scores share their places: a measure is its mean over all orders of tied items, so that a
model which scores everything alike gets what a random order gets.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sparsevae.aliases import MatrixLike
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics.base import check_same_shape

__all__ = ["ndcg_at_k", "recall_at_k", "split_items"]

_BLOCK_ENTRIES = 2_000_000


def recall_at_k(
    scores: ArrayLike,
    relevant: MatrixLike,
    k: int,
    *,
    protocol: str = "paper",
    seen: MatrixLike | None = None,
    per_user: bool = False,
) -> float | np.ndarray:
    r"""Return the share of a user's relevant items among the k highest scores, at most k of them counted.

    .. math:: \text{Recall@}k = \frac{|\text{top}_k \cap \text{relevant}|}{\min(k, |\text{relevant}|)}

    Parameters
    ----------
    scores : array of shape (n_users, n_items)
    relevant : array or CSR array of shape (n_users, n_items)
        Non-zeros are relevant.
    k : int
    protocol : {"paper", "fold_in"}, default="paper"
        ``"paper"``: the model has seen the very row that it ranks, and nothing is masked (so the published
        tables). ``"fold_in"``: the model has seen ``seen``, those items are left out of the ranking, and
        ``relevant`` holds the others (Liang et al. 2018).
    seen : array or CSR array of shape (n_users, n_items), optional
        For ``"fold_in"``: the items that the model has seen.
    per_user : bool, default=False
        Whether to return a value per user, NaN for those without relevant items, rather than the mean.

    Returns
    -------
    float, or ndarray of shape (n_users,)
        The mean is over users with at least one relevant item.
    """
    values = [
        np.divide(gains.sum(axis=1), np.minimum(k, n_relevant), out=_nan(n_relevant), where=n_relevant > 0)
        for gains, n_relevant in _gains(scores, relevant, k, protocol, seen)
    ]
    return _mean(values, per_user)


def ndcg_at_k(
    scores: ArrayLike,
    relevant: MatrixLike,
    k: int,
    *,
    protocol: str = "paper",
    seen: MatrixLike | None = None,
    per_user: bool = False,
) -> float | np.ndarray:
    r"""Return the normalised discounted cumulative gain of the k highest scores, with gains of 0 or 1.

    .. math:: \text{NDCG@}k =
        \frac{\sum_{r=1}^{k} \mathbb 1[\text{item at } r \text{ relevant}] / \log_2(r+1)}
        {\sum_{r=1}^{\min(k, |\text{relevant}|)} 1 / \log_2(r+1)}

    Parameters
    ----------
    scores, relevant, k, protocol, seen, per_user : see `recall_at_k`

    Returns
    -------
    float, or ndarray of shape (n_users,)
        The mean is over users with at least one relevant item.
    """
    values = []
    for gains, n_relevant in _gains(scores, relevant, k, protocol, seen):
        discounts = 1 / np.log2(np.arange(2, gains.shape[1] + 2))
        best = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(gains.shape[1], n_relevant)]
        values.append(np.divide(gains @ discounts, best, out=_nan(n_relevant), where=n_relevant > 0))
    return _mean(values, per_user)


def split_items(
    X: MatrixLike, *, fraction: float = 0.8, random_state: int | None = 0
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Divide each user's items at random into a part to see and a part to predict.

    Parameters
    ----------
    X : array or CSR array of shape (n_users, n_items)
    fraction : float, default=0.8
        Share of a user's items to see. Of two or more items at least one is predicted; a single one is seen.
    random_state : int or None, default=0

    Returns
    -------
    fold_in, held_out : CSR array of shape (n_users, n_items)
    """
    if not 0 < fraction < 1:
        raise ParameterError(f"Expected 0 < fraction < 1; got {fraction!r}.")
    X = _csr(X)
    n_items = np.diff(X.indptr)
    users = np.repeat(np.arange(X.shape[0]), n_items)
    order = np.lexsort((np.random.default_rng(random_state).random(X.nnz), users))
    place = np.empty(X.nnz, dtype=np.int64)
    place[order] = np.arange(X.nnz) - X.indptr[users]  # place of each item in its user's random order
    n_held_out = np.where(n_items > 1, np.maximum(1, np.floor((1 - fraction) * n_items + 1e-9)), 0)
    held = place < n_held_out[users]
    fold_in, held_out = (
        sparse.csr_array((X.data[part], (users[part], X.indices[part])), shape=X.shape)
        for part in (~held, held)
    )
    return fold_in, held_out


def _gains(
    scores: ArrayLike, relevant: MatrixLike, k: int, protocol: str, seen: MatrixLike | None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Relevance of the k highest scores of each user, tied ones averaged, in blocks of users."""
    scores = np.asarray(scores)
    relevant = _csr(relevant)
    check_same_shape("scores", scores, "relevant", relevant)
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise ParameterError(f"Expected k to be a whole number >= 1; got {k!r}.")
    if protocol not in ("paper", "fold_in"):
        raise ParameterError(f"Expected protocol to be 'paper' or 'fold_in'; got {protocol!r}.")
    if (protocol == "fold_in") != (seen is not None):
        raise ParameterError(
            f"Expected seen exactly when protocol is 'fold_in'; got protocol={protocol!r} and "
            f"seen={'given' if seen is not None else None}."
        )
    known = None if seen is None else _csr(seen)
    if known is not None:
        check_same_shape("scores", scores, "seen", known)
        if known.multiply(relevant).nnz:
            raise DataError("Expected relevant items that were not seen; got some in both. Use split_items.")
    step = max(1, _BLOCK_ENTRIES // max(1, scores.shape[1]))
    for start in range(0, len(scores), step):
        rows = slice(start, start + step)
        values = scores[rows]
        if np.isnan(values).any():
            raise DataError("Expected scores without NaN; got some.")
        is_relevant = relevant[rows].toarray() != 0
        if known is not None:
            values = np.where(known[rows].toarray() != 0, -np.inf, values)
        yield _top_gains(values, is_relevant, min(k, values.shape[1])), is_relevant.sum(axis=1)


def _top_gains(values: np.ndarray, is_relevant: np.ndarray, k: int) -> np.ndarray:
    rows = np.arange(len(values))[:, None]
    top = np.argpartition(-values, k - 1, axis=1)[:, :k]
    top = np.take_along_axis(top, np.argsort(-values[rows, top], axis=1), axis=1)
    ordered = values[rows, top]
    gains = is_relevant[rows, top].astype(float)
    # Ties at the edge reach below place k: all items with that score share the places that are left.
    edge = ordered[:, -1:]
    at_edge = values == edge
    share = (at_edge & is_relevant).sum(axis=1) / at_edge.sum(axis=1)
    gains = np.where(ordered == edge, share[:, None], gains)
    starts = np.ones(ordered.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = np.cumsum(starts.ravel()) - 1  # runs never cross users: each user's first place starts one
    means = np.bincount(run, weights=gains.ravel()) / np.bincount(run)
    return means[run].reshape(gains.shape)


def _csr(X: MatrixLike) -> sparse.csr_array:
    X = sparse.csr_array(X)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _nan(like: np.ndarray) -> np.ndarray:
    return np.full(len(like), np.nan)


def _mean(values: list[np.ndarray], per_user: bool) -> float | np.ndarray:
    joined = np.concatenate(values)
    if per_user:
        return joined
    if np.isnan(joined).all():
        raise DataError("Expected at least one user with a relevant item; got none.")
    return float(np.nanmean(joined))
