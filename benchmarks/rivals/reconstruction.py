"""Held-out reconstruction of `VAE` beside that of a plain PyTorch VAE with the same sizes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from benchmarks.real import Problem
from benchmarks.rivals.plain_vae import PlainVAE
from sparsevae import VAE
from sparsevae.comparison.measures import MEASURES, Fit
from sparsevae.datasets import Dataset

__all__ = ["DATA_SETS", "METHODS", "TEST", "measure"]

DATA_SETS = ("peerread", "zeisel", "movielens")
TEST = 0.2  # share of the rows that no method sees before it is measured
DRAWS = 16  # behind the plain VAE's bound
_MEASURES = ("nll", "nll_mean", "nll_bound")


def measure(
    problem: Problem, data: Dataset, method: str, seed: int, *, tuning: bool = False
) -> dict[str, Any]:
    """Fit one method to a split that all methods share, and measure it on the held-out rows.

    Parameters
    ----------
    problem : Problem
        Sizes, learning rate, batches and epochs are the paper's.
    data : Dataset
    method : str
        One of `METHODS`.
    seed : int
        Of the split and of the fit.
    tuning : bool
        Leave the held-out rows alone and measure on a fifth of the others, to choose a setting by.

    Returns
    -------
    dict
        ``nll`` at one posterior draw as the paper measures it, ``nll_mean`` at the posterior mean,
        ``nll_bound`` with the divergence; each per row, lower is better.
    """
    rows = np.arange(data.n_samples)
    training, test = train_test_split(rows, test_size=TEST, random_state=seed)
    if tuning:
        training, test = train_test_split(training, test_size=TEST, random_state=seed)
    train, held_out = data.take(training), data.take(test)
    started = time.process_time()
    values = METHODS[method](problem, train, held_out, seed)
    return {"n_rows": len(training), **values, "cpu_seconds": time.process_time() - started}


def _plain(problem: Problem, train: Dataset, test: Dataset, seed: int) -> dict[str, float]:
    settings = {**problem.options, **problem.literal}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = PlainVAE(
            _dense(train.X),
            settings["n_factors"],
            settings["hidden_sizes"],
            real=problem.likelihood == "gaussian",
        )
        model.fit(**{name: settings[name] for name in ("learning_rate", "max_epochs", "batch_size")})
        x = _dense(test.X)
        with torch.no_grad():
            draws = [model.terms(x) for _ in range(DRAWS)]
            values = {
                "nll": draws[0][0],
                "nll_mean": model.terms(x, noise=0.0)[0],
                "nll_bound": sum(first + second for first, second in draws) / DRAWS,
            }
    return {name: float(torch.as_tensor(value).double().mean()) for name, value in values.items()}


def _ours(recipe: str) -> Callable[[Problem, Dataset, Dataset, int], dict[str, float]]:
    def run(problem: Problem, train: Dataset, test: Dataset, seed: int) -> dict[str, float]:
        literal = {name: problem.literal[name] for name in ("learning_rate", "max_epochs")}
        settings = problem.options | (
            {} if recipe == "default" else {**literal, "validation_fraction": 0.0, "recipe": recipe}
        )
        model = VAE(**settings, likelihood=problem.likelihood, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the paper's epochs may be too few; that is measured here
            model.fit(train.X)
        fit = Fit(model, train, test, seed)
        return {name: float(MEASURES[name].compute(fit)) for name in _MEASURES}

    return run


METHODS: dict[str, Callable[[Problem, Dataset, Dataset, int], dict[str, float]]] = {
    "plain": _plain,
    "paper": _ours("paper"),
    "default": _ours("default"),
}
"""The plain VAE, and `VAE` by its recipes."""


def _dense(X: Any) -> torch.Tensor:
    return torch.as_tensor(X.toarray() if hasattr(X, "toarray") else X, dtype=torch.float32)
