"""The decoder as the paper writes it: one forward pass per feature. Slow and plain: the oracle."""

from __future__ import annotations

import torch
from torch import Tensor

from sparsevae.decoder.weights import DecoderWeights, check_decoder_inputs

__all__ = ["decode_literal"]


def decode_literal(mask: Tensor, z: Tensor, weights: DecoderWeights) -> Tensor:
    r"""Decode feature by feature.

    .. math:: \text{output}_{ij} = c_j + v_j^\top h_L(w_j \odot z_i)

    Parameters
    ----------
    mask : Tensor of shape (n_features, n_factors)
    z : Tensor of shape (n_samples, n_factors)
    weights : DecoderWeights
        Without replicates.

    Returns
    -------
    Tensor of shape (n_samples, n_features)

    Notes
    -----
    `eq:sparse_vae_model`. Autograd differentiates it, so values and gradients of every other path are
    compared with this one.
    """
    check_decoder_inputs(mask, z, weights)
    return torch.stack([_decode_feature(mask[j], z, weights, j) for j in range(mask.shape[0])], dim=1)


def _decode_feature(row: Tensor, z: Tensor, weights: DecoderWeights, j: int) -> Tensor:
    h = row * z  # sample × factor
    if weights.first is not None:
        h = torch.relu(h @ weights.first.T)
        for weight, bias in weights.hidden:
            h = torch.relu(h @ weight.T + bias)
    return h @ weights.heads[j] + weights.intercept[j]
