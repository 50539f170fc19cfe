"""Methods under comparison: each takes a problem, a data set and a seed and gives an estimator to fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split

from benchmarks.recovery.problems import Problem
from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.datasets import Dataset
from sparsevae.fitting import RECIPES

__all__ = ["ABLATIONS", "METHODS", "RIVALS"]

Method = Callable[[Problem, Dataset, int], Any]

LASSO_RATES = (5.0, 15.0, 50.0, 150.0, 500.0)


class TunedLasso(BaseEstimator):
    """One Laplace rate for all entries, chosen on held-out rows: what the spike and slab is compared with."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed

    def fit(self, X: np.ndarray) -> SparseVAE:
        train, validation = train_test_split(X, test_size=0.2, random_state=self.seed)
        scores = [self._model(rate).fit(train).score(validation) for rate in LASSO_RATES]
        self.model_ = self._model(LASSO_RATES[int(np.argmax(scores))]).fit(X)
        return self.model_

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["model_"], name)

    def _model(self, rate: float) -> SparseVAE:
        return SparseVAE(
            self.problem.n_factors,
            likelihood=self.problem.likelihood,
            spike_rate=rate,
            slab_rate=rate,
            n_init=4,
            random_state=self.seed,
        )


def _with(estimator: Callable[..., Any], **options: Any) -> Method:
    return lambda problem, data, seed: estimator(
        problem.n_factors, likelihood=problem.likelihood, random_state=seed, **options
    )


def _without(**ingredient: Any) -> Method:
    """The default with one field of its recipe turned off, see `Recipe`."""
    return _with(SparseVAE, recipe=replace(RECIPES["default"], **ingredient))


def _known_anchors(problem: Problem, data: Dataset, seed: int) -> SparseVAE:
    """The default, told two anchors of each factor."""
    anchors = {}
    for k in range(data.mask.shape[1]):
        own = np.flatnonzero((data.mask[:, k] != 0) & ((data.mask != 0).sum(1) == 1))
        anchors |= {int(j): k for j in own[:2]}
    return SparseVAE(problem.n_factors, likelihood=problem.likelihood, anchors=anchors, random_state=seed)


METHODS: dict[str, Method] = {
    "default": _with(SparseVAE),
    "known-anchors": _known_anchors,
    "paper": _with(SparseVAE, recipe="paper", learning_rate=0.01),
    "authors": _with(SparseVAE, recipe="authors", learning_rate=0.01),
    "vae": _with(VAE),
    "beta-vae": _with(VAE, beta=2.0),
    "vsc": _with(VSC),
    "oi-vae": _with(OIVAE),
    # Without the spike, as in the paper's appendix, and with one tuned rate.
    "slab": _with(SparseVAE, spike_rate=0.001, slab_rate=0.001),
    "lasso": lambda problem, data, seed: TunedLasso(problem, seed),
    # The default with one ingredient left out.
    "linear-start": _with(SparseVAE, init="rotation"),
    "random-start": _with(SparseVAE, init="random"),
    "identity-covariance": _with(SparseVAE, factor_covariance="identity"),
    "no-gauge": _without(gauge=False),
    "no-ladder": _without(ladder=None),
    "no-looser": _without(looser=None),
    "no-polish": _without(polish=False),
}
RIVALS = ("vae", "paper", "authors", "beta-vae", "vsc", "oi-vae")
ABLATIONS = (
    "slab",
    "lasso",
    "linear-start",
    "random-start",
    "identity-covariance",
    "no-gauge",
    "no-ladder",
    "no-looser",
    "no-polish",
)
