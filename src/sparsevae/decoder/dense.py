"""The decoder as a few large batched products: best for small problems and for many replicates at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sparsevae.decoder.threads import n_decoder_threads, run_tasks
from sparsevae.decoder.weights import DecoderWeights, check_decoder_inputs, relu_layers

__all__ = ["decode_dense", "decode_shared"]

_PER_SHARE = 1 << 17  # activations per layer that make it worth handing replicates to another thread


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
    layers = (tensor for layer in weights.hidden for tensor in layer)
    return _Dense.apply(mask, z, weights.first, weights.heads, weights.intercept, *layers)


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
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        mask, z, _, heads, *_ = tensors
        output = z.new_empty(*z.shape[:-1], mask.shape[-2])
        flat, flat_output = _flat(tensors, mask.ndim - 2), _flat([output], mask.ndim - 2)[0]
        shares = _shares(flat[0].shape[0], z.shape[-2] * heads.shape[-2:].numel(), z.device)
        kept: dict[int, list[Tensor]] = {}

        def work(todo: Iterator[int]) -> None:
            for share in todo:
                kept[share] = _forward(*_take(flat, shares[share]), output=flat_output[shares[share]])

        run_tasks(work, range(len(shares)), z.device)
        ctx.shares = shares
        ctx.save_for_backward(*tensors, *(h for share in sorted(kept) for h in kept[share]))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, ...]:
        n_tensors, shares = len(ctx.needs_input_grad), ctx.shares
        tensors, activations = ctx.saved_tensors[:n_tensors], ctx.saved_tensors[n_tensors:]
        flat = _flat((*tensors, grad_output), grad_output.ndim - 2)
        depth = len(activations) // len(shares)
        grads: dict[int, list[Tensor]] = {}

        def work(todo: Iterator[int]) -> None:
            for share in todo:
                h = activations[share * depth : (share + 1) * depth]
                *of_share, grad = _take(flat, shares[share])
                grads[share] = _backward(*of_share, h=h, grad_output=grad)

        run_tasks(work, range(len(shares)), grad_output.device)
        whole = (
            grads[0]
            if len(shares) == 1
            else map(torch.cat, zip(*(grads[i] for i in sorted(grads)), strict=True))
        )
        return tuple(grad.view(tensor.shape) for grad, tensor in zip(whole, tensors, strict=True))


def _flat(tensors: Sequence[Tensor], n_lead: int) -> list[Tensor]:
    """Give tensors one leading dimension of replicates."""
    if n_lead == 1:
        return list(tensors)
    return [t.flatten(0, n_lead - 1) if n_lead else t.unsqueeze(0) for t in tensors]


def _shares(n_replicates: int, n_activations: int, device: torch.device) -> list[slice]:
    """Cut the replicates into one share per thread, if there is enough for each to do."""
    enough = n_replicates * n_activations // _PER_SHARE
    n_shares = max(1, min(n_replicates, n_decoder_threads(), enough)) if device.type == "cpu" else 1
    edges = [n_replicates * share // n_shares for share in range(n_shares + 1)]
    return [slice(*edge) for edge in pairwise(edges)]


def _take(tensors: Sequence[Tensor], share: slice) -> Sequence[Tensor]:
    return tensors if share == slice(0, len(tensors[0])) else [tensor[share] for tensor in tensors]


# Inputs lie factor × row: with few factors, products are fastest with the narrow side first. Features come
# before samples, so that each feature's activations are one matrix.


def _forward(
    mask: Tensor, z: Tensor, first: Tensor, heads: Tensor, intercept: Tensor, *layers: Tensor, output: Tensor
) -> list[Tensor]:
    """Write the output, replicate × sample × feature, and return the activations."""
    u = _inputs(mask, z).flatten(2)  # replicate × factor × (feature · sample)
    h = [torch.bmm(u.mT, first.mT).relu_()]
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        h.append(torch.baddbmm(bias.unsqueeze(1), h[-1], weight.mT).relu_())
    last = h[-1].view(*heads.shape[:2], z.shape[1], -1)  # replicate × feature × sample × hidden
    torch.sum(last * heads.unsqueeze(2), -1, out=output.mT)
    output += intercept.unsqueeze(1)
    return h


def _backward(
    mask: Tensor,
    z: Tensor,
    first: Tensor,
    heads: Tensor,
    intercept: Tensor,
    *layers: Tensor,
    h: Sequence[Tensor],
    grad_output: Tensor,
) -> list[Tensor]:
    """Return the gradients in the order of the arguments."""
    u = _inputs(mask, z)
    grad = grad_output.mT.contiguous()  # replicate × feature × sample
    last = h[-1].view(*grad.shape, -1)
    grad_heads = torch.bmm(grad.flatten(0, 1).unsqueeze(1), last.flatten(0, 1)).view(heads.shape)
    g = (grad.unsqueeze(3) * heads.unsqueeze(2)).flatten(1, 2)
    _gate_(g, h[-1])
    grad_layers: list[Tensor] = []
    for layer in reversed(range(len(layers) // 2)):
        grad_layers = [torch.bmm(g.mT, h[layer]), g.sum(1), *grad_layers]
        g = torch.bmm(g, layers[2 * layer])
        _gate_(g, h[layer])
    grad_first = torch.bmm(u.flatten(2), g).mT.contiguous()
    grad_u = torch.bmm(first.mT, g.mT).view(u.shape)
    grad_mask = (grad_u * z.mT.unsqueeze(2)).sum(3).mT.contiguous()
    grad_z = (grad_u * mask.mT.unsqueeze(3)).sum(2).mT.contiguous()
    return [grad_mask, grad_z, grad_first, grad_heads, grad.sum(2), *grad_layers]


def _inputs(mask: Tensor, z: Tensor) -> Tensor:
    """``w_j ⊙ z_i``: replicate × factor × feature × sample."""
    return mask.mT.contiguous().unsqueeze(3) * z.mT.contiguous().unsqueeze(2)


def _gate_(grad: Tensor, activation: Tensor) -> None:
    """Zero the gradient where the activation is zero, as relu's derivative does."""
    torch.ops.aten.threshold_backward.grad_input(grad, activation, 0, grad_input=grad)
