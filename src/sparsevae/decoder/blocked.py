"""The decoder in cache-sized blocks of features, with its backward pass written out.

Inside a block, rows are (feature, sample) pairs. Inputs lie factor by row and activations row by unit: with few
factors, the narrow side of a product must be its first dimension for the matrix kernels to run at full rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sparsevae.decoder.dense import decode_dense
from sparsevae.decoder.layout import Block, block_rows, cut_into_tasks
from sparsevae.decoder.threads import run_tasks
from sparsevae.decoder.weights import DecoderWeights, check_decoder_inputs

__all__ = ["decode_blocked", "decode_groups"]

_KEEP_BYTES = 512 * 2**20  # activations kept for the backward pass; blocks beyond it compute theirs again

_threshold_backward = torch.ops.aten.threshold_backward.grad_input


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
        mask, z.mT.unsqueeze(0), weights.first.unsqueeze(0), weights.hidden, weights.heads,
        sizes=(mask.shape[0],), precision=precision,
    )  # fmt: skip
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
    layers = tuple(tensor for layer in hidden for tensor in layer)
    tensors = (mask, inputs, first, heads, *layers)
    differentiate = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    compute = torch.bfloat16 if precision == "bfloat16" else heads.dtype
    on_cpu = heads.device.type == "cpu"
    width = max([first.shape[1], *(bias.shape[0] for _, bias in hidden)])
    rows = block_rows(width, compute.itemsize, on_cpu)
    tasks = cut_into_tasks(sizes, inputs.shape[-1], rows, torch.get_num_threads() if on_cpu else 1)
    return _Groups.apply(tasks, compute, differentiate, *tensors)


class _Network(NamedTuple):
    """The tensors of `decode_groups` in the layout and type that the kernels want."""

    mask: Tensor  # factor × feature
    inputs: Tensor  # group × factor × sample
    first: Tensor  # group × hidden × factor
    hidden: list[tuple[Tensor, Tensor]]
    heads: Tensor

    @property
    def widths(self) -> list[int]:
        return [self.first.shape[1], *(bias.shape[0] for _, bias in self.hidden)]


class _Groups(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tasks: list[list[Block]], compute: torch.dtype, keep: bool, *tensors: Tensor) -> Tensor:
        net = _network(tensors, compute)
        output = net.heads.new_empty(net.heads.shape[0], net.inputs.shape[-1])  # feature × sample
        kept = _choose_kept(tasks, net, compute) if keep else {}

        def work(todo: Iterator[list[Block]]) -> None:
            space = _Workspace(tasks, net, compute)
            for blocks in todo:
                for block in blocks:
                    inputs = _block_inputs(block, net, space)
                    h = kept[block] if block in kept else space.activations(block)
                    _activate(inputs, block.group, net, h)
                    _apply_heads(h[-1], block, net, space, output)

        run_tasks(work, tasks, output.device)
        ctx.tasks, ctx.compute, ctx.kept_blocks = tasks, compute, list(kept)
        ctx.save_for_backward(*tensors, *(h for block in kept for h in kept[block]))
        ctx.n_tensors = len(tensors)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        tensors, activations = saved[: ctx.n_tensors], saved[ctx.n_tensors :]
        net = _network(tensors, ctx.compute)
        depth = len(net.widths)
        kept = {
            block: activations[number * depth : (number + 1) * depth] for number, block in enumerate(ctx.kept_blocks)
        }
        grad_output = grad_output.contiguous()
        grad_mask = torch.zeros_like(net.mask)
        grad_heads = torch.zeros_like(net.heads)
        sums = [_Sums(net) for _ in ctx.tasks]

        def work(todo: Iterator[tuple[list[Block], _Sums]]) -> None:
            space = _Workspace(ctx.tasks, net, ctx.compute)
            for blocks, task_sums in todo:
                for block in blocks:
                    inputs = _block_inputs(block, net, space)
                    if block in kept:
                        h = kept[block]
                    else:
                        h = space.activations(block)
                        _activate(inputs, block.group, net, h)
                    _backward_block(block, inputs, h, grad_output, net, space, task_sums, grad_mask, grad_heads)

        run_tasks(work, list(zip(ctx.tasks, sums, strict=True)), grad_output.device)
        total = _Sums(net)
        for task_sums in sums:
            total.add(task_sums)
        grad_inputs, grad_first = torch.zeros_like(net.inputs), torch.zeros_like(tensors[2])
        for group, (group_inputs, group_first) in total.groups.items():
            grad_inputs[group], grad_first[group] = group_inputs, group_first.T
        layers = (tensor for layer in total.hidden for tensor in layer)
        return None, None, None, grad_mask.T, grad_inputs, grad_first, grad_heads, *layers


class _Workspace:
    """Buffers of one thread, as large as its largest block."""

    def __init__(self, tasks: list[list[Block]], net: _Network, compute: torch.dtype) -> None:
        blocks = [block for task in tasks for block in task]
        rows = max((_n_rows(block) for block in blocks), default=0)
        n_inputs, width = net.mask.shape[0], max(net.widths)
        self._widths = net.widths
        self._inputs = net.heads.new_empty(n_inputs * rows, dtype=compute)
        self._input_gradients = net.heads.new_empty(n_inputs * rows, dtype=compute)
        self._input_products = net.heads.new_empty(n_inputs * rows)
        self._activations = [net.heads.new_empty(rows * d, dtype=compute) for d in net.widths]
        self._gradients = [net.heads.new_empty(rows * width, dtype=compute) for _ in range(2)]
        self._products = net.heads.new_empty(rows * net.widths[-1])

    def activations(self, block: Block) -> list[Tensor]:
        rows = _n_rows(block)
        return [
            buffer[: rows * width].view(rows, width)
            for buffer, width in zip(self._activations, self._widths, strict=True)
        ]

    def gradient(self, number: int, rows: int, width: int) -> Tensor:
        return self._gradients[number][: rows * width].view(rows, width)

    def products(self, block: Block) -> Tensor:
        return self._products[: _n_rows(block) * self._widths[-1]].view(*_n_pairs(block), self._widths[-1])

    def inputs(self, block: Block, n_inputs: int) -> Tensor:
        return self._inputs[: n_inputs * _n_rows(block)].view(n_inputs, *_n_pairs(block))

    def input_gradients(self, block: Block, n_inputs: int) -> Tensor:
        return self._input_gradients[: n_inputs * _n_rows(block)].view(n_inputs, *_n_pairs(block))

    def input_products(self, block: Block, n_inputs: int) -> Tensor:
        return self._input_products[: n_inputs * _n_rows(block)].view(n_inputs, *_n_pairs(block))


class _Sums:
    """Gradients that a task sums over its rows: per group of the inputs and the first layer, and of the layers."""

    def __init__(self, net: _Network) -> None:
        self._net = net
        self.groups: dict[int, tuple[Tensor, Tensor]] = {}
        heads = net.heads
        self.hidden = [
            (heads.new_zeros(weight.shape), heads.new_zeros(bias.shape)) for weight, bias in net.hidden
        ]

    def of_group(self, group: int) -> tuple[Tensor, Tensor]:
        """Sums for the inputs (factor × sample) and for the first layer (factor × hidden)."""
        if group not in self.groups:
            net = self._net
            inputs = torch.zeros_like(net.inputs[group])
            self.groups[group] = inputs, net.heads.new_zeros(net.mask.shape[0], net.first.shape[1])
        return self.groups[group]

    def add(self, other: _Sums) -> None:
        for group, sums in other.groups.items():
            for mine, theirs in zip(self.of_group(group), sums, strict=True):
                mine += theirs
        for mine_layer, their_layer in zip(self.hidden, other.hidden, strict=True):
            for mine, theirs in zip(mine_layer, their_layer, strict=True):
                mine += theirs


def _network(tensors: Sequence[Tensor], compute: torch.dtype) -> _Network:
    mask, inputs, first, heads, *layers = (tensor.detach() for tensor in tensors)
    layers = [layer.to(compute) for layer in layers]
    hidden = list(zip(layers[::2], layers[1::2], strict=True))
    return _Network(mask.T.contiguous(), inputs.contiguous(), first.to(compute), hidden, heads.contiguous())


def _n_pairs(block: Block) -> tuple[int, int]:
    return block.stop - block.start, block.high - block.low


def _n_rows(block: Block) -> int:
    return (block.stop - block.start) * (block.high - block.low)


def _choose_kept(tasks: list[list[Block]], net: _Network, compute: torch.dtype) -> dict[Block, list[Tensor]]:
    """Room for the activations of as many blocks as the limit allows; the blocks write straight into it."""
    kept: dict[Block, list[Tensor]] = {}
    left = _KEEP_BYTES
    for task in tasks:
        for block in task:
            rows = _n_rows(block)
            left -= rows * sum(net.widths) * compute.itemsize
            if left < 0:
                return kept
            kept[block] = [net.heads.new_empty(rows, width, dtype=compute) for width in net.widths]
    return kept


def _block_inputs(block: Block, net: _Network, space: _Workspace) -> Tensor:
    """``w_j ⊙ z_i`` for the rows of a block: factor × feature × sample."""
    inputs = space.inputs(block, net.mask.shape[0])
    rows_of_mask = net.mask[:, block.start : block.stop].unsqueeze(2)
    return torch.mul(rows_of_mask, net.inputs[block.group, :, None, block.low : block.high], out=inputs)


def _activate(inputs: Tensor, group: int, net: _Network, h: Sequence[Tensor]) -> None:
    """Fill ``h`` with the hidden activations, row × unit."""
    _relu_(torch.mm(inputs.flatten(1).T, net.first[group].T, out=h[0]))
    for (weight, bias), below, above in zip(net.hidden, h, h[1:], strict=False):
        _relu_(torch.addmm(bias, below, weight.T, out=above))


def _apply_heads(last: Tensor, block: Block, net: _Network, space: _Workspace, output: Tensor) -> None:
    pairs = last.view(*_n_pairs(block), -1)  # feature × sample × hidden
    products = torch.mul(pairs, net.heads[block.start : block.stop].unsqueeze(1), out=space.products(block))
    torch.sum(products, -1, out=output[block.start : block.stop, block.low : block.high])


def _backward_block(
    block: Block,
    inputs: Tensor,
    h: Sequence[Tensor],
    grad_output: Tensor,
    net: _Network,
    space: _Workspace,
    sums: _Sums,
    grad_mask: Tensor,
    grad_heads: Tensor,
) -> None:
    features = slice(block.start, block.stop)
    rows, n_inputs = _n_rows(block), net.mask.shape[0]
    grad = grad_output[features, block.low : block.high].unsqueeze(2)  # feature × sample × 1
    last = h[-1].view(*_n_pairs(block), -1)
    grad_heads[features] += torch.mul(last, grad, out=space.products(block)).sum(1)

    g = space.gradient(0, rows, last.shape[-1])
    torch.mul(grad, net.heads[features].unsqueeze(1), out=g.view_as(last))
    _gate_(g, h[-1])
    for number, layer in enumerate(reversed(range(len(net.hidden))), start=1):
        weight, below = net.hidden[layer][0], h[layer]
        grad_weight, grad_bias = sums.hidden[layer]
        _add_product_(grad_weight, g.T, below)
        grad_bias += g.sum(0)
        g = torch.mm(g, weight, out=space.gradient(number % 2, rows, below.shape[1]))
        _gate_(g, below)

    group_inputs, group_first = sums.of_group(block.group)
    _add_product_(group_first, inputs.flatten(1), g)
    u = space.input_gradients(block, n_inputs)  # factor × feature × sample
    torch.mm(net.first[block.group].T, g.T, out=u.flatten(1))
    samples = net.inputs[block.group, :, None, block.low : block.high]
    products = space.input_products(block, n_inputs)
    grad_mask[:, features] += torch.mul(u, samples, out=products).sum(2)
    rows_of_mask = net.mask[:, features].unsqueeze(2)
    group_inputs[:, block.low : block.high] += torch.mul(u, rows_of_mask, out=products).sum(1)


def _relu_(h: Tensor) -> Tensor:
    if _as_integers(h):
        # The sign bit of a bfloat16 is that of an int16, and torch has fast integer kernels on a CPU.
        h.view(torch.int16).clamp_min_(0)
        return h
    return h.relu_()


def _gate_(grad: Tensor, activation: Tensor) -> None:
    """Zero the gradient where the activation is zero, as relu's derivative does."""
    if _as_integers(grad):
        grad, activation = grad.view(torch.int16), activation.view(torch.int16)
    _threshold_backward(grad, activation, 0, grad_input=grad)


def _as_integers(tensor: Tensor) -> bool:
    return tensor.dtype == torch.bfloat16 and tensor.device.type == "cpu"


def _add_product_(total: Tensor, a: Tensor, b: Tensor) -> None:
    if total.dtype == a.dtype:
        total.addmm_(a, b)
    else:
        total.add_(torch.mm(a, b))
