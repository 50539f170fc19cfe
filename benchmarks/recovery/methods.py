"""Methods under comparison: each takes a problem and a seed and gives an estimator to fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.recovery.problems import Problem
from sparsevae import VAE, SparseVAE

__all__ = ["METHODS"]


def _sparse(**options: Any) -> Callable[[Problem, int], Any]:
    return lambda problem, seed: SparseVAE(
        problem.n_factors, likelihood=problem.likelihood, random_state=seed, **options
    )


def _vae(problem: Problem, seed: int) -> Any:
    return VAE(problem.n_factors, likelihood=problem.likelihood, random_state=seed)


METHODS: dict[str, Callable[[Problem, int], Any]] = {
    "default": _sparse(),
    "paper": _sparse(recipe="paper", learning_rate=0.01),
    "authors": _sparse(recipe="authors", learning_rate=0.01),
    "vae": _vae,
    # The default with one ingredient left out.
    "linear-start": _sparse(init="rotation"),
    "random-start": _sparse(init="random"),
    "identity-covariance": _sparse(factor_covariance="identity"),
}
