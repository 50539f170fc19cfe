"""What every likelihood keeps: support, mean, missing values, replicates, types, parameters."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from sparsevae.likelihoods import (
    Gaussian,
    Likelihood,
    NegativeBinomial,
    bernoulli_log_prob,
    multinomial_log_prob,
    poisson_log_prob,
)
from sparsevae.metrics.likelihood import CLOSED_FORMS

from .helpers import (
    FLOAT64,
    LIKELIHOODS,
    N_FEATURES,
    N_SAMPLES,
    every_factorised,
    every_likelihood,
    without_levels,
)


@every_likelihood
def test_draws_lie_in_the_support(likelihood, draw):
    x = draw(likelihood)
    assert x.shape == (N_SAMPLES, N_FEATURES)
    assert x.dtype == FLOAT64
    for part, columns in likelihood.split(N_FEATURES):
        values = x[:, columns]
        if part.support in ("count", "binary", "level"):
            assert (values >= 0).all()
            assert (values == values.round()).all()
        if part.support in ("binary", "level"):
            assert (values <= (1 if part.support == "binary" else part.n_levels - 1)).all()


@every_likelihood
def test_draws_average_to_the_mean(likelihood, output, parameters, size, total, generator):
    n_draws = 20_000
    x = likelihood.sample(
        output.expand(n_draws, -1, -1), parameters, size=size, total=total, generator=generator
    )
    x = likelihood.response(x)
    standard_error = x.std(0) / n_draws**0.5
    expected = likelihood.expectation(output, parameters, size=size, total=total)
    deviation = (x.mean(0) - expected).abs()
    assert (deviation <= 5 * standard_error + 1e-6).all()


@every_likelihood
def test_draws_repeat_with_the_generators_seed_and_leave_the_global_one_alone(
    likelihood, output, parameters, size, total
):
    state = torch.random.get_rng_state()
    draws = [
        likelihood.sample(
            output, parameters, size=size, total=total, generator=torch.Generator().manual_seed(3)
        )
        for _ in range(2)
    ]
    assert torch.equal(*draws)
    assert torch.equal(torch.random.get_rng_state(), state)


@every_likelihood
def test_replicates_run_side_by_side(likelihood, draw, output, parameters, size):
    x = draw(likelihood)
    outputs = torch.stack([output, -output])
    several = {
        name: value if name == "n_levels" else torch.stack([value, value + 0.5])
        for name, value in parameters.items()
    }
    together = likelihood.log_prob(x, outputs, several, size=size)
    assert together.shape == (2, N_SAMPLES)
    for i in range(2):
        own = {name: value if name == "n_levels" else value[i] for name, value in several.items()}
        torch.testing.assert_close(together[i], likelihood.log_prob(x, outputs[i], own, size=size))


@every_likelihood
def test_observing_everything_changes_nothing(likelihood, draw, output, parameters, size):
    x = draw(likelihood)
    observed = torch.ones_like(x, dtype=torch.bool)
    torch.testing.assert_close(
        likelihood.log_prob(x, output, parameters, size=size, observed=observed),
        likelihood.log_prob(x, output, parameters, size=size),
    )


@every_likelihood
def test_missing_values_reach_neither_the_density_nor_its_gradient(
    likelihood, draw, output, parameters, size
):
    x = draw(likelihood)
    observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    observed[0] = False
    x[~observed] = torch.nan
    output = output.requires_grad_()
    parameters = {name: value.clone().requires_grad_() for name, value in parameters.items()}

    value = likelihood.log_prob(x, output, parameters, size=size, observed=observed)
    value.sum().backward()

    assert torch.isfinite(value).all()
    assert value[0] == 0
    assert torch.isfinite(output.grad).all()
    assert (output.grad[~observed] == 0).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in parameters.values())


@every_factorised
def test_factorised_density_is_the_sum_over_observed_features(likelihood, draw, output, parameters, size):
    x = draw(likelihood)
    alone = []
    for j in range(N_FEATURES):
        only_j = (torch.arange(N_FEATURES) == j).expand(x.shape)
        alone.append(likelihood.log_prob(x, output, parameters, size=size, observed=only_j))
    whole = likelihood.log_prob(x, output, parameters, size=size)
    torch.testing.assert_close(torch.stack(alone).sum(0), whole)


@without_levels
def test_initial_output_reproduces_the_feature_means(likelihood):
    feature_mean = torch.tensor([0.1, 0.2, 0.05, 0.3, 0.35], dtype=FLOAT64)
    if likelihood is LIKELIHOODS["mixed with words"]:
        feature_mean[1:4] = torch.tensor([0.5, 0.2, 0.3])
    torch.testing.assert_close(likelihood.mean(likelihood.initial_output(feature_mean)), feature_mean)


@every_likelihood
def test_initial_output_of_an_empty_feature_is_finite(likelihood):
    feature_mean = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5])
    assert torch.isfinite(likelihood.initial_output(feature_mean)).all()


@every_likelihood
def test_float32_in_float32_out(likelihood, draw, output, parameters, size):
    x = draw(likelihood).float()
    single = {name: value.float() for name, value in parameters.items()}
    value = likelihood.log_prob(x, output.float(), single, size=size.float())
    exact = likelihood.log_prob(x.double(), output, parameters, size=size)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), exact, rtol=1e-4, atol=1e-4)


@every_likelihood
def test_likelihoods_copy_and_pickle(likelihood):
    for other in (copy.deepcopy(likelihood), pickle.loads(pickle.dumps(likelihood))):
        assert repr(other) == repr(likelihood)
        assert other.factorised == likelihood.factorised


@pytest.mark.parametrize(
    "likelihood, missing", [(Gaussian(), "noise_variance"), (NegativeBinomial(), "log_dispersion")], ids=str
)
def test_a_forgotten_parameter_is_named(likelihood, missing, output):
    with pytest.raises(ValueError, match=f"Expected {missing}, .* for the {likelihood.name} likelihood"):
        likelihood.log_prob(output, output, {})
    with pytest.raises(ValueError, match=r"got other\. Pass parameters="):
        likelihood.log_prob(output, output, {"other": output})


def test_every_likelihood_says_what_it_is():
    for likelihood in LIKELIHOODS.values():
        assert isinstance(likelihood, Likelihood)
        assert likelihood.support in ("real", "count", "binary", "level", "mixed")


@pytest.mark.parametrize(
    "log_prob",
    [bernoulli_log_prob, poisson_log_prob, lambda x, o: multinomial_log_prob(x, o)],
    ids=["bernoulli", "poisson", "multinomial"],
)
def test_extreme_outputs_stay_finite_in_float32(log_prob):
    outputs = torch.tensor([[-80.0, 80.0, 0.0]], requires_grad=True)
    value = log_prob(torch.tensor([[1.0, 1.0, 0.0]]), outputs).sum()
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(outputs.grad).all()


# -- parameters beside the output ---------------------------------------------------------------------------


def nudged(likelihood, replicates=()):
    """First parameters, and others near them, in float64."""
    first = likelihood.initial_parameters(N_FEATURES, replicates)
    return {name: value.detach().double() * 1.3 + 0.1 for name, value in first.items()}


@every_likelihood
@pytest.mark.parametrize("replicates", [(), (3,)])
def test_first_parameters_have_a_number_for_each_feature(likelihood, replicates):
    found = likelihood.initial_parameters(N_FEATURES, replicates)
    for name, value in found.items():
        assert value.shape[-1] == N_FEATURES
        assert value.shape[: len(replicates)] == (() if name in likelihood.shared else replicates) or (
            name in likelihood.shared and value.shape == (N_FEATURES,)
        )
        assert torch.isfinite(value).all()
    assert likelihood.shared <= set(found)


@every_likelihood
def test_first_parameters_are_all_that_a_density_needs(likelihood, draw, output, size):
    first = {name: value.double() for name, value in likelihood.initial_parameters(N_FEATURES).items()}
    assert torch.isfinite(likelihood.log_prob(draw(likelihood), output, first, size=size)).all()


@every_likelihood
def test_statistics_add_up_over_samples_and_leave_out_what_is_missing(likelihood, draw, output):
    x = draw(likelihood)
    observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    observed[0] = observed[:, 1] = False
    for seen in (None, observed):
        rows = [slice(0, 2), slice(2, N_SAMPLES)]
        whole = likelihood.statistics(x, output, seen)
        first, second = (
            likelihood.statistics(x[part], output[part], None if seen is None else seen[part])
            for part in rows
        )
        assert whole.keys() == first.keys() == second.keys()
        for name, value in whole.items():
            assert value.shape[-1] == N_FEATURES
            torch.testing.assert_close(first[name] + second[name], value)
    changed = likelihood.statistics(torch.where(observed, x, torch.nan), output, observed)
    for name, value in whole.items():
        assert torch.equal(changed[name], value)


@every_likelihood
@pytest.mark.parametrize("replicates", [(), (2,)])
def test_an_update_is_the_best_given_the_samples(likelihood, draw, output, size, replicates):
    """Likelihood and prior do not fall, and nothing near the new parameters is better."""
    x, parameters = draw(likelihood), nudged(likelihood, replicates)
    outputs = output if not replicates else torch.stack([output, -output])

    def objective(values):
        prior = likelihood.log_prior(values)
        total = likelihood.log_prob(x, outputs, values, size=size).sum(-1)
        return total if prior is None else total + prior

    updated = likelihood.update(parameters, likelihood.statistics(x, outputs), N_SAMPLES)
    assert set(updated) <= set(parameters)
    best = {**parameters, **updated}
    assert all(best[name].shape == value.shape for name, value in parameters.items())
    assert (objective(best) >= objective(parameters) - 1e-9).all()
    for name, value in updated.items():
        for factor in (0.98, 1.02):
            assert (objective({**best, name: factor * value}) <= objective(best) + 1e-9).all()


@every_likelihood
def test_features_without_samples_keep_their_parameters(likelihood, draw, output):
    x, parameters = draw(likelihood), nudged(likelihood)
    nothing = torch.zeros_like(x, dtype=torch.bool)
    updated = likelihood.update(parameters, likelihood.statistics(x, output, nothing), N_SAMPLES)
    for name, value in updated.items():
        assert torch.equal(value, parameters[name])


@every_factorised
def test_information_is_the_variance_of_the_score(likelihood, parameters):
    feature_mean = torch.tensor([0.3, 0.6, 0.9, 0.5, 0.8], dtype=FLOAT64)
    output = likelihood.initial_output(feature_mean).expand(100_000, -1).clone().requires_grad_()
    x = likelihood.sample(output.detach(), parameters, generator=torch.Generator().manual_seed(0))
    (score,) = torch.autograd.grad(likelihood.log_prob(x, output, parameters).sum(), output)
    information = likelihood.information(feature_mean, parameters)
    torch.testing.assert_close(score.square().mean(0), information, rtol=0.05, atol=0)


@every_likelihood
def test_information_is_positive_also_for_empty_features_and_replicates(likelihood, parameters):
    feature_mean = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.5], dtype=FLOAT64)
    several = {
        name: value if name == "n_levels" else torch.stack([value, 2 * value])
        for name, value in parameters.items()
    }
    together = likelihood.information(feature_mean, several)
    for i in range(2):
        alone = {name: value if name == "n_levels" else value[i] for name, value in several.items()}
        own = likelihood.information(feature_mean, alone)
        assert own.shape == (N_FEATURES,)
        assert (own > 0).all()
        torch.testing.assert_close(together[i] if together.ndim == 2 else together, own)


# -- reconstructions that come from elsewhere ---------------------------------------------------------------


MOMENTS = [name for name in CLOSED_FORMS if name in LIKELIHOODS]  # that a factorisation is scored with


@pytest.mark.parametrize("name", MOMENTS)
def test_possible_means_make_nothing_impossible_that_may_occur(name, draw, parameters):
    likelihood = LIKELIHOODS[name]
    mean = np.linspace(-1.0, 2.0, N_SAMPLES * N_FEATURES).reshape(N_SAMPLES, N_FEATURES)
    mean[2] = 0.0
    mean[3] = 1.0
    possible = likelihood.possible(mean.copy())
    output = likelihood.initial_output(torch.as_tensor(possible))
    assert torch.isfinite(likelihood.log_prob(draw(likelihood), output, parameters)).all()
    inside = np.full((N_SAMPLES, N_FEATURES), 1.0 / N_FEATURES)
    np.testing.assert_allclose(likelihood.possible(inside), inside, atol=1e-5)


@pytest.mark.parametrize("name", MOMENTS)
def test_parameters_by_moments_are_one_positive_number_for_each_feature(name, rng):
    squares, means, squared_means, spread = rng.uniform(1.0, 20.0, size=(4, N_FEATURES))
    found = LIKELIHOODS[name].parameters_from_residuals(squares, means, squared_means, 10, spread)
    for value in found.values():
        assert value.shape == (N_FEATURES,)
        assert (value > 0).all()
