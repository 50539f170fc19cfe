"""Normal noise: the density against SciPy, the variance and its prior against their formulas."""

from __future__ import annotations

import numpy as np
import torch
from scipy import stats
from torch.testing import assert_close

from sparsevae.likelihoods import Gaussian, gaussian_log_prob
from sparsevae.priors import calibrate_noise_scale

from .helpers import N_FEATURES, N_SAMPLES


def test_gaussian_density_equals_scipy(output, dispersion, parameters, rng):
    x = rng.normal(size=(N_SAMPLES, N_FEATURES))
    expected = stats.norm.logpdf(x, output.numpy(), np.sqrt(dispersion.numpy()))
    np.testing.assert_allclose(
        gaussian_log_prob(torch.from_numpy(x), output, dispersion), expected, rtol=1e-12
    )
    np.testing.assert_allclose(
        Gaussian().log_prob(torch.from_numpy(x), output, parameters), expected.sum(-1), rtol=1e-12
    )


def test_the_prior_of_the_variances_is_inverse_gamma(dispersion):
    scale = torch.linspace(0.1, 0.5, N_FEATURES, dtype=dispersion.dtype)
    expected = stats.invgamma.logpdf(dispersion.numpy(), 1.5, scale=1.5 * scale.numpy()).sum()
    found = Gaussian().log_prior({"noise_variance": dispersion, "noise_scale": scale})
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_update_is_the_map_of_the_residuals_seen(output, draw):
    x, scale = draw(Gaussian()), torch.linspace(0.1, 0.5, N_FEATURES, dtype=output.dtype)
    observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    sums = Gaussian().statistics(x, output, observed)
    assert torch.equal(sums["seen"], observed.sum(0))
    squares = ((x - output).square() * observed).sum(0)
    assert_close(sums["squares"], squares)
    parameters = {"noise_variance": torch.ones_like(scale), "noise_scale": scale}
    # Residuals that are missing count as those that are there.
    expected = (squares * 100 / observed.sum(0) + 3 * scale) / (100 + 3 + 2)
    assert_close(Gaussian().update(parameters, sums, 100), {"noise_variance": expected})


def test_variances_of_a_reconstruction_have_the_same_prior(rng):
    squares, spread = rng.uniform(1.0, 20.0, size=(2, N_FEATURES))
    found = Gaussian().parameters_from_residuals(squares, squares, squares, N_SAMPLES, spread)
    scale = calibrate_noise_scale(np.ones(1))
    expected = (squares + 3 * scale * spread) / (N_SAMPLES + 3 + 2)
    np.testing.assert_allclose(found["noise_variance"], expected)
    constant = Gaussian().parameters_from_residuals(squares, squares, squares, N_SAMPLES, 0 * spread)
    np.testing.assert_allclose(constant["noise_variance"], (squares + 3 * scale) / (N_SAMPLES + 3 + 2))
