"""Replication: a model is fitted to halves of the rows, or to each study, and its factors are compared."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import Parameters, TableLike
from sparsevae.annotations.missing import has_missing
from sparsevae.estimators.base import TableEstimator
from sparsevae.exceptions import ConvergenceWarning, ParameterError, SparseVAEError
from sparsevae.identifiability.jobs import (
    Table,
    by_rows,
    count_workers,
    of_rows,
    row_params,
    run_jobs,
    take_rows,
)
from sparsevae.metrics.replication import FactorSet
from sparsevae.replication.factor_sets import dense_values, factor_set, standardise, varimax_set
from sparsevae.replication.parts import Part, by_study, halve_rows, split_off
from sparsevae.replication.returns import VARIMAX, Replication, compare_parts, find_returns
from sparsevae.validation import check_positive

__all__ = ["replicate"]

_DENSE_CELLS = 50_000_000  # of a sparse table that a factor analysis may make dense


def replicate(
    model: TableEstimator,
    X: TableLike,
    by: Sequence[object] | np.ndarray | pd.Series | str | None = None,
    n_splits: int = 3,
    random_state: int = 0,
    *,
    n_jobs: int | None = -1,
    verbose: int = 0,
    **fit_params: Any,
) -> Replication:
    """Fit a model to halves of the rows, or to each study, and say which factors come back.

    Parameters
    ----------
    model : SparseVAE, VAE, VSC, OIVAE or NMF
        If it is fitted, its factors are those that are looked for; else a copy is fitted to all rows first.
        It is not changed: each part is fitted with its settings, and with another seed.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    by : sequence of length n_samples, or str, optional
        The study of each row, two to twenty of them: each is fitted by itself, and each two are a split. Or
        the name of such a column of a data frame, which is then no feature.
    n_splits : int
        Times that the rows are halved at random; not used with ``by``.
    random_state : int
        Of the halves and of the fits.
    n_jobs : int or None
        Processes, each with one thread; -1 for all cores, 1 for this process with torch's threads.
    verbose : int
        1 shows a progress bar.
    **fit_params
        Arguments of ``fit`` with an entry per row (sample_weight, groups, observed, exposure), cut as the
        rows are, and feature_names.

    Returns
    -------
    Replication
        ``print`` it, or ``plot`` it.

    Notes
    -----
    Every fit, whatever rows it saw, is asked for the factors of all rows, and factors are matched by rank
    correlation there. Beside the model stands a maximum-likelihood factor analysis with a varimax rotation
    and as many factors, on standardised columns (logarithms of counts), where no value is missing.
    """
    check_positive("n_splits", n_splits, integer=True)
    _check_model(model)
    seed = _checked_seed(random_state)
    table, labels = split_off(by_rows(X), by)
    parts = halve_rows(table.shape[0], n_splits, seed) if labels is None else by_study(labels, seed)
    fit_params = row_params(model, table, fit_params)
    reference = _reference(model, table, seed, fit_params)
    everything = factor_set(reference, table, np.arange(table.shape[0]), fit_params)
    values, notes = _values_for_varimax(reference, table, fit_params)
    n_factors = min(everything.codes.shape[1], table.shape[1] - 1)
    if values is not None and not n_factors:
        values = None
        notes.append("Varimax is left out: the fit has no factor, or the table one feature.")
    settings = clone(reference)
    if getattr(settings, "likelihood", None) == "auto":
        settings.set_params(likelihood=reference.likelihood_)  # parts are not to choose different ones
    jobs = (
        delayed(_fit_part)(settings, table, part, fit_params, values, n_factors)
        for part in parts.rows.values()
    )
    workers = count_workers(model, n_jobs, len(parts.rows))
    done = run_jobs(jobs, len(parts.rows), workers, unit="fit", verbose=verbose)
    fits = dict(zip(parts.rows, done, strict=True))
    own = {name: fit.factors for name, fit in fits.items()}
    rows = compare_parts(type(model).__name__, own, parts.splits)
    if values is not None:
        rows += compare_parts(VARIMAX, {name: fit.varimax for name, fit in fits.items()}, parts.splits)
    names = [str(name) for name in reference.get_feature_names_out()[reference.active_factors_]]
    features = [str(name) for name in reference.feature_names()]
    factors, matches = find_returns(everything, own, parts.splits, names, features)
    return Replication(
        factors,
        pd.DataFrame(rows),
        matches,
        table.shape[0],
        parts.studies,
        (*notes, *_failures(fits)),
    )


class _Fit(NamedTuple):
    factors: FactorSet
    varimax: FactorSet
    converged: bool
    failure: str


def _fit_part(
    settings: TableEstimator,
    table: Table,
    part: Part,
    fit_params: Parameters,
    values: np.ndarray | None,
    n_factors: int,
) -> _Fit:
    """Fit one part, by the model and by varimax; what failed has no factors."""
    nothing = FactorSet(np.empty((table.shape[0], 0)), np.empty((table.shape[1], 0)))
    fresh = clone(settings).set_params(random_state=part.seed, verbose=0)
    own, varimax, failure = nothing, nothing, ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fresh.fit(take_rows(table, part.rows), **of_rows(fit_params, part.rows))
            own = factor_set(fresh, table, part.rows, fit_params)
        except SparseVAEError as error:
            failure = " ".join(str(error).split())
        if values is not None:
            half, everything = standardise(values[part.rows], values)
            varimax = varimax_set(half, everything, n_factors, part.seed)
    converged = not any(issubclass(item.category, ConvergenceWarning) for item in caught)
    return _Fit(own, varimax, converged, failure)


def _reference(model: TableEstimator, table: Table, seed: int, fit_params: Parameters) -> TableEstimator:
    """The model itself if it is fitted, else a fitted copy."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        fresh = clone(model)
        if fresh.random_state is None:
            fresh.set_params(random_state=seed)
        return fresh.fit(table, **fit_params)
    return model


def _values_for_varimax(
    reference: TableEstimator, table: Table, fit_params: Parameters
) -> tuple[np.ndarray | None, list[str]]:
    """What a factor analysis sees of the table, counts as logarithms; None and the reason where it cannot."""
    parts = reference.resolved_likelihood().split(table.shape[1])
    if not all(part.ordered for part, _ in parts):
        return None, ["Varimax is left out: categories without an order are no numbers."]
    if sparse.issparse(table) and table.shape[0] * table.shape[1] > _DENSE_CELLS:
        return None, ["Varimax is left out: the table is too large to be made dense."]
    values = dense_values(table)
    if has_missing(values) or "observed" in fit_params:
        return None, ["Varimax is left out: the table has missing values."]
    for part, columns in parts:
        if part.support == "count":
            values[:, columns] = np.log1p(values[:, columns])
    return values, ["Varimax counts every row once."] if "sample_weight" in fit_params else []


def _failures(fits: Mapping[str, _Fit]) -> list[str]:
    notes = [f"The fit to {name} failed: {fit.failure}" for name, fit in fits.items() if fit.failure]
    slow = sum(not fit.converged for fit in fits.values())
    if slow:
        notes.append(f"{slow} of {len(fits)} fits stopped before the mask had settled.")
    return notes


def _checked_seed(random_state: object) -> int:
    whole = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    seed = int(random_state) if whole else -1  # type: ignore[call-overload]
    if seed < 0:
        raise ParameterError(
            f"Expected random_state to be a whole number of at least 0; got {random_state!r}. Pass 0."
        )
    return seed


def _check_model(model: TableEstimator) -> None:
    needed = ("fit", "transform", "resolved_likelihood", "get_feature_names_out")
    if isinstance(model, type) or not all(hasattr(model, name) for name in needed):
        what = model.__name__ if isinstance(model, type) else type(model).__name__
        raise ParameterError(
            f"Expected an estimator of this package; got {what}. Pass for example SparseVAE(10)."
        )
