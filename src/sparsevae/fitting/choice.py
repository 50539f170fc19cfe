"""Choose among fitted candidates: a held-out bound, a charge per non-zero, and a rule for near ties."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sparsevae.fitting.data import FitData
from sparsevae.fitting.initial import start_at_means_
from sparsevae.fitting.recipes import Looser
from sparsevae.modules import SparseVAEModule
from sparsevae.training import Batches
from sparsevae.training.loop import step_threads
from sparsevae.training.processes import current_group, summed

__all__ = [
    "drop_lone_factors_",
    "held_out_scores",
    "held_out_weight",
    "importance_bounds",
    "null_module",
    "parsimonious",
    "pays_for_loadings",
    "reasons",
    "row_bounds",
    "score_table",
    "simplest",
]

_DRAWS = (8, 64)  # of a row's importance weights; fewer where rows are many
_CLEARLY = 2.0  # standard errors of a gain that is no chance


def held_out_scores(modules: list[SparseVAEModule], data: FitData) -> tuple[int, pd.DataFrame]:
    """The index of the module to go on with, and the table behind the choice: see `score_table`."""
    return score_table(modules, np.stack([row_bounds(module, data) for module in modules]), data)


def row_bounds(module: SparseVAEModule, data: FitData) -> np.ndarray:
    """Importance-weighted bound on log p(x) of each held-out row (of each row where none is held out)."""
    rows = data.validation if data.validation is not None else data.training
    return importance_bounds(module, rows).double().cpu().numpy()


def held_out_weight(data: FitData) -> np.ndarray | None:
    """How often each of the rows of `row_bounds` counts; None where all count once."""
    rows = data.validation if data.validation is not None else data.training
    weight = rows.source.weight
    return None if weight is None else weight[rows.rows].double().numpy()


@torch.no_grad()
def importance_bounds(module: SparseVAEModule, rows: Batches) -> Tensor:
    """Importance-weighted bound on log p(x) of each row, with fixed draws: shape (..., n_rows)."""
    fewest, most = _DRAWS
    n_draws = min(max(most * 100 // rows.n_rows, fewest), most)
    generator = torch.Generator().manual_seed(0)
    bounds = []
    group = current_group() if rows.is_shared else None
    with step_threads(module, rows):
        for batch, own, n_rows, part, _ in rows.shares(group, shuffle=False):
            weights = []
            for _ in range(n_draws):
                draw = torch.randn(n_rows, module.n_factors, generator=generator)[own].to(batch.x.device)
                weights.append(module.log_weight(batch, draw))
            bound = torch.logsumexp(torch.stack(weights), 0) - math.log(n_draws)
            if group is not None:  # of the other rows nothing is known here
                whole = bound.new_zeros(*bound.shape[:-1], n_rows)
                whole[..., own] = bound if part else 0.0
                bound = whole
            bounds.append(bound)
    return summed(group, {"bounds": torch.cat(bounds, -1)})["bounds"]


def score_table(
    modules: list[SparseVAEModule], bounds: np.ndarray, data: FitData
) -> tuple[int, pd.DataFrame]:
    r"""The index of the module to go on with, and the table behind the choice.

    .. math:: \text{score}_c = N\, \bar b_c - \tfrac12 \log N \cdot \|W_c\|_0

    :math:`\bar b_c` is the mean over held-out rows of an importance-weighted bound on log p(x). It comes from
    few rows, so near ties are common: of all candidates within one standard error of the best score (of the
    paired difference, row by row) the one with the fewest factors is taken, and of these the sparsest.

    Parameters
    ----------
    modules : list of SparseVAEModule
        Without replicates.
    bounds : ndarray of shape (n_modules, n_rows)
        `row_bounds` of each.
    data : FitData
    """
    n_nonzero = np.array([int(module.support().sum()) for module in modules])
    usable = np.where(np.isfinite(bounds).all(1, keepdims=True), bounds, -np.inf)
    n_active = np.array([int(module.active().sum()) for module in modules])
    weight = held_out_weight(data)
    chosen, scores, errors = parsimonious(usable, n_active, n_nonzero, data.everything.n_samples, weight)
    table = pd.DataFrame(
        {
            "n_active": n_active,
            "n_nonzero": n_nonzero,
            "bound": _mean_and_error(bounds, weight)[0],
            "score": scores,
            "standard_error": errors,
            "chosen": np.arange(len(modules)) == chosen,
        }
    )
    return chosen, table


def parsimonious(
    bounds: np.ndarray,
    n_active: np.ndarray,
    n_nonzero: np.ndarray,
    n_samples: float,
    weight: np.ndarray | None = None,
) -> tuple[int, np.ndarray, np.ndarray]:
    """The one-standard-error rule on scores.

    Parameters
    ----------
    bounds : ndarray of shape (n_candidates, n_rows)
        Held-out bound of each row; minus infinity for a candidate that failed.
    n_active, n_nonzero : ndarray of shape (n_candidates,)
    n_samples : float
        Rows of the whole table, by weight, for which the bound stands.
    weight : ndarray of shape (n_rows,), optional
        How often each row counts.

    Returns
    -------
    chosen : int
    scores : ndarray of shape (n_candidates,)
    errors : ndarray of shape (n_candidates,)
        Standard error of each score's distance from the best.
    """
    scores = n_samples * _mean_and_error(bounds, weight)[0] - 0.5 * math.log(n_samples) * n_nonzero
    best = int(np.argmax(scores))
    errors = np.zeros(len(bounds))
    usable = np.isfinite(bounds).all(1)
    if usable[best] and bounds.shape[1] > 1:
        distance = bounds[usable] - bounds[best]
        errors[usable] = n_samples * _mean_and_error(distance, weight)[1]
    near = usable & (scores >= scores[best] - errors)
    near[best] = True
    order = np.lexsort((-scores, n_nonzero, n_active))
    return int(next(c for c in order if near[c])), scores, errors


def simplest(bounds: np.ndarray, gain_kept: float, weight: np.ndarray | None = None) -> int:
    """The first of candidates in order of complexity, the empty one last, that keeps enough of the gain.

    Where no gain is clear of chance, which noise has now and then, it is the empty one.

    Parameters
    ----------
    bounds : ndarray of shape (n_candidates, n_rows)
        Held-out bound of each row; the last candidate has no factors.
    gain_kept : float
        Fraction of the largest gain over no factors.
    weight : ndarray of shape (n_rows,), optional
        How often each row counts.
    """
    with np.errstate(invalid="ignore"):  # a row may be infinitely unlikely without factors too
        gains, errors = _mean_and_error(np.nan_to_num(bounds - bounds[-1], nan=-np.inf), weight)
    best = int(gains.argmax())
    if gains[best] <= _CLEARLY * errors[best]:
        return len(gains) - 1
    return int(np.flatnonzero(gains >= gain_kept * gains[best])[0])


def pays_for_loadings(
    looser: Looser,
    bounds: np.ndarray,
    reference: np.ndarray,
    n_more: int,
    n_samples: float,
    weight: np.ndarray | None = None,
) -> bool:
    """Whether a looser mask of the same factors predicts held-out rows so well that it may be less sparse.

    The BIC-style charge of ½ log N per non-zero in `parsimonious` guards against spurious factors; among
    masks with the same factors it would be too strict.

    Parameters
    ----------
    looser : Looser
    bounds, reference : ndarray of shape (n_rows,)
        Held-out bound of each row with the looser mask, and with the stricter one.
    n_more : int
        Loadings that the looser mask has more.
    n_samples : float
        Rows of the whole table, by weight, for which the bounds stand.
    weight : ndarray of shape (n_rows,), optional
        How often each row counts.
    """
    gains = n_samples * (bounds - reference)
    mean, error = _mean_and_error(gains, weight) if len(gains) > 1 else (gains.mean(), np.inf)
    return bool(mean - looser.price * n_more > looser.clearly * error)


def null_module(module: SparseVAEModule, data: FitData) -> SparseVAEModule:
    """The same model with an empty mask: every feature at its mean."""
    null = module.clone()
    mask = null.mask
    with torch.no_grad():
        mask.weight.copy_(torch.where(mask.frozen | mask.known, mask.weight, 0.0))
        null.noise_variance.fill_(1.0)
        for bias in null.decoder.hidden_biases:
            bias.zero_()
    data.calibrate_(null)
    start_at_means_(null, data.feature_mean)
    return null


@torch.no_grad()
def drop_lone_factors_(module: SparseVAEModule) -> int:
    """Empty the columns that one feature alone uses; how many they were.

    What no second feature shares cannot be told from that feature's own noise. Known anchors stay.
    """
    mask = module.mask
    fixed = (mask.frozen | mask.known) & mask.support()
    lone = (mask.support().sum(-2) == 1) & ~fixed.any(-2)
    mask.weight.masked_fill_(lone.unsqueeze(-2), 0.0)
    return int(lone.sum())


def reasons(module: SparseVAEModule, n_tried: int, n_lone: int = 0) -> dict[int, str]:
    """Why each factor that was allowed for is not active.

    Parameters
    ----------
    module : SparseVAEModule
        The fitted one.
    n_tried : int
        Factors that the chosen candidate began with; 0 for the empty mask.
    n_lone : int
        Of these, factors that one feature alone used.
    """
    active = module.active().cpu().numpy().astype(bool)
    n_emptied = n_tried - active.sum()
    why = {}
    for rank, k in enumerate(np.flatnonzero(~active)):
        if n_tried == 0:
            why[int(k)] = "an empty mask predicts held-out rows as well: the table shows no factor"
        elif rank < n_lone:
            why[int(k)] = "one feature alone used it: not to be told from that feature's own noise"
        elif rank < n_emptied:
            why[int(k)] = "the ladder emptied its column: no feature kept a loading on it"
        else:
            why[int(k)] = f"more than {n_tried} factors were not indicated, or had no better held-out bound"
    return why


def _mean_and_error(values: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the last dimension, and its standard error; by weight, as if rows came that often."""
    if weight is None:
        n_rows = values.shape[-1]
        with np.errstate(invalid="ignore"):  # a candidate that failed is at minus infinity
            return values.mean(-1), values.std(-1, ddof=min(1, n_rows - 1)) / math.sqrt(n_rows)
    total = weight.sum()
    mean = (values * weight).sum(-1) / total
    with np.errstate(invalid="ignore"):  # a candidate that failed is at minus infinity
        squares = (np.square(values - mean[..., None]) * weight).sum(-1)
    return mean, np.sqrt(squares / max(total - 1.0, 1e-12) / total)
