"""The encoder: shapes, replicates, and changes of factors that leave its posterior the same."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from sparsevae.modules.encoder import Encoder

DEPTHS = pytest.mark.parametrize("hidden_sizes", [(), (6,), (6, 5), (6, 5, 4)])


def make(hidden_sizes=(6, 5), *, n_features=4, n_factors=3, replicates=(), linear_path=True):
    generator = torch.Generator().manual_seed(0)
    encoder = Encoder(
        n_features,
        n_factors,
        hidden_sizes,
        replicates=replicates,
        generator=generator,
        linear_path=linear_path,
    ).double()
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return encoder


@DEPTHS
@pytest.mark.parametrize("linear_path", [True, False])
def test_means_and_variances_are_those_of_the_formula(hidden_sizes, linear_path, generator):
    encoder = make(hidden_sizes, linear_path=linear_path)
    x = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    h = x
    for weight, bias in zip(encoder.hidden_weights, encoder.hidden_biases, strict=True):
        h = torch.relu(h @ weight.T + bias)
    mean = h @ encoder.mean_weight.T + encoder.mean_bias
    if linear_path:
        mean = mean + x @ encoder.linear.T
    got_mean, got_log_variance = encoder(x)
    assert_close(got_mean, mean)
    assert_close(got_log_variance, h @ encoder.log_variance_weight.T + encoder.log_variance_bias)


@DEPTHS
def test_replicates_are_encoders_of_their_own(hidden_sizes, generator):
    several = make(hidden_sizes, replicates=(3,))
    x = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    means, log_variances = several(x)
    assert means.shape == log_variances.shape == (3, 7, 3)
    own_rows, _ = several(x.expand(3, 7, 4))
    assert_close(own_rows, means)
    for r in range(3):
        one = make(hidden_sizes)
        one.load_state_dict({name: value[r] for name, value in several.state_dict().items()})
        mean, log_variance = one(x)
        assert_close(mean, means[r])
        assert_close(log_variance, log_variances[r])


def test_the_start_depends_on_the_generator_alone():
    def start(seed):
        torch.manual_seed(seed)
        return Encoder(4, 3, generator=torch.Generator().manual_seed(5)).state_dict()

    for name, value in start(0).items():
        assert torch.equal(value, start(1)[name])


def test_log_variances_stay_in_a_range_that_float32_can_hold():
    encoder = make()
    x = 1e6 * torch.ones(1, 4, dtype=torch.float64)
    _, log_variance = encoder(x)
    assert log_variance.min() >= -12
    assert log_variance.max() <= 6


def test_a_permutation_with_signs_permutes_the_posterior_exactly(generator):
    encoder = make()
    x = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    mean, log_variance = encoder(x)
    order, sign = torch.tensor([2, 0, 1]), torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    matrix = torch.zeros(3, 3, dtype=torch.float64)
    matrix[torch.arange(3), order] = sign
    encoder.transform_factors_(matrix)
    new_mean, new_log_variance = encoder(x)
    assert_close(new_mean, sign * mean[:, order])
    assert_close(new_log_variance, log_variance[:, order])


def test_a_scaling_scales_means_and_standard_deviations(generator):
    encoder = make()
    x = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    mean, log_variance = encoder(x)
    scale = torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64)
    encoder.transform_factors_(torch.diag(scale))
    new_mean, new_log_variance = encoder(x)
    assert_close(new_mean, scale * mean)
    assert_close(new_log_variance, log_variance + 2 * scale.log())


def test_any_change_of_basis_moves_the_mean_exactly(generator):
    encoder = make(replicates=(2,))
    x = torch.randn(7, 4, generator=generator, dtype=torch.float64)
    basis = torch.randn(2, 3, 3, generator=generator, dtype=torch.float64)
    mean, _ = encoder(x)
    encoder.transform_factors_(basis)
    assert_close(encoder(x)[0], mean @ basis.mT)


def test_means_that_are_held_are_linear_and_not_trained(generator):
    encoder = Encoder(4, 3, (6,), generator=generator, held_means=True)
    encoder.linear.copy_(torch.randn(3, 4, generator=generator))
    encoder.mean_bias.copy_(torch.randn(3, generator=generator))
    x = torch.randn(7, 4, generator=generator)
    mean, log_variance = encoder(x)
    assert_close(mean, x @ encoder.linear.T + encoder.mean_bias)
    log_variance.sum().backward()
    assert {"linear", "mean_bias"}.isdisjoint(name for name, _ in encoder.named_parameters())
    assert {"linear", "mean_bias"} <= set(encoder.state_dict())


def test_held_means_follow_a_change_of_factors(generator):
    encoder = Encoder(4, 3, (6,), generator=generator, held_means=True)
    encoder.linear.copy_(torch.randn(3, 4, generator=generator))
    x = torch.randn(7, 4, generator=generator)
    before, order = encoder(x)[0], torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    encoder.transform_factors_(order)
    assert_close(encoder(x)[0], before @ order.T)
