"""First weights: outputs at the features' means, and layers as PyTorch begins them."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from sparsevae.fitting.initial import pytorch_layers_, pytorch_start_, start_at_means_


@pytest.mark.parametrize("kind", ["sparse", "plain", "group"])
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson", "multinomial"])
def test_a_fit_begins_at_the_features_means(make_module, likelihood, kind):
    module = make_module(likelihood, kind=kind)
    mean = torch.tensor([0.1, 0.2, 0.3, 0.3, 0.1])
    start_at_means_(module, mean)
    total = torch.ones(1) if likelihood == "multinomial" else None
    output = module.decode(torch.zeros(1, 2))
    assert_close(module.observation.likelihood.mean(output, total=total)[0], mean)


@pytest.mark.parametrize("hidden_sizes", [(), (16, 50)])
def test_pytorchs_start_is_that_of_its_linear_layers(make_module, hidden_sizes):
    module = make_module(hidden_sizes=hidden_sizes)
    pytorch_start_(module, torch.Generator().manual_seed(0))
    encoder, decoder = module.encoder, module.decoder
    assert decoder.intercept.abs().max() <= decoder.heads.shape[-1] ** -0.5
    assert decoder.intercept.any()
    for weight in (encoder.mean_weight, encoder.log_variance_weight, decoder.heads):
        assert weight.abs().max() <= weight.shape[-1] ** -0.5
    if hidden_sizes:
        reference = torch.nn.Linear(16, 50)
        weight, bias = decoder.hidden_weights[0], decoder.hidden_biases[0]
        assert weight.shape == reference.weight.shape
        assert weight.std().item() == pytest.approx(reference.weight.std().item(), rel=0.1)
        assert bias.std().item() == pytest.approx(reference.bias.std().item(), rel=0.3)


def test_layers_without_a_bias_are_drawn_too():
    weight, other = torch.zeros(4, 9), torch.zeros(3, 4)
    pytorch_layers_([(weight, None), (other, None)], torch.Generator().manual_seed(0))
    assert 0 < weight.abs().max() <= 1 / 3
    assert 1 / 3 < other.abs().max() <= 1 / 2
