"""The decoder in cache-sized blocks of features, with its backward pass written out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sparsevae.decoder.dense import decode_dense
from sparsevae.decoder.kernels import Gradients, Network, Workspace, backward_block, forward_block
from sparsevae.decoder.layout import Block, Cut, block_rows, cut_into_tasks
from sparsevae.decoder.threads import n_decoder_threads, run_tasks
from sparsevae.decoder.weights import DecoderWeights, check_decoder_inputs

__all__ = ["decode_blocked", "decode_groups"]

_KEEP_BYTES = 512 * 2**20  # activations kept for the backward pass; blocks beyond it compute theirs again


def decode_blocked(mask: Tensor, z: Tensor, weights: DecoderWeights, *, precision: str = "float32") -> Tensor:
    """Decode in blocks of features: never more than a block's activations are worked on at a time.

    Parameters
    ----------
    mask : Tensor of shape (n_features, n_factors)
    z : Tensor of shape (n_samples, n_factors)
    weights : DecoderWeights
        Without replicates.
    precision : {"float32", "bfloat16"}
        Of the matrix products: "float32" computes in the type of the inputs.

    Returns
    -------
    Tensor of shape (n_samples, n_features)

    Notes
    -----
    Values and all gradients equal those of `decode_literal` up to rounding. Activations are kept for the
    backward pass as far as 512 MiB go and computed again beyond, so that memory stays bounded in n_features.
    """
    check_decoder_inputs(mask, z, weights)
    if weights.first is None:
        return decode_dense(mask, z, weights)
    output = decode_groups(
        mask,
        z.mT.unsqueeze(0),
        weights.first.unsqueeze(0),
        weights.hidden,
        weights.heads,
        sizes=(mask.shape[0],),
        precision=precision,
    )
    return output + weights.intercept


def decode_groups(
    mask: Tensor,
    inputs: Tensor,
    first: Tensor,
    hidden: Sequence[tuple[Tensor, Tensor]],
    heads: Tensor,
    *,
    sizes: Sequence[int],
    precision: str,
) -> Tensor:
    r"""Decode groups of features; each group has its own inputs and first layer, later layers are shared.

    .. math:: \text{output}_{ij} = v_j^\top h_L(F_g (w_j \odot \zeta_{gi})), \qquad j \in \text{group } g

    Parameters
    ----------
    mask : Tensor of shape (n_features, n_inputs)
        :math:`w_j`, group after group.
    inputs : Tensor of shape (n_groups, n_inputs, n_samples)
        :math:`\zeta_{gi}`.
    first : Tensor of shape (n_groups, D_1, n_inputs)
        :math:`F_g`.
    hidden, heads
        As in `DecoderWeights`.
    sizes : sequence of int
        Number of features in each group.
    precision : {"float32", "bfloat16"}

    Returns
    -------
    Tensor of shape (n_samples, n_features)
    """
    tensors = (mask, inputs, first, heads, *(tensor for layer in hidden for tensor in layer))
    differentiate = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    compute = torch.bfloat16 if precision == "bfloat16" else heads.dtype
    on_cpu = heads.device.type == "cpu"
    width = max([first.shape[1], *(bias.shape[0] for _, bias in hidden)])
    rows = block_rows(width, compute.itemsize, on_cpu)
    n_threads = n_decoder_threads() if on_cpu else 1
    cut = cut_into_tasks(tuple(sizes), inputs.shape[-1], rows, n_threads)
    return _Groups.apply(cut, compute, differentiate, *tensors)


class _Groups(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cut: Cut, compute: torch.dtype, keep: bool, *tensors: Tensor) -> Tensor:
        net = Network.of(tensors, cut.runs, compute)
        output = tensors[3].new_empty(tensors[1].shape[-1], tensors[3].shape[0])  # sample × feature
        parts = output.T.split(cut.runs)
        kept = _room_for_activations(cut.blocks, net) if keep else {}

        def work(todo: Iterator[int]) -> None:
            workspace = Workspace(net, cut.rows)
            for task in todo:
                for block in cut.tasks[task]:
                    forward_block(block, net, workspace.buffers(block), kept.get(block), parts[block.run])

        run_tasks(work, range(len(cut.tasks)), output.device)
        ctx.cut, ctx.compute, ctx.n_tensors = cut, compute, len(tensors)
        ctx.save_for_backward(*tensors, *(h for layers in kept.values() for h in layers))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        cut: Cut = ctx.cut
        tensors, activations = ctx.saved_tensors[: ctx.n_tensors], ctx.saved_tensors[ctx.n_tensors :]
        mask, inputs, first, heads, *_ = tensors
        net = Network.of(tensors, cut.runs, ctx.compute)
        n_kept = len(net.hidden)
        numbers = range(0, len(activations), max(n_kept, 1))
        kept = {block: activations[i : i + n_kept] for i, block in zip(numbers, cut.blocks, strict=False)}

        grad_mask, grad_heads = mask.new_zeros(mask.T.shape), torch.zeros_like(heads)
        of_run = list(
            zip(
                grad_output.T.split(cut.runs),
                grad_mask.unsqueeze(2).split(cut.runs, 1),
                grad_heads.unsqueeze(1).split(cut.runs),
                strict=True,
            )
        )
        sums: dict[int, Gradients] = {}

        def work(todo: Iterator[int]) -> None:
            workspace = Workspace(net, cut.rows)
            for task in todo:
                sums[task] = Gradients(net)
                for block in cut.tasks[task]:
                    space = workspace.buffers(block)
                    backward_block(block, net, space, kept.get(block), *of_run[block.run], sums[task])

        run_tasks(work, range(len(cut.tasks)), grad_output.device)
        total = Gradients(net)
        for task in sorted(sums):  # in this order whichever thread did which, so that rounding is the same
            total.add(sums[task])
        grad_inputs, grad_first = torch.zeros_like(inputs), torch.zeros_like(first)
        for group, (of_inputs, of_first) in total.groups.items():
            grad_inputs[group], grad_first[group] = of_inputs.squeeze(1), of_first.T
        layers = [tensor for layer in total.hidden for tensor in layer]
        return None, None, None, grad_mask.T, grad_inputs, grad_first, grad_heads, *layers


def _room_for_activations(blocks: Sequence[Block], net: Network) -> dict[Block, Sequence[Tensor]]:
    """Allocate the activations of as many blocks as the limit allows; blocks write straight into them.

    One tensor per block: larger pieces would go back to the system after each step, and come page by page.
    """
    kept: dict[Block, Sequence[Tensor]] = {}
    if not net.hidden:
        return kept
    widths = net.widths[1:]  # a first layer has few inputs: computed again sooner than fetched from memory
    left = _KEEP_BYTES
    new_empty = net.inputs[0].new_empty
    for block in blocks:
        left -= block.n_rows * sum(widths) * net.compute.itemsize
        if left < 0:
            break
        kept[block] = [new_empty(block.n_rows, width, dtype=net.compute) for width in widths]
    return kept
