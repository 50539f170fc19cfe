"""A small table of each likelihood, and the names of the likelihoods: `from ..tables import LIKELIHOODS`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sparsevae.datasets import make_anchored_factors

LIKELIHOODS = [
    "gaussian",
    "bernoulli",
    "poisson",
    "negative_binomial",
    "multinomial",
    "ordinal",
    "categorical",
]
FACTORISED = [name for name in LIKELIHOODS if name != "multinomial"]
# Columns of `make_table("mixed")`.
MIXED = {"gaussian": ["a", "b"], "poisson": ["c", "d"], "bernoulli": ["e"], "multinomial": ["f", "g"]}


def make_table(likelihood="gaussian", n_samples=60, n_features=7, seed=0):
    """Two factors, of which features take turns; "mixed" is a data frame of seven columns."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(1).normal(size=(2, n_features)) * (
        np.arange(n_features) % 2 == [[0], [1]]
    )
    signal = rng.normal(size=(n_samples, 2)) @ loadings
    real = 10.0 * np.arange(n_features) + 3.0 * (signal + 0.5 * rng.normal(size=signal.shape))
    binary = (signal + rng.normal(size=signal.shape) > 0).astype(float)
    counts = rng.poisson(np.exp(1.0 + 0.5 * signal)).astype(float)
    counts[:, 0] += 1.0
    if likelihood == "mixed":
        frame = pd.DataFrame(real, columns=list("abcdefg"))
        frame[["c", "d", "f", "g"]] = counts[:, [2, 3, 5, 6]]
        frame["f"] += 1.0
        return frame.assign(e=binary[:, 4])
    levels = 1.0 + np.clip(np.rint(2.0 + 2.0 * signal + 0.5 * rng.normal(size=signal.shape)), 0, 4)
    others = {"gaussian": real, "bernoulli": binary, "ordinal": levels, "categorical": levels}
    return others.get(likelihood, counts)


def make_items(n_samples, n_features, anchors_per_factor):
    """A data frame of items: two factors, so many anchors of each, and the other items of both."""
    data = make_anchored_factors(
        n_samples,
        n_features,
        2,
        anchors_per_factor=anchors_per_factor,
        nonlinear_share=0.0,
        random_state=0,
    )
    return pd.DataFrame(data.X, columns=[f"item {j}" for j in range(n_features)])
