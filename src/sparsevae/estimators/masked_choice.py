"""The number of factors by cells that were hidden from the fit."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone

from sparsevae.aliases import TableLike
from sparsevae.annotations.weights import check_weights
from sparsevae.estimators.factor_estimator import FactorEstimator, new_random_state
from sparsevae.exceptions import ConvergenceWarning, ParameterError
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.imputation import hidden_log_density, hide_cells
from sparsevae.summaries import dense_table
from sparsevae.validation import check_fraction, check_positive

__all__ = ["MaskedChoice", "choose_n_factors"]


@dataclass(frozen=True)
class MaskedChoice:
    """A number of factors, and what speaks for it.

    Attributes
    ----------
    n_factors : int
    reason : str
    table : DataFrame
        A row per number tried: ``n_factors``, ``n_active``, ``score`` (mean log density per hidden cell),
        ``standard_error`` of its distance from the best, ``chosen``.
    """

    n_factors: int
    reason: str
    table: pd.DataFrame


def choose_n_factors(
    estimator: FactorEstimator,
    X: TableLike,
    candidates: Sequence[int],
    *,
    fraction: float = 0.1,
    sample_weight: ArrayLike | None = None,
    observed: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> MaskedChoice:
    """Fit with several numbers of factors to a table with cells hidden, and see which predicts them.

    Parameters
    ----------
    estimator : SparseVAE, VAE, VSC or OIVAE
        Not changed; its ``n_factors`` is not looked at.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    candidates : sequence of int
        Numbers of factors to try.
    fraction : float
        Of the observed cells that are hidden, at random.
    sample_weight, observed
        See `SparseVAE.fit`.
    random_state : int, RandomState or None
        Of the choice of cells.

    Returns
    -------
    MaskedChoice
        The smallest number within one standard error of the best.
    """
    check_fraction("fraction", fraction)
    if not len(candidates):
        raise ParameterError("Expected some numbers of factors to try; got none. Pass for example [2, 4, 8].")
    for number in candidates:
        check_positive("candidates", number, integer=True)
    model = clone(estimator)
    table = model.check_new_table(X, observed)[:, : model.n_features_in_]
    weight = check_weights(sample_weight, table)
    seen, hidden = hide_cells(table, fraction, new_random_state(random_state), table.shape[1])
    densities, n_active = [], []
    for number in sorted(candidates):
        fitted = clone(estimator).set_params(n_factors=number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(seen, sample_weight=weight)
        checked = fitted.check_table(seen)
        whole = np.hstack([dense_table(table), checked[:, table.shape[1] :]])
        marks = np.hstack([hidden, np.zeros((len(hidden), whole.shape[1] - table.shape[1]), dtype=bool)])
        densities.append(hidden_log_density(Codes(fitted.module_, checked), whole, marks))
        n_active.append(len(fitted.active_factors_))
    return _choose(sorted(candidates), np.array(densities), n_active, hidden.sum(1), weight)


def _choose(
    numbers: Sequence[int],
    densities: np.ndarray,
    n_active: Sequence[int],
    n_hidden: np.ndarray,
    weight: np.ndarray | None,
) -> MaskedChoice:
    """The smallest number within one standard error of the best, of the paired difference row by row."""
    rows = np.ones(len(n_hidden)) if weight is None else weight
    cells = float((rows * n_hidden).sum())
    scores = (rows * densities).sum(1) / cells
    best = int(scores.argmax())
    distance = densities - densities[best]
    n_rows = rows.sum()
    spread = distance - (rows * distance).sum(1, keepdims=True) / n_rows
    errors = np.sqrt((rows * np.square(spread)).sum(1)) / cells
    chosen = next(c for c in range(len(numbers)) if scores[c] >= scores[best] - errors[c])
    table = pd.DataFrame(
        {
            "n_factors": list(numbers),
            "n_active": list(n_active),
            "score": scores,
            "standard_error": errors,
            "chosen": np.arange(len(numbers)) == chosen,
        }
    )
    reason = f"{numbers[chosen]} factors predict hidden cells best"
    if chosen != best:
        reason = (
            f"{numbers[chosen]} factors predict hidden cells as well as {numbers[best]} do, within one "
            "standard error"
        )
    return MaskedChoice(int(numbers[chosen]), reason, table)
