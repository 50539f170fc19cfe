from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from sparsevae.likelihoods import Bernoulli, Ordinal, ordinal_log_prob

CUTS = torch.tensor([[-1.5, -0.2], [0.0, 0.4], [1.2, 3.0]], dtype=torch.float64)  # cut × feature
OUTPUT = torch.tensor([[-2.0, 0.3], [0.1, -0.7], [4.0, 9.0]], dtype=torch.float64)


def chances(output, cuts):
    """Differences of the cumulative logistic distribution, the textbook form."""
    below = expit(cuts[:, None, :] - output[None])
    edges = np.concatenate([np.zeros((1, *output.shape)), below, np.ones((1, *output.shape))])
    return np.diff(edges, axis=0)


def test_log_density_is_that_of_the_cumulative_logit_model():
    expected = np.log(chances(OUTPUT.numpy(), CUTS.numpy()))
    for level in range(4):
        x = torch.full_like(OUTPUT, level)
        found = ordinal_log_prob(x, OUTPUT, CUTS, torch.full((2,), 4.0))
        np.testing.assert_allclose(found.numpy(), expected[level], rtol=1e-10)


def test_a_feature_may_have_fewer_levels_than_another():
    n_levels = torch.tensor([4.0, 3.0])
    total = sum(
        ordinal_log_prob(torch.full_like(OUTPUT, level), OUTPUT, CUTS, n_levels).exp() for level in range(3)
    )
    torch.testing.assert_close(total[:, 1], torch.ones(3, dtype=torch.float64))
    assert (total[:, 0] < 1).all()


def test_two_levels_are_zeros_and_ones():
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    likelihood = Ordinal(2)
    parameters = {
        "first_cut": torch.zeros(2, dtype=torch.float64),
        "log_gaps": torch.zeros(0, 2, dtype=torch.float64),
        "n_levels": torch.full((2,), 2.0, dtype=torch.float64),
    }
    torch.testing.assert_close(
        likelihood.log_prob(x, OUTPUT, parameters), Bernoulli().log_prob(x, OUTPUT, {})
    )
    torch.testing.assert_close(likelihood.expectation(OUTPUT, parameters), torch.sigmoid(OUTPUT))
    chance = torch.sigmoid(OUTPUT)
    torch.testing.assert_close(likelihood.information_at(OUTPUT, parameters), chance * (1.0 - chance))


def test_expected_level_is_the_mean_of_the_levels(parameters, output):
    likelihood = Ordinal(5)
    chance = likelihood.probabilities(output, parameters)
    levels = torch.arange(5.0, dtype=torch.float64)[:, None, None]
    torch.testing.assert_close(chance.sum(0), torch.ones_like(output))
    torch.testing.assert_close((levels * chance).sum(0), likelihood.expectation(output, parameters))


def test_information_is_the_curvature_of_the_expected_log_density(parameters, output):
    likelihood = Ordinal(5)
    chance = likelihood.probabilities(output, parameters)

    def log_densities(outputs):
        return torch.stack(
            [likelihood.log_density(torch.full_like(output, c), outputs, parameters, None) for c in range(5)]
        )

    step = 1e-4
    up, at, down = (log_densities(output + shift) for shift in (step, 0.0, -step))
    curvature = (chance * (up - 2.0 * at + down)).sum(0) / step**2
    torch.testing.assert_close(
        likelihood.information_at(output, parameters), -curvature, rtol=1e-4, atol=1e-6
    )


def test_first_parameters_give_each_level_its_share():
    counts = torch.tensor([[10.0, 5.0], [20.0, 0.0], [30.0, 15.0], [40.0, 0.0]])
    likelihood = Ordinal(4)
    parameters = likelihood.initial_parameters(2) | likelihood.parameters_from_counts(counts)
    parameters["n_levels"] = torch.tensor([4.0, 3.0])
    found = likelihood.probabilities(torch.zeros(1, 2), parameters)[:, 0].detach()
    np.testing.assert_allclose(found[:, 0], [0.1, 0.2, 0.3, 0.4], rtol=1e-4)
    np.testing.assert_allclose(found[:, 1], [5 / 20.5, 0.5 / 20.5, 15 / 20.5, 0.0], rtol=1e-3, atol=1e-6)


def test_one_level_is_refused():
    with pytest.raises(ValueError, match="at least 2 levels for the ordinal likelihood; got 1"):
        Ordinal(1)
