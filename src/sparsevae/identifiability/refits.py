"""Which factors come back when a model is fitted again, from other seeds or on bootstraps of the samples."""

from __future__ import annotations

import numbers
import time
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import delayed
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import Parameters, TableLike
from sparsevae.exceptions import ConvergenceWarning, DataError, SparseVAEError
from sparsevae.identifiability.jobs import (
    FittedModel,
    Table,
    by_rows,
    count_workers,
    of_rows,
    row_params,
    run_jobs,
    take_rows,
    transform_params,
)
from sparsevae.identifiability.matching import match_factors
from sparsevae.identifiability.resamples import spines_of_halves
from sparsevae.validation import check_choice, check_positive

__all__ = ["REFITTED", "Stability", "stability"]

RETURNED = {"overlap": 0.5, "rank_correlation": 0.8}
"""A factor returns if its match has at least this overlap of supports and this rank correlation."""

REFITTED = {
    "halves": "halves of the samples, by a linear model",
    "seed": "other seeds",
    "bootstrap": "bootstraps of the samples",
}
"""What the refits of each kind are made on."""

_OF_ROWS = ("sample_weight", "groups", "observed", "exposure")  # what describes rows, beside the table
_HALVED_ROWS = 10_000  # samples that are halved at most
_CODED_ROWS = 5000  # samples over which ranks are compared
_CONSENSUS = 0.5


@dataclass(frozen=True)
class Stability:
    """What refits agree on, told for the factors of the reference fit.

    Attributes
    ----------
    reproducibility : Series
        Share of the refits in which each active factor returned.
    selection_probability : DataFrame
        Share of the refits in which w_jk was not zero: a row per feature, a column per active factor. A refit
        in which the factor did not return counts as one without it.
    matches : DataFrame
        A row per refit and factor: refit, factor, partner (column in the refit, -1 for none), overlap,
        rank_correlation, returned.
    refits : DataFrame
        A row per refit: seed, n_active, n_nonzero, n_new (active factors without a counterpart that
        returned), converged, seconds, failure (why there is no fit, empty if there is one).
    how : {"halves", "seed", "bootstrap"}
    """

    reproducibility: pd.Series
    selection_probability: pd.DataFrame
    matches: pd.DataFrame
    refits: pd.DataFrame
    how: str

    def consensus_mask(self, threshold: float = _CONSENSUS) -> pd.DataFrame:
        """Support of the entries selected in at least this share of the refits: boolean, feature × factor."""
        return self.selection_probability >= threshold

    @property
    def table(self) -> pd.DataFrame:
        """A row per factor: reproducibility, mean overlap and rank correlation, size of the consensus."""
        means = self.matches.groupby("factor", sort=False)[["overlap", "rank_correlation"]].mean()
        return pd.DataFrame(
            {
                "reproducibility": self.reproducibility,
                "overlap": means["overlap"].reindex(self.reproducibility.index),
                "rank_correlation": means["rank_correlation"].reindex(self.reproducibility.index),
                "n_consensus": self.consensus_mask().sum(),
            }
        )

    def summary(self) -> str:
        """The result in words."""
        what = REFITTED[self.how]
        fitted = self.refits[self.refits["failure"] == ""]
        fewest, most = fitted["n_active"].min(), fitted["n_active"].max()
        found = f"{most}" if fewest == most else f"{fewest} to {most}"
        lines = [
            f"{_refits(len(fitted))} on {what}; active factors: {found}, and {len(self.reproducibility)} in "
            "the reference."
        ]
        for name, row in self.table.iterrows():
            lines.append(
                f"  {name}: returned in {row['reproducibility']:.0%} (support overlap {row['overlap']:.2f}, "
                f"rank correlation {row['rank_correlation']:.2f}); {row['n_consensus']:.0f} features in the "
                "consensus."
            )
        failed = len(self.refits) - len(fitted)
        if failed:
            lines.append(f"{_refits(failed)} failed; nothing counts as returned there.")
        slow = int((~fitted["converged"]).sum())
        if slow:
            lines.append(f"{_refits(slow)} stopped before the mask had settled.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


def stability(
    model: FittedModel,
    X: TableLike,
    n_refits: int = 20,
    how: str = "halves",
    *,
    random_state: int | None = None,
    n_jobs: int | None = -1,
    verbose: int = 0,
    **fit_params: object,
) -> Stability:
    """Refit a model and report what comes back.

    Parameters
    ----------
    model : SparseVAE
        Fitted: the reference whose factors are looked for.
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        The table of the fit.
    n_refits : int
    how : {"halves", "seed", "bootstrap"}
        "halves" fits the linear spine again on halves of the samples, the evidence behind a verdict, in a
        second or two; other seeds stand in where a model or a table has no spine. The others fit the whole
        model. "seed", on the same samples: is the optimum found again? "bootstrap", on samples drawn with
        replacement, and another seed: would another sample of this size have shown the same?
    random_state : int or None
        Of the seeds and bootstraps; by default the model's own, if that is a number, so that the result
        repeats.
    n_jobs : int or None
        Processes, each with one thread; -1 for all cores, 1 for this process with torch's threads. One
        process also where the model trains on an accelerator.
    verbose : int
        1 shows a progress bar.
    **fit_params
        Arguments of ``fit`` with an entry per row (sample_weight, groups, observed, exposure), as the fit had
        them; a bootstrap draws them with the rows.

    Returns
    -------
    Stability

    Notes
    -----
    Factors are matched by the overlap of their supports and by the rank correlation of their posterior means
    over X, never by column order or Pearson correlation: a fit is identified up to order and coordinate-wise
    transformations.

    All refits are one job, spread over processes. Inside a refit its starts train side by side as replicates
    of one module. Refits themselves are not replicates of one larger module: each has held-out rows of its
    own, and from them its own number of factors and its own end of each phase, which replicates would have to
    share.

    In a bootstrap a sample may be both in the training and in the validation rows of a refit, so that its
    choice among starts is a little less careful than that of the reference.
    """
    check_is_fitted(model, "mask_")
    check_positive("n_refits", n_refits, integer=True)
    check_choice("how", how, tuple(REFITTED))
    table = by_rows(X)
    params = row_params(model, table, fit_params)
    reference = _Reference.of(model, table, params)
    seeds = np.random.SeedSequence(_entropy(random_state, model)).generate_state(n_refits)
    if how == "halves":
        halves = _refit_halves(model, table, seeds, reference, params)
        if halves is not None:
            return _collect(halves, reference, how)
        how = "seed"
    jobs = (delayed(_refit)(model, table, int(seed), how, reference.rows, params) for seed in seeds)
    workers = count_workers(model, n_jobs, n_refits)
    refits = list(run_jobs(jobs, n_refits, workers, verbose=verbose))
    return _collect(refits, reference, how)


class _Refit(NamedTuple):
    seed: int
    mask: np.ndarray | None
    codes: np.ndarray | None
    converged: bool
    seconds: float
    failure: str


class _Reference(NamedTuple):
    mask: np.ndarray
    codes: np.ndarray
    rows: np.ndarray
    active: np.ndarray
    factor_names: list[str]
    feature_names: np.ndarray

    @classmethod
    def of(cls, model: FittedModel, table: Table, params: Parameters) -> _Reference:
        n_samples, n_features = table.shape
        if n_features != model.mask_.shape[0] or n_samples < 3:
            raise DataError(
                f"Expected the table of the fit, with {model.mask_.shape[0]} features and at least 3 "
                f"samples; got shape {table.shape}. Pass the table that fit saw."
            )
        rows = np.linspace(0, n_samples - 1, min(n_samples, _CODED_ROWS)).round().astype(int)
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(n_features)]
        active = np.flatnonzero((model.mask_ != 0).any(0))
        factors = [str(name) for name in model.get_feature_names_out()[active]]
        return cls(
            model.mask_,
            _codes(model, table, rows, params),
            rows,
            active,
            factors,
            np.asarray(names),
        )


def _codes(model: FittedModel, table: Table, rows: np.ndarray, params: Parameters) -> np.ndarray:
    return np.asarray(
        model.transform(take_rows(table, rows), **transform_params(model, of_rows(params, rows)))
    )


def _refit(
    model: FittedModel, table: Table, seed: int, how: str, rows: np.ndarray, params: Parameters
) -> _Refit:
    """One refit; what it warned of and why it failed come back as values."""
    fresh = clone(model).set_params(random_state=seed % (2**31 - 1), verbose=0)
    chosen, chosen_params = table, params
    if how == "bootstrap":
        n_samples: int = table.shape[0]
        draw = np.random.default_rng(seed).integers(0, n_samples, n_samples)
        chosen, chosen_params = take_rows(table, draw), of_rows(params, draw)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fresh.fit(chosen, **chosen_params)
            codes = _codes(fresh, table, rows, params)
        except SparseVAEError as error:
            return _Refit(seed, None, None, False, time.perf_counter() - began, str(error))
    converged = not any(issubclass(item.category, ConvergenceWarning) for item in caught)
    return _Refit(seed, fresh.mask_, codes, converged, time.perf_counter() - began, "")


def _refit_halves(
    model: FittedModel, table: Table, seeds: np.ndarray, reference: _Reference, params: Parameters
) -> list[_Refit] | None:
    """Linear models of halves; None where the fit has kept no such evidence."""
    if not getattr(model, "resamples_", None):
        return None
    codes = model.codes(table, **{k: v for k, v in params.items() if k in _OF_ROWS})
    began = time.perf_counter()
    rows = codes.spread_rows(_HALVED_ROWS)
    found = spines_of_halves(
        codes.inputs(rows),
        codes.inputs(reference.rows),
        reference.codes[:, reference.active],
        reference.mask[:, reference.active] != 0,
        seeds,
        n_samples=float(codes.n_counted),
        counts=bool(codes.module.observation.count_columns.all()),
    )
    if found is None:
        return None
    seconds = (time.perf_counter() - began) / len(seeds)
    failure = "the linear analysis of this half did not succeed"
    return [
        _Refit(int(seed), None, None, False, seconds, failure)
        if half is None
        else _Refit(int(seed), *half, True, seconds, "")
        for seed, half in zip(seeds, found, strict=True)
    ]


def _collect(refits: list[_Refit], reference: _Reference, how: str) -> Stability:
    active, names = reference.active, reference.factor_names
    selected = np.zeros((len(reference.mask), len(active)))
    matches, rows = [], []
    for r, refit in enumerate(refits):
        n_active = n_nonzero = n_returned = 0
        if refit.mask is not None and refit.codes is not None:
            n_active, n_nonzero = int((refit.mask != 0).any(0).sum()), int((refit.mask != 0).sum())
            match = match_factors(reference.mask, reference.codes, refit.mask, refit.codes)
            returned = (match.overlap >= RETURNED["overlap"]) & (
                match.rank_correlation >= RETURNED["rank_correlation"]
            )
            for a, k in enumerate(active):
                if returned[k]:
                    n_returned += 1
                    selected[:, a] += refit.mask[:, match.partner[k]] != 0
                matches.append(
                    (r, names[a], match.partner[k], match.overlap[k], match.rank_correlation[k], returned[k])
                )
        else:
            matches += [(r, name, -1, 0.0, 0.0, False) for name in names]
        rows.append(
            (
                refit.seed,
                n_active,
                n_nonzero,
                n_active - n_returned,
                refit.converged,
                refit.seconds,
                refit.failure,
            )
        )
    columns = ["refit", "factor", "partner", "overlap", "rank_correlation", "returned"]
    frame = pd.DataFrame(matches, columns=columns)
    share = frame.groupby("factor", sort=False)["returned"].mean().reindex(names).astype(float)
    details = ["seed", "n_active", "n_nonzero", "n_new", "converged", "seconds", "failure"]
    return Stability(
        reproducibility=share.rename("reproducibility"),
        selection_probability=pd.DataFrame(
            selected / len(refits), index=reference.feature_names, columns=pd.Index(names, name="factor")
        ),
        matches=frame,
        refits=pd.DataFrame(rows, columns=details),
        how=how,
    )


def _entropy(random_state: int | None, model: FittedModel) -> int | None:
    for seed in (random_state, getattr(model, "random_state", None)):
        if isinstance(seed, numbers.Integral):
            # Apart from the reference's own stream: a refit with its very seed would agree by construction.
            return int(seed) + 1
    return None


def _refits(number: int) -> str:
    return "1 refit" if number == 1 else f"{number} refits"
