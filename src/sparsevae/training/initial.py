"""What a network begins with: outputs at the features' means, or the weights that PyTorch begins with."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from sparsevae.modules.factor import FactorModule

__all__ = ["initial_outputs_", "usual_layers_", "usual_start_"]


@torch.no_grad()
def initial_outputs_(module: FactorModule, feature_mean: Tensor) -> None:
    """Begin at the features' means, so that the factors have only the variation to explain."""
    module.decoder.intercept.copy_(module.observation.likelihood.initial_output(feature_mean))


@torch.no_grad()
def usual_start_(module: FactorModule, generator: torch.Generator) -> None:
    """Draw weights and biases from U(-1/√n, 1/√n) for n inputs, in place, as PyTorch's linear layers begin.

    Parameters
    ----------
    module : FactorModule
    generator : torch.Generator

    Notes
    -----
    It is where the released code begins. A decoder that begins at the features' means has noise for a first
    lesson: at the paper's learning rate and without a warm-up of the KL term, all units of its last layer may
    learn to be silent, for good. One that has yet to find the means needs its units, and keeps them.
    """
    encoder, decoder = module.encoder, module.decoder
    layers: list[tuple[Tensor, Tensor | None]] = [
        *zip(encoder.hidden_weights, encoder.hidden_biases, strict=True),
        (encoder.mean_weight, encoder.mean_bias),
        (encoder.log_variance_weight, encoder.log_variance_bias),
        *zip(decoder.hidden_weights, decoder.hidden_biases, strict=True),
        (decoder.heads, decoder.intercept),
    ]
    if decoder.first is not None:
        layers.append((decoder.first, None))
    usual_layers_(layers, generator)


@torch.no_grad()
def usual_layers_(layers: Iterable[tuple[Tensor, Tensor | None]], generator: torch.Generator) -> None:
    """Weights and biases of some layers as `usual_start_` has them; no bias is None."""
    for weight, bias in layers:
        bound = weight.shape[-1] ** -0.5
        for parameter in (weight, bias):
            if parameter is not None:
                parameter.copy_(bound * (2.0 * torch.rand(parameter.shape, generator=generator) - 1.0))
