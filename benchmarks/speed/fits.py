"""Whole fits at about the paper's settings, and what more starts cost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.real import Problem
from benchmarks.speed.timing import interleaved_medians, timed
from sparsevae import SparseVAE
from sparsevae.datasets import make_sparse_factors

__all__ = ["RECIPES", "starts", "whole_fit"]

RECIPES = ("paper", "default")
STARTS = (1, 8)


def whole_fit(problem: Problem, X: Any, recipe: str) -> dict[str, Any]:
    """Fit one table by a recipe, with the paper's epochs and rates where the recipe is the paper's."""
    options = {**problem.options, "likelihood": problem.likelihood, "recipe": recipe, "random_state": 0}
    model = SparseVAE(**options, **(problem.literal if recipe == "paper" else {}))
    seconds = timed(lambda: _fit(model, X))
    return {
        "n_rows": X.shape[0],
        "n_features": X.shape[1],
        "seconds": seconds,
        "aim": problem.aim,
        "paper_minutes": problem.minutes,
        "epochs": model.n_iter_,
        "n_active": len(model.active_factors_),
        "density": float((model.mask_ != 0).mean()),
    }


def starts(repeats: int, patience: float) -> list[dict[str, Any]]:
    """Default fit of the paper's synthetic data from one start and from eight for each number of factors."""
    X = make_sparse_factors(500, correlation=0.4, random_state=0).X

    def run(n_init: int, n_fits: int) -> None:
        for seed in range(n_fits):
            _fit(SparseVAE(n_factors=5, n_init=n_init, random_state=seed), X)

    candidates: dict[str, Callable[[int], None]] = {str(n): partial(run, n) for n in STARTS}
    seconds = interleaved_medians(candidates, repeats, patience=patience).seconds
    return [
        {"n_init": n, "seconds": seconds[str(n)], "ratio_to_one": seconds[str(n)] / seconds["1"]}
        for n in STARTS
    ]


def _fit(model: SparseVAE, X: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's epochs may be too few; that is not the question here
        model.fit(X)
