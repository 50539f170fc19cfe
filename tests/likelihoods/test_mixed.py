"""Several likelihoods in one table."""

from __future__ import annotations

import torch

from sparsevae.likelihoods import Gaussian, Mixed, NegativeBinomial, Poisson, get_likelihood

from .helpers import LIKELIHOODS, N_FEATURES


def test_mixed_density_is_the_sum_of_its_parts(draw, output, parameters, size):
    mixed = LIKELIHOODS["mixed"]
    x = draw(mixed)
    expected = sum(
        part.log_prob(x[:, c], output[:, c], {n: v[..., c] for n, v in parameters.items()}, size=size)
        for part, c in mixed.parts
    )
    torch.testing.assert_close(mixed.log_prob(x, output, parameters, size=size), expected)
    assert set(mixed.initial_parameters(5)) == {"noise_variance", "noise_scale", "log_dispersion"}
    assert mixed.shared == {"noise_scale"}
    assert mixed.uses_size
    assert not LIKELIHOODS["mixed with words"].factorised


def test_a_part_without_columns_is_allowed():
    likelihood = get_likelihood({"poisson": [], "gaussian": [0, 1]}, 2)
    x = torch.zeros(3, 2)
    assert likelihood.log_prob(x, x, {"noise_variance": torch.ones(2)}).shape == (3,)


def test_statistics_and_updates_of_a_part_are_those_of_its_columns(draw, output, parameters):
    mixed = Mixed([(Poisson(), [3, 0]), (Gaussian(), [4, 1]), (NegativeBinomial(), [2])])
    x, own = draw(mixed), [4, 1]
    parameters = {**parameters, "noise_scale": torch.full_like(parameters["noise_variance"], 0.2)}
    sums = mixed.statistics(x, output)
    alone = Gaussian().statistics(x[:, own], output[:, own])
    torch.testing.assert_close({name: value[own] for name, value in sums.items()}, alone)
    some = {name: value[..., own] for name, value in parameters.items()}
    expected = Gaussian().update(some, alone, 6)["noise_variance"]
    updated = mixed.update(parameters, sums, 6)["noise_variance"]
    torch.testing.assert_close(updated[own], expected)
    assert torch.equal(updated[[0, 2, 3]], parameters["noise_variance"][[0, 2, 3]])
    torch.testing.assert_close(mixed.log_prior(parameters), Gaussian().log_prior(some))


def test_a_part_without_columns_has_sums_of_nothing(draw, output):
    """Batches that see some columns only may miss a part's; sums of all batches must add up."""
    mixed = Mixed([(Gaussian(), []), (Poisson(), range(N_FEATURES))])
    sums = mixed.statistics(draw(Poisson()), output)
    assert sums.keys() == Gaussian().statistics(output, output).keys()
    assert not any(value.any() for value in sums.values())


def test_columns_that_lack_a_parameter_do_not_use_it(draw, output, parameters, size):
    mixed = LIKELIHOODS["mixed"]
    x, noise = draw(mixed), parameters["noise_variance"].clone()
    noise[[0, 2, 3, 4]] = torch.nan
    value = mixed.log_prob(x, output, {**parameters, "noise_variance": noise}, size=size)
    assert torch.equal(value, mixed.log_prob(x, output, parameters, size=size))
