"""How many linear factors a table has, for those who want to know before they fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sparsevae.aliases import TableLike
from sparsevae.annotations.missing import reveal_missing
from sparsevae.exceptions import DataError
from sparsevae.principal import parallel_eigenvalues
from sparsevae.summaries import column_moments, constant_columns, dense_table
from sparsevae.validation import (
    check_columns_numeric,
    check_finite,
    check_fraction,
    check_in_memory,
    check_positive,
)

__all__ = ["ParallelAnalysis", "parallel_analysis"]


class ParallelAnalysis(int):
    """The number of linear factors, with the eigenvalues behind it.

    Attributes
    ----------
    n_factors : int
        The number itself.
    table : DataFrame
        A row per rank: ``eigenvalue`` of the correlation matrix, ``threshold`` that permuted tables reach,
        and whether the factor is ``kept``.
    """

    table: pd.DataFrame

    @property
    def n_factors(self) -> int:
        """The number itself."""
        return int(self)


def parallel_analysis(
    X: TableLike,
    *,
    n_permutations: int = 20,
    quantile: float = 0.95,
    max_factors: int = 50,
    random_state: int | None = 0,
) -> ParallelAnalysis:
    """Number of linear factors of a table by Horn's parallel analysis.

    A factor counts as long as its eigenvalue of the correlation matrix exceeds what the same rank reaches
    when every column is permuted on its own.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
        NaN, or a masked cell, is missing: correlations are those of the rows that have both features.
    n_permutations : int
    quantile : float
        Of the permuted eigenvalues, at each rank.
    max_factors : int
        Eigenvalues that are looked at.
    random_state : int or None

    Returns
    -------
    ParallelAnalysis
        A whole number, with a ``table`` of the eigenvalues.

    Notes
    -----
    The fit does not need it: `SparseVAE` tries numbers around this one and chooses on held-out rows, because
    products and curves of factors look like further factors to a linear analysis.

    Examples
    --------
    >>> from sparsevae import parallel_analysis
    >>> from sparsevae.datasets import load_ability_tests
    >>> parallel_analysis(load_ability_tests().X) == 3
    True
    """
    check_in_memory(X)
    check_columns_numeric(X)
    check_positive("n_permutations", n_permutations, integer=True)
    check_positive("max_factors", max_factors, integer=True)
    check_fraction("quantile", quantile)
    names = getattr(X, "columns", None)
    table: Any = reveal_missing(X)
    values = np.asarray(dense_table(table), dtype=np.float64)
    if values.ndim != 2 or min(values.shape) < 2:
        raise DataError(
            f"Expected a table of at least two rows and two columns; got shape {values.shape}. Pass the "
            "whole "
            "table."
        )
    features = range(values.shape[1]) if names is None else list(names)
    check_finite(values, features, may_be_missing=True)
    mean, variance = column_moments(values)
    constant = constant_columns(mean, variance)
    standard = np.where(constant, 0.0, (values - mean) / np.where(constant, 1.0, np.sqrt(variance)))
    observed, threshold = parallel_eigenvalues(
        standard, n_permutations, quantile, random_state, max_factors=max_factors
    )
    kept = np.logical_and.accumulate(observed > threshold)
    result = ParallelAnalysis(int(kept.sum()))
    ranks = pd.RangeIndex(1, len(observed) + 1, name="rank")
    result.table = pd.DataFrame({"eigenvalue": observed, "threshold": threshold, "kept": kept}, index=ranks)
    return result
