"""Problems with known answers, by name; each gives training and test rows from one seed."""

from __future__ import annotations

from collections.abc import Callable

from sparsevae.datasets import (
    Dataset,
    make_anchored_binary,
    make_anchored_counts,
    make_anchored_factors,
    make_sparse_factors,
)

__all__ = ["PROBLEMS", "Problem"]


class Problem:
    """A generator, how many of its rows train, and what a user would ask for.

    Parameters
    ----------
    make : callable
        Seed to data set.
    n_train : int
    n_factors : int
        Generous: more than the truth has.
    n_seeds : int
        Data sets of the full benchmark.
    likelihood : str
    """

    def __init__(
        self,
        make: Callable[[int], Dataset],
        n_train: int,
        n_factors: int,
        n_seeds: int,
        likelihood: str = "gaussian",
    ) -> None:
        self.make, self.n_train, self.n_factors = make, n_train, n_factors
        self.n_seeds, self.likelihood = n_seeds, likelihood


def _synthetic(correlation: float) -> Problem:
    return Problem(
        lambda seed: make_sparse_factors(1000, correlation=correlation, random_state=seed), 500, 5, 25
    )


def _anchored(correlation: float) -> Problem:
    return Problem(
        lambda seed: make_anchored_factors(3000, 60, 6, correlation=correlation, random_state=seed),
        2000,
        10,
        10,
    )


PROBLEMS: dict[str, Problem] = {
    **{f"synthetic-{rho:g}": _synthetic(rho) for rho in (0.0, 0.2, 0.4, 0.6, 0.8)},
    **{f"anchored-{rho:g}": _anchored(rho) for rho in (0.0, 0.3, 0.6)},
    "noise": Problem(lambda seed: make_anchored_factors(1000, 7, 0, random_state=seed), 500, 5, 10),
    "large": Problem(
        lambda seed: make_anchored_factors(6000, 500, 20, correlation=0.3, random_state=seed), 5000, 30, 1
    ),
    "counts": Problem(
        lambda seed: make_anchored_counts(n_samples=6000, random_state=seed), 5000, 15, 2, "multinomial"
    ),
    "binary": Problem(lambda seed: make_anchored_binary(random_state=seed), 4000, 15, 2, "bernoulli"),
}
