"""Which likelihood suits a table, and why: a proposal in words, for `--likelihood auto`."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsevae.cli.tables import blocks_of_values
from sparsevae.validation import column_moments

__all__ = ["choose_likelihood"]

_MANY_ZEROS = 0.2  # counts of rare things have zeros; test scores, ratings and ages hardly any
_OVERDISPERSED = 1.2  # typical ratio of variance to mean above which counts are more than Poisson


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
    n_zeros = n_cells - n_nonzero
    if n_zeros < _MANY_ZEROS * n_cells:
        return (
            "gaussian",
            f"the values are whole numbers with few zeros ({n_zeros / n_cells:.0%}), as scores are",
        )
    ratio = _variance_ratio(X)
    zeros = f"the values are whole numbers with many zeros ({n_zeros / n_cells:.0%})"
    if ratio > _OVERDISPERSED:
        return (
            "negative_binomial",
            f"{zeros} that vary more than Poisson counts do (variance {ratio:.1f} times the mean); for words "
            "in documents consider multinomial",
        )
    return "poisson", f"{zeros} that vary as Poisson counts do (variance {ratio:.1f} times the mean)"


def _variance_ratio(X: Any) -> float:
    """Variance over mean of a typical feature among those that occur at all."""
    mean, variance = column_moments(X)
    return float(np.median(variance[mean > 0] / mean[mean > 0]))
