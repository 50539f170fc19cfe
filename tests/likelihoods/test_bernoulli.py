"""Zeros and ones: the density against SciPy."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from sparsevae.likelihoods import Bernoulli, bernoulli_log_prob

from .helpers import N_FEATURES, N_SAMPLES


def test_bernoulli_density_equals_scipy(output, rng):
    x = rng.integers(0, 2, size=(N_SAMPLES, N_FEATURES)).astype(float)
    expected = stats.bernoulli.logpmf(x, 1 / (1 + np.exp(-output.numpy())))
    np.testing.assert_allclose(bernoulli_log_prob(torch.from_numpy(x), output), expected, rtol=1e-10)
    np.testing.assert_allclose(
        Bernoulli().log_prob(torch.from_numpy(x), output, {}), expected.sum(-1), rtol=1e-10
    )
