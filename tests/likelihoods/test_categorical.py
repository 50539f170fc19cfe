from __future__ import annotations

import torch

from sparsevae.likelihoods import Bernoulli, Categorical

OUTPUT = torch.tensor([[-2.0, 0.3], [0.1, -0.7], [4.0, 9.0]], dtype=torch.float64)


def test_log_odds_against_the_reference_are_straight_lines(parameters, output):
    likelihood = Categorical(5)
    x = torch.full_like(output, 3.0)
    odds = likelihood.log_density(x, output, parameters, None) - likelihood.log_density(
        torch.zeros_like(x), output, parameters, None
    )
    expected = parameters["intercepts"][2] + likelihood.scores(parameters)[2] * output
    torch.testing.assert_close(odds, expected)


def test_two_categories_are_zeros_and_ones():
    x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    likelihood = Categorical(2)
    parameters = {k: v.detach().double() for k, v in likelihood.initial_parameters(2).items()}
    torch.testing.assert_close(
        likelihood.log_prob(x, OUTPUT, parameters), Bernoulli().log_prob(x, OUTPUT, {})
    )
    torch.testing.assert_close(likelihood.expectation(OUTPUT, parameters), torch.sigmoid(OUTPUT))


def test_scores_have_one_size_and_a_feature_may_have_fewer_categories(parameters):
    likelihood = Categorical(5)
    parameters = {**parameters, "n_levels": torch.tensor([5.0, 3.0, 2.0, 5.0, 5.0], dtype=torch.float64)}
    scores = likelihood.scores(parameters)
    torch.testing.assert_close(
        scores.square().sum(0) / (parameters["n_levels"] - 1), torch.ones(5, dtype=torch.float64)
    )
    assert (scores[2:, 1] == 0).all()
    chance = likelihood.probabilities(torch.zeros(1, 5, dtype=torch.float64), parameters)
    assert (chance[3:, 0, 1] == 0).all()
    torch.testing.assert_close(chance.sum(0), torch.ones(1, 5, dtype=torch.float64))


def test_a_hole_is_filled_with_the_most_probable_category(parameters, output):
    likelihood = Categorical(5)
    chance = likelihood.probabilities(output, parameters)
    assert torch.equal(likelihood.fill(output, parameters), chance.argmax(0).double())


def test_first_parameters_give_each_category_its_share():
    counts = torch.tensor([[10.0, 5.0], [20.0, 15.0], [70.0, 0.0]])
    likelihood = Categorical(3)
    parameters = likelihood.initial_parameters(2) | likelihood.parameters_from_counts(counts)
    parameters["n_levels"] = torch.tensor([3.0, 2.0])
    found = likelihood.probabilities(torch.zeros(1, 2), parameters)[:, 0]
    torch.testing.assert_close(found, torch.tensor([[0.1, 0.25], [0.2, 0.75], [0.7, 0.0]]))
