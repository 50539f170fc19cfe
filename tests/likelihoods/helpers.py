"""Every likelihood, for the tests that all of them share."""

from __future__ import annotations

import pytest
import torch

from sparsevae import likelihoods
from sparsevae.likelihoods import (
    Categorical,
    Gaussian,
    Levels,
    Mixed,
    Multinomial,
    NegativeBinomial,
    Ordinal,
    Poisson,
)

FLOAT64 = torch.float64
N_SAMPLES, N_FEATURES = 6, 5

# Every shared test runs on each of these; a new likelihood joins by being in the registry.
LIKELIHOODS = {
    **{name: kind() for name, kind in likelihoods.LIKELIHOODS.items()},
    "mixed": Mixed([(Poisson(), [3, 0]), (Gaussian(), [1]), (NegativeBinomial(), [2, 4])]),
    "mixed with levels": Mixed([(Ordinal(), [3, 0]), (Gaussian(), [1]), (Categorical(), [2, 4])]),
    "mixed with words": Mixed([(Gaussian(), [0, 4]), (Multinomial(), [1, 2, 3])]),
}
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS)
every_factorised = pytest.mark.parametrize(
    "likelihood",
    [value for value in LIKELIHOODS.values() if value.factorised],
    ids=[key for key, value in LIKELIHOODS.items() if value.factorised],
)
without_levels = pytest.mark.parametrize(
    "likelihood",
    [
        value
        for value in LIKELIHOODS.values()
        if not any(isinstance(part, Levels) for part, _ in value.split(N_FEATURES))
    ],
    ids=repr,
)
