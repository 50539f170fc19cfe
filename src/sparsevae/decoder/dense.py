"""The decoder as a few large batched products: best for small problems and for many replicates at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

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
    if weights.first is None:
        return z @ (mask * weights.heads).mT + weights.intercept.unsqueeze(-2)
    lead = mask.shape[:-2]
    layers = (tensor for layer in weights.hidden for tensor in layer)
    tensors = (mask, z, weights.first, weights.heads, *layers)
    output = _Dense.apply(*(t.flatten(0, len(lead) - 1) if lead else t.unsqueeze(0) for t in tensors))
    return output.view(*lead, *output.shape[1:]) + weights.intercept.unsqueeze(-2)


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


class _Dense(torch.autograd.Function):
    """The dense decoder without its intercept, for one leading dimension of replicates.

    Inputs lie factor × row: with few factors, products are fastest with the narrow side first. Features come
    before samples, so that each feature's activations are one matrix.
    """

    @staticmethod
    def forward(ctx: Any, mask: Tensor, z: Tensor, first: Tensor, heads: Tensor, *layers: Tensor) -> Tensor:
        u = _inputs(mask, z).flatten(2)  # replicate × factor × (feature · sample)
        h = [torch.bmm(u.mT, first.mT).relu_()]
        for weight, bias in zip(layers[::2], layers[1::2], strict=True):
            h.append(torch.baddbmm(bias.unsqueeze(1), h[-1], weight.mT).relu_())
        last = h[-1].view(*heads.shape[:2], z.shape[1], -1)  # replicate × feature × sample × hidden
        output = z.new_empty(*z.shape[:2], heads.shape[1])
        torch.sum(last * heads.unsqueeze(2), -1, out=output.mT)
        ctx.save_for_backward(mask, z, first, heads, *layers, *h)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
        n_layers = len(ctx.needs_input_grad) - 4
        mask, z, first, heads, *rest = ctx.saved_tensors
        layers, h = rest[:n_layers], rest[n_layers:]
        u = _inputs(mask, z)
        grad = grad_output.mT.contiguous()  # replicate × feature × sample
        last = h[-1].view(*grad.shape, -1)
        grad_heads = torch.bmm(grad.flatten(0, 1).unsqueeze(1), last.flatten(0, 1)).view(heads.shape)
        g = (grad.unsqueeze(3) * heads.unsqueeze(2)).flatten(1, 2)
        _gate_(g, h[-1])
        grad_layers: list[Tensor] = []
        for layer in reversed(range(n_layers // 2)):
            grad_layers = [torch.bmm(g.mT, h[layer]), g.sum(1), *grad_layers]
            g = torch.bmm(g, layers[2 * layer])
            _gate_(g, h[layer])
        grad_first = torch.bmm(u.flatten(2), g).mT
        grad_u = torch.bmm(first.mT, g.mT).view(u.shape)
        grad_mask = (grad_u * z.mT.unsqueeze(2)).sum(3).mT
        grad_z = (grad_u * mask.mT.unsqueeze(3)).sum(2).mT
        return grad_mask, grad_z, grad_first, grad_heads, *grad_layers


def _inputs(mask: Tensor, z: Tensor) -> Tensor:
    """``w_j ⊙ z_i``: replicate × factor × feature × sample."""
    return mask.mT.contiguous().unsqueeze(3) * z.mT.contiguous().unsqueeze(2)


def _gate_(grad: Tensor, activation: Tensor) -> None:
    """Zero the gradient where the activation is zero, as relu's derivative does."""
    torch.ops.aten.threshold_backward.grad_input(grad, activation, 0, grad_input=grad)
