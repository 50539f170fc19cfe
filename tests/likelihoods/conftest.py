"""Outputs and parameters of a small table, and draws from it."""

from __future__ import annotations

import pytest
import torch

from .helpers import FLOAT64, N_FEATURES, N_SAMPLES


@pytest.fixture
def output(generator):
    return torch.randn(N_SAMPLES, N_FEATURES, generator=generator, dtype=FLOAT64)


@pytest.fixture
def dispersion():
    return torch.tensor([0.3, 0.8, 1.0, 2.5, 6.0], dtype=FLOAT64)


@pytest.fixture
def parameters(dispersion):
    """One number per feature for each parameter that a likelihood may have; several where it has levels."""
    several = 0.3 * torch.stack([dispersion, 1.0 - dispersion, dispersion.flip(0), 0.1 * dispersion])
    return {
        "noise_variance": dispersion,
        "log_dispersion": dispersion.log(),
        "first_cut": -0.3 * dispersion,
        "log_gaps": several[:3],
        "intercepts": several - 1.0,
        "scores": several,
        "n_levels": torch.full((N_FEATURES,), 5.0, dtype=FLOAT64),
    }


@pytest.fixture
def size():
    return torch.tensor([0.2, 0.5, 1.0, 1.5, 3.0, 8.0], dtype=FLOAT64)


@pytest.fixture
def total():
    return torch.tensor([0.0, 1.0, 5.0, 20.0, 100.0, 3.0], dtype=FLOAT64)


@pytest.fixture
def draw(output, parameters, size, total, generator):
    def draw(likelihood):
        return likelihood.sample(output, parameters, size=size, total=total, generator=generator)

    return draw
