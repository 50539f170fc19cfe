"""Ordered answers: factors of the 25 personality items, and held-out answers beside a Gaussian fit."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.holes.imputation import read_items
from sparsevae import SparseVAE


def ordinal(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """The 25 personality items: factors, items on their own trait, and held-out category probabilities."""
    frame = read_items(arguments.data)
    X = frame.to_numpy(dtype=float)
    trait = np.array([name[0] for name in frame.columns])
    for seed in arguments.seeds:
        whole = SparseVAE(10, likelihood="ordinal", random_state=seed).fit(X)
        hidden = (np.random.default_rng(seed).uniform(size=X.shape) < 0.1) & ~np.isnan(X)
        seen = np.where(hidden, np.nan, X)
        scores = {
            likelihood: _category_score(
                SparseVAE(10, likelihood=likelihood, random_state=seed).fit(seen), seen, X, hidden
            )
            for likelihood in ("ordinal", "gaussian")
        }
        yield {
            "seed": seed,
            "n_active": len(whole.active_factors_),
            "items_on_own_trait": _on_own_trait(whole, trait),
            **{f"log_probability_{name}": round(score, 4) for name, score in scores.items()},
        }


def _on_own_trait(model: SparseVAE, trait: np.ndarray) -> int:
    """Items whose strongest factor is that of their trait, each factor being that of one trait at most."""
    strongest = model.variance_shares_.argmax(1)
    traits = np.unique(trait)
    counts = np.array([np.bincount(strongest[trait == t], minlength=model.mask_.shape[1]) for t in traits])
    own, factors = linear_sum_assignment(-counts)
    return int(counts[own, factors].sum())


def _category_score(model: SparseVAE, seen: np.ndarray, X: np.ndarray, hidden: np.ndarray) -> float:
    """Mean log probability of hidden answers by draws, with half a draw for each category."""
    draws = model.impute(seen, n_draws=100, random_state=0)[:, hidden]
    nearest = np.clip(np.rint(draws), 1, 6)
    chance = ((nearest == X[hidden]).sum(0) + 0.5) / (len(draws) + 3.0)
    return float(np.log(chance).mean())
