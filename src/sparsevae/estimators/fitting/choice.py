"""Choose among fitted candidates: a held-out bound, a charge per non-zero, and a rule for near ties."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch

from sparsevae.estimators.preparing import FitData
from sparsevae.modules import FactorModule
from sparsevae.modules.surgery import select
from sparsevae.training.initial import initial_outputs_
from sparsevae.training.loop import importance_bounds

__all__ = [
    "drop_lone_factors_",
    "held_out_scores",
    "null_module",
    "parsimonious",
    "pays_for_loadings",
    "reasons",
    "row_bounds",
    "score_table",
]

_PRICE = 1.0  # nats of held-out rows for a further loading where the factors are the same: what AIC asks for
_CLEARLY = 2.0  # standard errors


def held_out_scores(modules: list[FactorModule], data: FitData) -> tuple[int, pd.DataFrame]:
    """The index of the module to go on with, and the table behind the choice: see `score_table`."""
    return score_table(modules, np.stack([row_bounds(module, data) for module in modules]), data)


def row_bounds(module: FactorModule, data: FitData) -> np.ndarray:
    """Importance-weighted bound on log p(x) of each held-out row (of each row where none is held out)."""
    rows = data.validation if data.validation is not None else data.training
    return importance_bounds(module, rows).double().cpu().numpy()


def score_table(modules: list[FactorModule], bounds: np.ndarray, data: FitData) -> tuple[int, pd.DataFrame]:
    r"""The index of the module to go on with, and the table behind the choice.

    .. math:: \text{score}_c = N\, \bar b_c - \tfrac12 \log N \cdot \|W_c\|_0

    :math:`\bar b_c` is the mean over held-out rows of an importance-weighted bound on log p(x). It comes from
    few rows, so near ties are common: of all candidates within one standard error of the best score (of the
    paired difference, row by row) the one with the fewest factors is taken, and of these the sparsest.

    Parameters
    ----------
    modules : list of FactorModule
        Without replicates.
    bounds : ndarray of shape (n_modules, n_rows)
        `row_bounds` of each.
    data : FitData
    """
    n_nonzero = np.array([int(module.support().sum()) for module in modules])
    usable = np.where(np.isfinite(bounds).all(1, keepdims=True), bounds, -np.inf)
    n_active = np.array([int(module.active().sum()) for module in modules])
    chosen, scores, errors = parsimonious(usable, n_active, n_nonzero, data.everything.n_rows)
    table = pd.DataFrame(
        {
            "n_active": n_active,
            "n_nonzero": n_nonzero,
            "bound": bounds.mean(1),
            "score": scores,
            "standard_error": errors,
            "chosen": np.arange(len(modules)) == chosen,
        }
    )
    return chosen, table


def parsimonious(
    bounds: np.ndarray, n_active: np.ndarray, n_nonzero: np.ndarray, n_samples: int
) -> tuple[int, np.ndarray, np.ndarray]:
    """The one-standard-error rule on scores.

    Parameters
    ----------
    bounds : ndarray of shape (n_candidates, n_rows)
        Held-out bound of each row; minus infinity for a candidate that failed.
    n_active, n_nonzero : ndarray of shape (n_candidates,)
    n_samples : int
        Rows of the whole table, for which the bound stands.

    Returns
    -------
    chosen : int
    scores : ndarray of shape (n_candidates,)
    errors : ndarray of shape (n_candidates,)
        Standard error of each score's distance from the best.
    """
    scores = n_samples * bounds.mean(1) - 0.5 * math.log(n_samples) * n_nonzero
    best = int(np.argmax(scores))
    errors = np.zeros(len(bounds))
    usable = np.isfinite(bounds).all(1)
    if usable[best] and bounds.shape[1] > 1:
        distance = bounds[usable] - bounds[best]
        errors[usable] = n_samples * distance.std(1, ddof=1) / math.sqrt(bounds.shape[1])
    near = usable & (scores >= scores[best] - errors)
    near[best] = True
    order = np.lexsort((-scores, n_nonzero, n_active))
    return int(next(c for c in order if near[c])), scores, errors


def pays_for_loadings(bounds: np.ndarray, reference: np.ndarray, n_more: int, n_samples: int) -> bool:
    """Whether a looser mask of the same factors predicts held-out rows so well that it may be less sparse.

    Half the logarithm of the number of samples, which `parsimonious` asks for each non-zero, keeps a factor
    that is none out of the model. Among masks of the same factors it would cost fit that held-out rows show.

    Parameters
    ----------
    bounds, reference : ndarray of shape (n_rows,)
        Held-out bound of each row with the looser mask, and with the stricter one.
    n_more : int
        Loadings that the looser mask has more.
    n_samples : int
        Rows of the whole table, for which the bounds stand.
    """
    gains = n_samples * (bounds - reference)
    error = gains.std(ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else np.inf
    return bool(gains.mean() - _PRICE * n_more > _CLEARLY * error)


def null_module(module: FactorModule, data: FitData) -> FactorModule:
    """The same model with an empty mask: every feature at its mean."""
    null = select(module, 0)
    with torch.no_grad():
        null.mask.copy_(torch.where(null.frozen | null.known, null.mask, 0.0))
        null.noise_variance.fill_(1.0)
        for bias in null.decoder.hidden_biases:
            bias.zero_()
    initial_outputs_(null, data.feature_mean)
    return null


@torch.no_grad()
def drop_lone_factors_(module: FactorModule) -> int:
    """Empty the columns that one feature alone uses; how many they were.

    What no second feature shares cannot be told from that feature's own noise. Known anchors stay.
    """
    fixed = (module.frozen | module.known) & (module.mask != 0)
    lone = (module.support().sum(-2) == 1) & ~fixed.any(-2)
    module.mask.masked_fill_(lone.unsqueeze(-2), 0.0)
    return int(lone.sum())


def reasons(module: FactorModule, n_tried: int, n_lone: int = 0) -> dict[int, str]:
    """Why each factor that was allowed for is not active.

    Parameters
    ----------
    module : FactorModule
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
