"""What is measured of a table before a fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sparsevae import SparseVAE
from sparsevae.exceptions import DataWarning


@pytest.mark.parametrize(
    "n_samples, n_features, rate", [(50, 20, 0.0), (1000, 99, 0.0), (100, 300, 0.1), (10_000, 100, 0.0125)]
)
def test_inputs_are_left_out_where_they_are_many_and_rows_are_few(n_samples, n_features, rate):
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    data = SparseVAE(2, validation_fraction=0.2, random_state=0)._prepare(X)
    assert data.input_dropout == pytest.approx(rate)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_counts_that_are_fitted_as_real_values_are_warned_of(form, rng):
    counts = form(rng.negative_binomial(2, 0.3, size=(60, 5)).astype(float))
    with pytest.warns(DataWarning, match="looks like counts and is fitted as real values"):
        SparseVAE(2)._prepare(counts)


def test_scores_and_counts_fitted_as_such_are_not_warned_of(rng):
    SparseVAE(2)._prepare(rng.integers(0, 11, size=(60, 5)).astype(float))
    counts = rng.negative_binomial(2, 0.3, size=(60, 5)).astype(float)
    SparseVAE(2, likelihood="negative_binomial")._prepare(counts)
