"""The decoder in cache-sized blocks of features, with its backward pass written out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sparsevae.decoder.dense import decode_dense
from sparsevae.decoder.kernels import Gradients, Network, Workspace, backward_block, forward_block
from sparsevae.decoder.layout import Block, block_rows, cut_into_tasks
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
    by_feature = decode_groups(
        mask,
        z.mT.unsqueeze(0),
        weights.first.unsqueeze(0),
        weights.hidden,
        weights.heads,
        sizes=(mask.shape[0],),
        precision=precision,
    )
    return (by_feature.mT + weights.intercept).contiguous()


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

    .. math:: \text{output}_{ji} = v_j^\top h_L(F_g (w_j \odot \zeta_{gi})), \qquad j \in \text{group } g

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
    Tensor of shape (n_features, n_samples)
    """
    tensors = (mask, inputs, first, heads, *(tensor for layer in hidden for tensor in layer))
    differentiate = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    compute = torch.bfloat16 if precision == "bfloat16" else heads.dtype
    on_cpu = heads.device.type == "cpu"
    width = max([first.shape[1], *(bias.shape[0] for _, bias in hidden)])
    rows = block_rows(width, compute.itemsize, on_cpu)
    tasks, runs = cut_into_tasks(sizes, inputs.shape[-1], rows, n_decoder_threads() if on_cpu else 1)
    return _Groups.apply(_Cut(tasks, runs, compute, differentiate), *tensors)


class _Cut(NamedTuple):
    tasks: list[list[Block]]
    runs: list[int]
    compute: torch.dtype
    differentiate: bool

    @property
    def blocks(self) -> list[Block]:
        return [block for task in self.tasks for block in task]

    @property
    def rows(self) -> int:
        return max((block.n_rows for block in self.blocks), default=0)


class _Groups(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cut: _Cut, *tensors: Tensor) -> Tensor:
        net = Network.of(tensors, cut.runs, cut.compute)
        output = tensors[3].new_empty(tensors[3].shape[0], tensors[1].shape[-1])  # feature × sample
        parts = output.split(cut.runs)
        kept = _room_for_activations(cut.blocks, net) if cut.differentiate else {}
        rows = cut.rows

        def work(todo: Iterator[list[Block]]) -> None:
            workspace = Workspace(net, rows)
            for blocks in todo:
                for block in blocks:
                    forward_block(block, net, workspace.buffers(block), kept.get(block), parts[block.run])

        run_tasks(work, cut.tasks, output.device)
        ctx.cut, ctx.kept = cut, list(kept)
        ctx.save_for_backward(*tensors, *(h for block in kept for h in kept[block]))
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        cut: _Cut = ctx.cut
        n_tensors = len(ctx.needs_input_grad) - 1
        tensors, activations = ctx.saved_tensors[:n_tensors], ctx.saved_tensors[n_tensors:]
        mask, inputs, first, heads, *_ = tensors
        net = Network.of(tensors, cut.runs, cut.compute)
        depth = len(net.widths)
        kept = {block: activations[i * depth : (i + 1) * depth] for i, block in enumerate(ctx.kept)}

        grad_mask, grad_heads = mask.new_zeros(mask.T.shape), torch.zeros_like(heads)
        of_run = list(
            zip(
                grad_output.contiguous().unsqueeze(2).split(cut.runs),
                grad_mask.unsqueeze(2).split(cut.runs, 1),
                grad_heads.unsqueeze(1).split(cut.runs),
                strict=True,
            )
        )
        sums = [Gradients(net) for _ in cut.tasks]
        rows = cut.rows

        def work(todo: Iterator[tuple[list[Block], Gradients]]) -> None:
            workspace = Workspace(net, rows)
            for blocks, task_sums in todo:
                for block in blocks:
                    space = workspace.buffers(block)
                    backward_block(block, net, space, kept.get(block), *of_run[block.run], task_sums)

        run_tasks(work, list(zip(cut.tasks, sums, strict=True)), grad_output.device)
        total = Gradients(net)
        for task_sums in sums:  # in this order whichever thread did which, so that rounding is the same
            total.add(task_sums)
        grad_inputs, grad_first = torch.zeros_like(inputs), torch.zeros_like(first)
        for group, (of_inputs, of_first) in total.groups.items():
            grad_inputs[group], grad_first[group] = of_inputs.squeeze(1), of_first.T
        layers = [tensor for layer in total.hidden for tensor in layer]
        return None, grad_mask.T, grad_inputs, grad_first, grad_heads, *layers


def _room_for_activations(blocks: list[Block], net: Network) -> dict[Block, list[Tensor]]:
    """Allocate the activations of as many blocks as the limit allows; the blocks write straight into them."""
    kept: dict[Block, list[Tensor]] = {}
    left = _KEEP_BYTES
    for block in blocks:
        left -= block.n_rows * sum(net.widths) * net.compute.itemsize
        if left < 0:
            break
        new_empty = net.inputs[0].new_empty
        kept[block] = [new_empty(block.n_rows, width, dtype=net.compute) for width in net.widths]
    return kept
