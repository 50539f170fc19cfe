"""A random subset of the features: unbiased, no more work than it says, and refused where it has no sense."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.decoder import MaskedDecoder
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules.subset import draw_subset, squared_errors, subset_log_prob

FACTORISED = ["gaussian", "bernoulli", "poisson", "negative_binomial"]
MIXED = {"gaussian": [0, 3], "poisson": [1, 4], "bernoulli": [2, 5]}
SUBSETS = [torch.tensor(s) for s in combinations(range(6), 2)]


def gradients(module, loss):
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
    found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {
        n: torch.zeros_like(parameters[n]) if g is None else g for n, g in zip(parameters, found, strict=True)
    }


@pytest.mark.parametrize("likelihood", FACTORISED)
@pytest.mark.parametrize("options", [{}, {"hidden_sizes": ()}, {"learned_mask": False}])
def test_the_mean_over_all_subsets_is_the_full_loss_and_its_gradient(
    make_module, make_rows, make_noise, likelihood, options
):
    module, x, noise = make_module(likelihood, **options), make_rows(likelihood), make_noise()
    full = module.loss(x, noise, 100)
    losses = [module.loss(x, noise, 100, features=features) for features in SUBSETS]
    assert_close(torch.stack([loss.reconstruction for loss in losses]).mean(), full.reconstruction)
    assert all(torch.equal(loss.kl, full.kl) for loss in losses)
    expected = gradients(module, full.reconstruction)
    each = [gradients(module, loss.reconstruction) for loss in losses]
    for name, gradient in expected.items():
        assert_close(torch.stack([g[name] for g in each]).mean(0), gradient, msg=name)


def test_columns_of_different_kinds_are_unbiased_too(generator):
    likelihood = get_likelihood(MIXED, 6)
    x = torch.randint(0, 2, (8, 6), generator=generator).double()
    output = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    dispersion = torch.rand(6, generator=generator, dtype=torch.float64) + 0.5
    size = torch.rand(8, generator=generator, dtype=torch.float64) + 0.5
    terms = {"dispersion": dispersion, "size": size}
    estimates = [subset_log_prob(likelihood, x, output[:, s], s, **terms) for s in SUBSETS]
    assert_close(torch.stack(estimates).mean(0), likelihood.log_prob(x, output, **terms))


def test_features_outside_the_subset_get_no_likelihood_gradient(make_module, make_rows, make_noise):
    module = make_module()
    loss = module.loss(make_rows(), make_noise(), 100, features=torch.tensor([1, 4]))
    found = gradients(module, loss.reconstruction)
    for name in ("mask", "decoder.heads", "decoder.intercept"):
        touched = found[name].reshape(6, -1).abs().sum(1) > 0
        assert touched.tolist() == [False, True, False, False, True, False], name


def test_the_decoder_sees_the_subset_only(make_module, make_rows, make_noise, monkeypatch):
    shapes = []
    forward = MaskedDecoder.forward

    def spy(self, *args, **kwargs):
        output = forward(self, *args, **kwargs)
        shapes.append(tuple(output.shape))
        return output

    monkeypatch.setattr(MaskedDecoder, "forward", spy)
    make_module().loss(make_rows(), make_noise(), 100, features=torch.tensor([1, 4]))
    assert shapes == [(8, 2)]


@pytest.mark.parametrize("replicates", [(), (3,)])
def test_noise_variances_come_from_the_rows_that_each_feature_was_drawn_with(
    make_module, make_rows, make_noise, replicates
):
    module, x, noise = make_module(replicates=replicates, covariance="identity"), make_rows(), make_noise()
    before = module.noise_variance.clone()
    module.train()
    squares = {0: [], 1: [], 2: []}
    for features in ([0, 1], [1, 2]):
        features = torch.tensor(features)
        module.loss(x, noise.expand(*replicates, *noise.shape), 100, features=features)
        mean, log_variance = module.encode(x)
        output = module.decode(mean + torch.exp(0.5 * log_variance) * noise, features)
        for position, j in enumerate(features.tolist()):
            squares[j].append((x[:, j] - output[..., position]).square().mean(-1))
    module.closed_form_update(100)
    for j, found in squares.items():
        expected = (100 * torch.stack(found).mean(0) + 3.0 * module.noise_scale[j]) / (100 + 5.0)
        assert_close(module.noise_variance[..., j], expected.detach())
    assert torch.equal(module.noise_variance[..., 3:], before[..., 3:])


def test_squared_errors_count_the_samples_behind_them():
    x, output = torch.tensor([[1.0, 2.0, 5.0], [3.0, 2.0, 5.0]]), torch.tensor([[2.0], [2.0]])
    squares, seen = squared_errors(x, output, torch.tensor([0]))
    assert squares.tolist() == [2.0, 0.0, 0.0]
    assert seen.tolist() == [2.0, 0.0, 0.0]


def test_subsets_are_drawn_uniformly_and_without_replacement(generator):
    drawn = torch.stack([draw_subset(10, 3, generator) for _ in range(4000)])
    assert (drawn.diff(dim=1) > 0).all()
    share = torch.bincount(drawn.ravel(), minlength=10) / 4000
    np.testing.assert_allclose(share.numpy(), 0.3, atol=0.03)


@pytest.mark.parametrize("size", [None, 6, 60])
def test_all_features_need_no_subset(make_module, generator, size):
    before = generator.get_state()
    assert make_module(features_per_step=size).draw_features(generator) is None
    assert torch.equal(generator.get_state(), before)  # fits without it are what they were


def test_a_multinomial_refuses_a_subset(make_module):
    with pytest.raises(ValueError, match="whose features share one total"):
        make_module("multinomial", features_per_step=3)
