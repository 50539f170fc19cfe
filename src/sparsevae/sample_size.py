"""How many rows do I need? Tables of growing length are simulated and fitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from tqdm import tqdm

from sparsevae.estimators import SparseVAE
from sparsevae.exceptions import ConvergenceWarning, DataWarning, ParameterError, SparseVAEError
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.simulation import draw_rows
from sparsevae.metrics import spearman_mcc, support_f1
from sparsevae.validation import check_fraction, check_positive

__all__ = ["SHORTEST", "Draw", "Power", "design", "power"]

SHORTEST = 10
"""Rows of the shortest table that is simulated."""

Draw = Callable[[int, int], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""From a number of rows and a seed to a table, the factors as the truth would estimate them, and the "
"support."""


@dataclass(frozen=True)
class Power:
    """What is found in tables of each length.

    Attributes
    ----------
    runs : DataFrame
        A row per simulated table: n_samples, seed, n_found (factors), right_number, support (F1 of the links)
        and factors (rank correlation with what the truth itself would estimate them at: a few noisy features
        do not tell more of a factor, in however many rows).
    n_factors : int
        Factors that are there to be found.
    goal : float
        What a support and factors must reach on average, and a right number in so many tables.
    """

    runs: pd.DataFrame
    n_factors: int
    goal: float

    @property
    def table(self) -> pd.DataFrame:
        """A row per length: means of right_number, support and factors, and the number of tables."""
        grouped = self.runs.groupby("n_samples")
        table = grouped[["right_number", "support", "factors"]].mean()
        return table.assign(n_tables=grouped.size())

    @property
    def n_needed(self) -> int | None:
        """The shortest length from which all three stay at the goal; None if none does."""
        enough = (self.table[["right_number", "support", "factors"]] >= self.goal).all(axis=1)
        stays = enough[::-1].cummin()[::-1]
        return int(stays.idxmax()) if stays.any() else None

    def summary(self) -> str:
        """The answer in one sentence."""
        longest = int(self.runs["n_samples"].max())
        if self.n_needed is None:
            last = self.table.loc[longest]
            return (
                f"{longest} rows are not enough to find these {self.n_factors} factors: their number is "
                "right in "
                f"{last['right_number']:.0%} of the tables, links reach an F1 of {last['support']:.2f} and "
                "factors "
                f"a rank correlation of {last['factors']:.2f}, where {self.goal:g} is asked of each."
            )
        row = self.table.loc[self.n_needed]
        return (
            f"About {self.n_needed} rows are enough to find these {self.n_factors} factors: their number "
            "is right in "
            f"{row['right_number']:.0%} of the tables, links reach an F1 of {row['support']:.2f} and "
            "factors a rank "
            f"correlation of {row['factors']:.2f}."
        )

    def __str__(self) -> str:
        return self.summary()


def power(
    source: SparseVAE | Draw,
    n_samples: Sequence[int] = (100, 200, 400, 800, 1600),
    n_tables: int = 5,
    *,
    estimator: SparseVAE | None = None,
    goal: float = 0.9,
    random_state: int = 0,
    verbose: int = 0,
) -> Power:
    """Simulate tables of growing length, fit each, and say how long one must be.

    Parameters
    ----------
    source : SparseVAE or callable
        A pilot fit, from which rows are drawn; or a `design`.
    n_samples : sequence of int
        Lengths to try.
    n_tables : int
        Simulated tables of each length.
    estimator : SparseVAE, optional
        What is fitted to them; by default as the pilot was fitted.
    goal : float
        See `Power`.
    random_state : int
    verbose : int
        1 shows a progress bar.

    Returns
    -------
    Power
        Its ``summary()`` is the answer in one sentence.

    Notes
    -----
    A pilot fit is taken for the truth. One of too few rows misses weak links, and what it misses is not asked
    for here: the answer is about factors as strong as those that it has found.
    """
    lengths = sorted({int(n) for n in n_samples})
    if not lengths or lengths[0] < SHORTEST:
        raise ParameterError(
            f"Expected lengths of at least {SHORTEST} rows; got {list(n_samples)}. Pass for example "
            "[100, 400]."
        )
    check_positive("n_tables", n_tables, integer=True)
    check_fraction("goal", goal)
    draw = _from_fit(source) if isinstance(source, SparseVAE) else source
    fresh = estimator if estimator is not None else source if isinstance(source, SparseVAE) else SparseVAE()
    support = draw(10, random_state)[2]
    n_factors = int(support.any(0).sum())
    if not n_factors:
        raise ParameterError(
            "Expected a pilot fit with at least one factor; got one without. Describe a design instead: "
            "sparsevae.sample_size.design(3, 5), on the command line --factors 3 --features 5."
        )
    jobs = [(n, random_state + 1000 * i + t) for i, n in enumerate(lengths) for t in range(n_tables)]
    # The longest first: the bar's estimate of the time left then errs on the safe side.
    bar = tqdm(sorted(jobs, reverse=True), unit="fit", dynamic_ncols=True, disable=not verbose)
    runs = pd.DataFrame([_try(clone(fresh), draw, n, seed) for n, seed in bar])
    return Power(runs.sort_values(["n_samples", "seed"], ignore_index=True), n_factors, float(goal))


def design(
    n_factors: int,
    features_per_factor: int,
    *,
    loading: float = 0.6,
    correlation: float = 0.3,
    cross_links: int = 0,
    n_noise: int = 0,
) -> Draw:
    """Describe a table that is still to be collected.

    Parameters
    ----------
    n_factors : int
    features_per_factor : int
        Features of each factor alone.
    loading : float
        Correlation of such a feature with its factor.
    correlation : float
        Of each two factors.
    cross_links : int
        Further features that depend on two neighbouring factors.
    n_noise : int
        Further features of no factor.

    Returns
    -------
    callable
        For `power`.
    """
    for name, value in (("n_factors", n_factors), ("features_per_factor", features_per_factor)):
        check_positive(name, value, integer=True)
    check_fraction("loading", loading)
    check_fraction("correlation", correlation)
    alone = np.repeat(np.eye(n_factors), features_per_factor, axis=0)
    pairs = [np.eye(n_factors)[[c % n_factors, (c + 1) % n_factors]].max(0) for c in range(cross_links)]
    support = np.vstack([alone, *pairs, np.zeros((n_noise, n_factors))])
    weights = loading * support / np.sqrt(np.maximum(support.sum(1, keepdims=True), 1.0))
    covariance = np.full((n_factors, n_factors), correlation) + (1.0 - correlation) * np.eye(n_factors)
    implied = weights @ covariance @ weights.T
    unique = np.maximum(1.0 - implied.diagonal(), 0.05)
    # Regression scores: what the truth itself can tell of the factors from a row.
    scoring = np.linalg.solve(implied + np.diag(unique), weights @ covariance)

    def draw(n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        factors = rng.multivariate_normal(np.zeros(n_factors), covariance, size=n_samples)
        noise = rng.standard_normal((n_samples, len(weights))) * np.sqrt(unique)
        X = factors @ weights.T + noise
        return X, X @ scoring, support != 0

    return draw


def _from_fit(model: SparseVAE) -> Draw:
    support = model.mask_[:, model.active_factors_] != 0

    def draw(n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = draw_rows(model.module_, n_samples, torch.Generator().manual_seed(seed))[1]
        return rows, Codes(model.module_, rows).means()[:, model.active_factors_], support

    return draw


def _try(model: SparseVAE, draw: Draw, n_samples: int, seed: int) -> dict[str, float]:
    X, factors, support = draw(n_samples, seed)
    found, f1, correlation = 0, 0.0, 0.0
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, DataWarning):
            warnings.simplefilter("ignore", kind)
        try:
            model.set_params(random_state=seed, verbose=0).fit(X)
        except SparseVAEError:  # too little to fit at all: nothing is found
            pass
        else:
            found = len(model.active_factors_)
            if found:
                f1 = float(support_f1(model.mask_, support))
                correlation = float(spearman_mcc(model.transform(X)[:, model.active_factors_], factors))
    return {
        "n_samples": n_samples,
        "seed": seed,
        "n_found": found,
        "right_number": float(found == support.any(0).sum()),
        "support": f1,
        "factors": correlation,
    }
