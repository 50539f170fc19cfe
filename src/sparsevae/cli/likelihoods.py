"""Which likelihood suits a table, and why: a proposal in words, for `--likelihood auto`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsevae.cli.tables import blocks_of_values
from sparsevae.validation import OVERDISPERSED, column_moments, resembles_counts

__all__ = ["choose_likelihood"]


def choose_likelihood(X: Any) -> tuple[str, str]:
    """Choose a likelihood by looking at the values.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)

    Returns
    -------
    (str, str)
        Name of the likelihood, and the reason as a clause.
    """
    n_cells, n_nonzero, largest = X.shape[0] * X.shape[1], 0, 0.0
    for values in blocks_of_values(X):
        if values.min() < 0:
            return "gaussian", "some values are negative"
        if not np.array_equal(values, np.rint(values)):
            return "gaussian", "some values are fractions"
        n_nonzero += int(np.count_nonzero(values))
        largest = max(largest, float(values.max()))
    if not n_nonzero:
        return "gaussian", "every value is zero"
    if largest <= 1:
        return "bernoulli", "every value is 0 or 1"
    zeros = 1.0 - n_nonzero / n_cells
    mean, variance = column_moments(X)
    ratio = float(np.median(variance[mean > 0] / mean[mean > 0]))
    what = f"the values are whole numbers with {zeros:.0%} zeros"
    if not resembles_counts(X, mean, variance):
        return "gaussian", f"{what}, as scores are; if they are counts, pass --likelihood negative_binomial"
    if ratio > OVERDISPERSED:
        return (
            "negative_binomial",
            f"{what} that vary more than Poisson counts do (variance {ratio:.1f} times the mean); for words "
            "in documents consider multinomial",
        )
    return "poisson", f"{what} that vary as Poisson counts do (variance {ratio:.1f} times the mean)"
