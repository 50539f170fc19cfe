"""What to show next: features ranked for each row, and each score as a sum over a few factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError
from sparsevae.inspection.codes import Codes, block_size
from sparsevae.inspection.outputs import Outputs
from sparsevae.modules import LatentModule
from sparsevae.summaries import dense_table

__all__ = ["COLUMNS", "Ranking", "explain_ranking", "rank_features", "similarity"]

COLUMNS = (
    "row", "rank", "item", "score", "factor", "contribution", "rank_without", "because", "base", "rest",
)  # fmt: skip
"""Of the table of `explain_ranking`."""

_NAMED = 3  # factors in an explanation
_EVIDENCE = 3  # items of one's own beside a factor


@dataclass(frozen=True)
class Ranking:
    """The best features of each row.

    Attributes
    ----------
    ids : ndarray of int of shape (n_samples, n)
        Positions of features, best first; -1 where a row has fewer candidates.
    scores : ndarray of shape (n_samples, n)
        On the scale on which factors add up: log odds, log rates, or the units of real-valued features; NaN
        beside -1.
    """

    ids: np.ndarray
    scores: np.ndarray


def rank_features(codes: Codes, n: int, *, filter_seen: bool, candidates: np.ndarray) -> Ranking:
    """Rank features for each row by their expected value, a block of rows at a time.

    Parameters
    ----------
    codes : Codes
        Of the rows; a sparse table stays sparse.
    n : int
    filter_seen : bool
        Whether features that are not zero in a row are left out.
    candidates : boolean array of shape (n_features,)
        Features that may be shown.
    """
    _check_comparable(codes.module)
    ids, scores = [], []
    for rows, values in _blocks(codes):
        allowed = _allowed(codes.X, rows, candidates, filter_seen)
        best, found = _best(np.where(allowed, values, -np.inf), n)
        ids.append(best)
        scores.append(found)
    return Ranking(np.concatenate(ids), np.concatenate(scores))


@torch.no_grad()
def explain_ranking(
    codes: Codes,
    ranking: Ranking,
    *,
    filter_seen: bool,
    candidates: np.ndarray,
    factors: dict[int, str],
    features: np.ndarray,
    strength: np.ndarray,
) -> pd.DataFrame:
    r"""Give each score as a sum over factors.

    .. math:: s_j = f_j(0) + \sum_k c_{jk} + \text{rest}, \qquad
        c_{jk} = \tfrac12 \big[f_j(z_k e_k) - f_j(0)\big] + \tfrac12 \big[f_j(z) - f_j(z - z_k e_k)\big]

    A contribution is the mean of what a factor does alone and what is lost without it. For features of one or
    two factors these are Shapley values, and all of them together leave no rest. At most three factors are
    named, the largest contributions first, and only those without which the item would fall: what is left
    goes to the rest.

    Parameters
    ----------
    codes, filter_seen, candidates
        As for `rank_features`.
    ranking : Ranking
    factors : dict from int to str
        Names of the active factors.
    features : ndarray of str
        Names.
    strength : ndarray of shape (n_features, n_factors)
        Signed strengths of links, by which a row's own items are chosen as evidence.

    Returns
    -------
    DataFrame
        See `COLUMNS`.
    """
    listed: list[tuple[object, ...]] = []
    for rows, values in _blocks(codes):
        z = torch.as_tensor(codes.means(rows))
        given, alone = Outputs(codes.module, z), Outputs(codes.module, torch.zeros_like(z))
        base = _scores(codes.module, alone.given)
        without = {k: _scores(codes.module, given.changed(k, 0.0)) for k in factors}
        share = {
            k: 0.5 * (_scores(codes.module, alone.changed(k, z[:, k])) - base + values - without[k])
            for k in factors
        }
        allowed = _allowed(codes.X, rows, candidates, filter_seen)
        for b, row in enumerate(rows):
            own = _own_items(codes.X, row)
            for rank, j in enumerate(ranking.ids[row], start=1):
                if j < 0:
                    break
                parts = {k: float(share[k][b, j]) for k in factors if share[k][b, j] > 0}
                places = {k: 1 + int((allowed[b] & (without[k][b] > without[k][b, j])).sum()) for k in parts}
                # A factor without which the item would stay where it is does not explain why it is there.
                needed = sorted((k for k in parts if places[k] > rank), key=parts.__getitem__, reverse=True)
                named = needed[:_NAMED]
                rest = float(values[b, j] - base[b, j] - sum(parts[k] for k in named))
                about = (int(row), rank, str(features[j]), float(values[b, j]))
                ends = (float(base[b, j]), rest)
                if not named:
                    listed.append((*about, "", 0.0, rank, "", *ends))
                for k in named:
                    because = _evidence(own, float(z[b, k]), strength[:, k], features)
                    listed.append((*about, factors[k], parts[k], places[k], because, *ends))
    return pd.DataFrame(listed, columns=list(COLUMNS))


def similarity(strength: np.ndarray, j: int) -> np.ndarray:
    """Cosine of a feature's strengths with those of each feature; 0 without a common factor."""
    length = np.sqrt(np.square(strength).sum(1))
    scale = np.where(length > 0, length, 1.0)
    return (strength / scale[:, None]) @ (strength[j] / scale[j])


def _blocks(codes: Codes) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some rows, and the scores of all features for them."""
    size = block_size(codes.module)
    for begin in range(0, codes.X.shape[0], size):
        rows = np.arange(begin, min(begin + size, codes.X.shape[0]))
        with torch.no_grad():
            yield rows, _scores(codes.module, codes.module.decode(torch.as_tensor(codes.means(rows))))


def _scores(module: LatentModule, output: Tensor) -> np.ndarray:
    """Outputs on the scale on which factors add up; real-valued features in their own units."""
    return module.observation.to_user_units(output).double().numpy()


def _check_comparable(module: LatentModule) -> None:
    real = module.observation.real_columns
    if real.any() and not real.all():
        raise DataError(
            "Expected features of one kind, to rank them; got real values beside counts or answers of yes "
            "and "
            "no. Fit the items alone."
        )


def _allowed(X: Matrix, rows: np.ndarray, candidates: np.ndarray, filter_seen: bool) -> np.ndarray:
    seen = dense_table(X[rows]) != 0
    return candidates & ~seen if filter_seen else np.broadcast_to(candidates, seen.shape)


def _best(values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the n largest values in each row; of equal ones the first column."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :n]
    found = np.take_along_axis(values, order, 1)
    there = np.isfinite(found)
    ids, scores = np.full((len(values), n), -1), np.full((len(values), n), np.nan)
    ids[:, : order.shape[1]] = np.where(there, order, -1)
    scores[:, : order.shape[1]] = np.where(there, found, np.nan)
    return ids, scores


def _own_items(X: Matrix, row: int) -> np.ndarray:
    if isinstance(X, np.ndarray):
        return np.flatnonzero(X[row])
    return X.indices[X.indptr[row] : X.indptr[row + 1]][X.data[X.indptr[row] : X.indptr[row + 1]] != 0]


def _evidence(own: np.ndarray, z: float, strength: np.ndarray, features: np.ndarray) -> str:
    """Items of a row that speak for its value of a factor, the strongest first."""
    speaking = own[strength[own] * z > 0]
    order = np.argsort(-np.abs(strength[speaking]), kind="stable")[:_EVIDENCE]
    return ", ".join(str(features[j]) for j in speaking[order])
