"""What every likelihood keeps: support, mean, missing values, replicates, types."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from sparsevae.likelihoods import Gaussian, Likelihood, Multinomial, NegativeBinomial

from .helpers import FLOAT64, LIKELIHOODS, N_FEATURES, N_SAMPLES, every_factorised, every_likelihood


@every_likelihood
def test_draws_lie_in_the_support(likelihood, draw):
    x = draw(likelihood)
    assert x.shape == (N_SAMPLES, N_FEATURES)
    assert x.dtype == FLOAT64
    for part, columns in likelihood.split(N_FEATURES):
        values = x[:, columns]
        if part.support in ("count", "binary"):
            assert (values >= 0).all()
            assert (values == values.round()).all()
        if part.support == "binary":
            assert (values <= 1).all()


@every_likelihood
def test_draws_average_to_the_mean(likelihood, output, dispersion, size, total, generator):
    n_draws = 20_000
    x = likelihood.sample(
        output.expand(n_draws, -1, -1), dispersion=dispersion, size=size, total=total, generator=generator
    )
    standard_error = x.std(0) / n_draws**0.5
    deviation = (x.mean(0) - likelihood.mean(output, size=size, total=total)).abs()
    assert (deviation <= 5 * standard_error + 1e-6).all()


@every_likelihood
def test_draws_repeat_with_the_generators_seed_and_leave_the_global_one_alone(
    likelihood, output, dispersion, size, total
):
    state = torch.random.get_rng_state()
    draws = [
        likelihood.sample(
            output,
            dispersion=dispersion,
            size=size,
            total=total,
            generator=torch.Generator().manual_seed(3),
        )
        for _ in range(2)
    ]
    assert torch.equal(*draws)
    assert torch.equal(torch.random.get_rng_state(), state)


@every_likelihood
def test_replicates_run_side_by_side(likelihood, draw, output, dispersion, size):
    x = draw(likelihood)
    outputs, dispersions = torch.stack([output, -output]), torch.stack([dispersion, 2 * dispersion])
    together = likelihood.log_prob(x, outputs, dispersion=dispersions, size=size)
    assert together.shape == (2, N_SAMPLES)
    for i in range(2):
        alone = likelihood.log_prob(x, outputs[i], dispersion=dispersions[i], size=size)
        torch.testing.assert_close(together[i], alone)


@every_likelihood
def test_observing_everything_changes_nothing(likelihood, draw, output, dispersion, size):
    x = draw(likelihood)
    observed = torch.ones_like(x, dtype=torch.bool)
    torch.testing.assert_close(
        likelihood.log_prob(x, output, dispersion=dispersion, size=size, observed=observed),
        likelihood.log_prob(x, output, dispersion=dispersion, size=size),
    )


@every_likelihood
def test_missing_values_reach_neither_the_density_nor_its_gradient(
    likelihood, draw, output, dispersion, size
):
    x = draw(likelihood)
    observed = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    observed[0] = False
    x[~observed] = torch.nan
    output, dispersion = output.requires_grad_(), dispersion.requires_grad_()

    value = likelihood.log_prob(x, output, dispersion=dispersion, size=size, observed=observed)
    value.sum().backward()

    assert torch.isfinite(value).all()
    assert value[0] == 0
    assert torch.isfinite(output.grad).all()
    assert (output.grad[~observed] == 0).all()
    assert dispersion.grad is None or torch.isfinite(dispersion.grad).all()


@every_factorised
def test_factorised_density_is_the_sum_over_observed_features(likelihood, draw, output, dispersion, size):
    x = draw(likelihood)
    context = {"dispersion": dispersion, "size": size}
    alone = []
    for j in range(N_FEATURES):
        only_j = (torch.arange(N_FEATURES) == j).expand(x.shape)
        alone.append(likelihood.log_prob(x, output, observed=only_j, **context))
    torch.testing.assert_close(torch.stack(alone).sum(0), likelihood.log_prob(x, output, **context))


@every_likelihood
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
def test_float32_in_float32_out(likelihood, draw, output, dispersion, size):
    x = draw(likelihood).float()
    context = {"dispersion": dispersion.float(), "size": size.float()}
    value = likelihood.log_prob(x, output.float(), **context)
    exact = likelihood.log_prob(x.double(), output, dispersion=dispersion, size=size)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), exact, rtol=1e-4, atol=1e-4)


@every_likelihood
def test_likelihoods_copy_and_pickle(likelihood):
    for other in (copy.deepcopy(likelihood), pickle.loads(pickle.dumps(likelihood))):
        assert repr(other) == repr(likelihood)
        assert other.factorised == likelihood.factorised


def test_multinomial_draws_have_the_asked_number_of_words(output, total, generator):
    x = Multinomial().sample(output, total=total, generator=generator)
    assert torch.equal(x.sum(-1), total)


def test_multinomial_draws_never_take_a_word_of_no_chance(generator):
    logits = torch.tensor([[0.0, -1e4, 0.0, -1e4]])
    x = Multinomial().sample(logits, total=torch.tensor([1000.0]), generator=generator)
    assert x[0, 1] == x[0, 3] == 0
    assert x.sum() == 1000


@pytest.mark.parametrize("likelihood", [Gaussian(), NegativeBinomial()], ids=repr)
def test_a_forgotten_dispersion_is_named(likelihood, output):
    with pytest.raises(ValueError, match=f"Expected dispersion, .* for the {likelihood.name} likelihood"):
        likelihood.log_prob(output, output)


def test_a_forgotten_total_is_named(output):
    with pytest.raises(ValueError, match="Expected total"):
        Multinomial().sample(output)


def test_every_family_says_what_it_is():
    for likelihood in LIKELIHOODS.values():
        assert isinstance(likelihood, Likelihood)
        assert likelihood.support in ("real", "count", "binary", "mixed")
