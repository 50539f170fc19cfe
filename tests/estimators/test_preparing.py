"""What is measured of a table before a fit."""

from __future__ import annotations

import numpy as np
import pytest

from sparsevae import SparseVAE


@pytest.mark.parametrize(
    "n_samples, n_features, rate", [(50, 20, 0.0), (1000, 99, 0.0), (100, 300, 0.1), (10_000, 100, 0.0125)]
)
def test_inputs_are_left_out_where_they_are_many_and_rows_are_few(n_samples, n_features, rate):
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    data = SparseVAE(2, validation_fraction=0.2, random_state=0)._prepare(X)
    assert data.input_dropout == pytest.approx(rate)
