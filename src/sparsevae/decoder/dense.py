"""The decoder as a few large batched products: best for small problems and for many replicates at once."""

from __future__ import annotations

import torch
from torch import Tensor

from sparsevae.decoder.weights import DecoderWeights, check_decoder_inputs, relu_layers

__all__ = ["decode_dense", "decode_shared"]


def decode_dense(mask: Tensor, z: Tensor, weights: DecoderWeights) -> Tensor:
    """Decode all features at once, for any number of replicates.

    Parameters
    ----------
    mask : Tensor of shape (..., n_features, n_factors)
    z : Tensor of shape (..., n_samples, n_factors)
    weights : DecoderWeights
        Leading dimensions, where there are any, equal those of mask and z.

    Returns
    -------
    Tensor of shape (..., n_samples, n_features)

    Notes
    -----
    The hidden activations of all features are held at once, n_samples × n_features × width per layer: at
    synthetic size that is nothing and the number of kernel launches is what counts; for large tables
    `decode_blocked` is both faster and bounded in memory.
    """
    check_decoder_inputs(mask, z, weights)
    if weights.depth == 0:
        return z @ (mask * weights.heads).mT + weights.intercept.unsqueeze(-2)
    lead, (n_features, n_factors), n_samples = mask.shape[:-2], mask.shape[-2:], z.shape[-2]
    # Features before samples: each feature's activations are then one matrix, and its head a batched product.
    u = mask.unsqueeze(-2) * z.unsqueeze(-3)  # ... × feature × sample × factor
    h = relu_layers(u.reshape(*lead, n_features * n_samples, n_factors), weights)
    h = h.reshape(-1, n_samples, h.shape[-1])  # (replicates · feature) × sample × hidden
    heads, intercept = weights.heads.reshape(-1, h.shape[-1], 1), weights.intercept.reshape(-1, 1, 1)
    return torch.baddbmm(intercept, h, heads).view(*lead, n_features, n_samples).mT


def decode_shared(z: Tensor, weights: DecoderWeights) -> Tensor:
    """Decode under a mask of ones: every feature sees the same input, so one forward pass serves all.

    This is the decoder of a plain VAE.

    Parameters
    ----------
    z : Tensor of shape (..., n_samples, n_factors)
    weights : DecoderWeights

    Returns
    -------
    Tensor of shape (..., n_samples, n_features)
    """
    return relu_layers(z, weights) @ weights.heads.mT + weights.intercept.unsqueeze(-2)
