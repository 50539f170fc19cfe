"""Counts: the density against SciPy."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats

from sparsevae.likelihoods import Poisson, poisson_log_prob

from .helpers import N_FEATURES, N_SAMPLES


def test_poisson_density_equals_scipy(output, size, rng):
    x = rng.poisson(3.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    np.testing.assert_allclose(
        poisson_log_prob(torch.from_numpy(x), output),
        stats.poisson.logpmf(x, output.exp().numpy()),
        rtol=1e-10,
    )
    expected = stats.poisson.logpmf(x, size.numpy()[:, None] * output.exp().numpy()).sum(-1)
    np.testing.assert_allclose(
        Poisson().log_prob(torch.from_numpy(x), output, {}, size=size), expected, rtol=1e-10
    )
