"""Settings and seeds that the tests share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

# No deadline: no test asserts on time. Derandomised: the same examples on every machine and every run.
settings.register_profile(
    "sparsevae",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sparsevae")


@pytest.fixture
def rng() -> np.random.Generator:
    """A numpy generator with a fixed seed."""
    return np.random.default_rng(20240615)


@pytest.fixture
def generator() -> torch.Generator:
    """A torch generator with a fixed seed."""
    return torch.Generator().manual_seed(20240615)
