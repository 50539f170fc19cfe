"""First weights of a network: outputs at the features' means, or those that PyTorch's layers begin with."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from sparsevae.decoder import MaskedDecoder
from sparsevae.modules import LatentModule

__all__ = ["pytorch_layers_", "pytorch_start_", "start_at_means_"]


@torch.no_grad()
def start_at_means_(module: LatentModule, feature_mean: Tensor) -> None:
    """Begin at the features' means, so that the factors have only the variation to explain."""
    intercept = module.decoder.intercept
    assert isinstance(intercept, Tensor)
    intercept.copy_(module.observation.likelihood.initial_output(feature_mean))


@torch.no_grad()
def pytorch_start_(module: LatentModule, generator: torch.Generator) -> None:
    """Draw weights and biases from U(-1/√n, 1/√n) for n inputs, in place, as PyTorch's linear layers begin.

    Parameters
    ----------
    module : LatentModule
    generator : torch.Generator

    Notes
    -----
    The authors' code begins here. Starting at the feature means, the first gradients are pure noise: at the
    paper's learning rate and without a warm-up of the KL term every unit of the last layer can die (ReLU).
    """
    encoder, decoder = module.encoder, module.decoder
    assert isinstance(decoder, MaskedDecoder), "generators begin at the features' means"
    layers: list[tuple[Tensor, Tensor | None]] = [
        *zip(encoder.hidden_weights, encoder.hidden_biases, strict=True),
        *([] if encoder.mean_weight is None else [(encoder.mean_weight, encoder.mean_bias)]),
        (encoder.log_variance_weight, encoder.log_variance_bias),
        *zip(decoder.hidden_weights, decoder.hidden_biases, strict=True),
        (decoder.heads, decoder.intercept),
    ]
    if decoder.first is not None:
        layers.append((decoder.first, None))
    pytorch_layers_(layers, generator)


@torch.no_grad()
def pytorch_layers_(layers: Iterable[tuple[Tensor, Tensor | None]], generator: torch.Generator) -> None:
    """Weights and biases of some layers as `pytorch_start_` has them; no bias is None."""
    for weight, bias in layers:
        bound = weight.shape[-1] ** -0.5
        for parameter in (weight, bias):
            if parameter is not None:
                parameter.copy_(bound * (2.0 * torch.rand(parameter.shape, generator=generator) - 1.0))
