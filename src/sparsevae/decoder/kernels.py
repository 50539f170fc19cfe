"""Forward and backward pass of one block of the masked decoder, in buffers that a thread owns.

Rows are (feature, sample) pairs. Inputs lie factor × row and activations row × unit: with few factors, the
narrow side of a product must be its first dimension for the matrix kernels to run at full rate. A kernel here
takes a few microseconds, so that views are made once per pass or per shape rather than once per block.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sparsevae.decoder.layout import Block

__all__ = ["Gradients", "Network", "Workspace", "backward_block", "forward_block"]

_threshold_backward = torch.ops.aten.threshold_backward.grad_input


class Network(NamedTuple):
    """The tensors of a decoder in the layout and type that the kernels want; a run is a run of features."""

    mask: Sequence[Tensor]  # per run: factor × feature × 1
    inputs: Sequence[Tensor]  # per group: factor × 1 × sample
    first: Sequence[Tensor]  # per group: hidden × factor
    hidden: Sequence[tuple[Tensor, Tensor]]
    heads: Sequence[Tensor]  # per run: feature × 1 × hidden
    n_inputs: int
    widths: Sequence[int]  # of the hidden layers
    compute: torch.dtype  # of the matrix products
    full: torch.dtype  # of everything else

    @classmethod
    def of(cls, tensors: Sequence[Tensor], runs: Sequence[int], compute: torch.dtype) -> Network:
        """Lay out mask, inputs, first, heads and layers as `decode_groups` takes them."""
        mask, inputs, first, heads, *layers = (tensor.detach() for tensor in tensors)
        layers = [layer.to(compute) for layer in layers]
        hidden = list(zip(layers[::2], layers[1::2], strict=True))
        return cls(
            mask.T.contiguous().unsqueeze(2).split(runs, 1),
            inputs.contiguous().unsqueeze(2).unbind(),
            first.to(compute).unbind(),
            hidden,
            heads.contiguous().unsqueeze(1).split(runs),
            mask.shape[1],
            [first.shape[1], *(bias.shape[0] for _, bias in hidden)],
            compute,
            heads.dtype,
        )


class Gradients:
    """Where a pass adds up the gradients of a network; one per task for what tasks share."""

    def __init__(self, net: Network) -> None:
        self._net = net
        new_zeros = net.inputs[0].new_zeros
        self.hidden = [(new_zeros(weight.shape), new_zeros(bias.shape)) for weight, bias in net.hidden]
        self.groups: dict[int, tuple[Tensor, Tensor]] = {}

    def of_group(self, group: int) -> tuple[Tensor, Tensor]:
        """Return the sums for a group's inputs (factor × 1 × sample) and first layer (factor × hidden)."""
        if group not in self.groups:
            inputs = self._net.inputs[group]
            first = inputs.new_zeros(self._net.n_inputs, self._net.widths[0])
            self.groups[group] = torch.zeros_like(inputs), first
        return self.groups[group]

    def add(self, other: Gradients) -> None:
        """Add another task's sums to these."""
        for group, sums in other.groups.items():
            for mine, theirs in zip(self.of_group(group), sums, strict=True):
                mine += theirs
        for my_layer, their_layer in zip(self.hidden, other.hidden, strict=True):
            for mine, theirs in zip(my_layer, their_layer, strict=True):
                mine += theirs


class _Buffers(NamedTuple):
    """Views of a workspace in the shape of one block."""

    inputs: Tensor  # factor × feature × sample
    inputs_by_factor: Tensor  # factor × row
    inputs_by_row: Tensor  # row × factor
    activations: list[Tensor]  # per layer: row × hidden
    gradients: list[Tensor]  # per layer: row × hidden
    transposed: list[Tensor]  # the same, hidden × row
    last_gradient: Tensor  # of the last layer: feature × sample × hidden
    products: Tensor  # feature × sample × hidden, full precision
    raw_input_gradients: Tensor  # factor × row
    input_gradients: Tensor  # factor × feature × sample, full precision
    input_products: Tensor  # factor × feature × sample, full precision


class Workspace:
    """Memory of the calling thread for blocks of up to a number of rows."""

    def __init__(self, net: Network, rows: int) -> None:
        self._net = net
        self._views: dict[tuple[int, int], _Buffers] = {}
        n_wide, n_narrow = len(net.widths) + 2, 4
        most = rows * (n_wide * max(net.widths) + n_narrow * net.n_inputs) * net.full.itemsize
        self._free = _scratch(most + 64 * (n_wide + n_narrow), net.inputs[0].device)
        self._inputs = self._area(net.n_inputs * rows, net.compute)
        self._activations = [self._area(rows * width, net.compute) for width in net.widths]
        self._gradients = [self._area(rows * max(net.widths), net.compute) for _ in range(2)]
        self._raw_input_gradients = self._area(net.n_inputs * rows, net.compute)
        self._input_products = self._area(net.n_inputs * rows, net.full)
        if net.compute == net.full:
            # Head products are read before the last layer's gradient is written: one area less in the cache.
            self._products = self._gradients[(len(net.widths) - 1) % 2]
            self._input_gradients = self._raw_input_gradients
        else:
            self._products = self._area(rows * net.widths[-1], net.full)
            self._input_gradients = self._area(net.n_inputs * rows, net.full)

    def buffers(self, block: Block) -> _Buffers:
        """Return views in the shape of a block."""
        shape = (block.n_features, block.n_samples)
        if shape not in self._views:
            self._views[shape] = self._shape(*shape)
        return self._views[shape]

    def _area(self, size: int, dtype: torch.dtype) -> Tensor:
        n_bytes = size * dtype.itemsize
        area, self._free = self._free[:n_bytes], self._free[-(-n_bytes // 64) * 64 :]
        return area.view(dtype)

    def _shape(self, n_features: int, n_samples: int) -> _Buffers:
        n_inputs, widths, rows = self._net.n_inputs, self._net.widths, n_features * n_samples
        by_pair, last = (n_inputs, n_features, n_samples), (n_features, n_samples, widths[-1])

        def view(area: Tensor, *shape: int) -> Tensor:
            return area[: torch.Size(shape).numel()].view(shape)

        gradients = [view(self._gradients[i % 2], rows, width) for i, width in enumerate(widths)]
        return _Buffers(
            inputs=view(self._inputs, *by_pair),
            inputs_by_factor=view(self._inputs, n_inputs, rows),
            inputs_by_row=view(self._inputs, n_inputs, rows).T,
            activations=[view(a, rows, width) for a, width in zip(self._activations, widths, strict=True)],
            gradients=gradients,
            transposed=[gradient.T for gradient in gradients],
            last_gradient=gradients[-1].view(last),
            products=view(self._products, *last),
            raw_input_gradients=view(self._raw_input_gradients, n_inputs, rows),
            input_gradients=view(self._input_gradients, *by_pair),
            input_products=view(self._input_products, *by_pair),
        )


def forward_block(
    block: Block, net: Network, space: _Buffers, kept: Sequence[Tensor] | None, output: Tensor
) -> None:
    """Write a block's output, feature × sample; activations go to ``kept`` where there is room for them."""
    h = _with_kept(space, kept)
    _fill_inputs(block, net, space)
    _activate_first(block, net, space)
    _activate_rest(net, h)
    torch.mul(_last(net, space, h), net.heads[block.run], out=space.products)
    torch.sum(space.products, -1, out=_samples(output, 1, block))


def backward_block(
    block: Block,
    net: Network,
    space: _Buffers,
    kept: Sequence[Tensor] | None,
    grad_output: Tensor,
    grad_mask: Tensor,
    grad_heads: Tensor,
    sums: Gradients,
) -> None:
    """Add a block's part to every gradient.

    ``grad_output`` is feature × sample; ``grad_mask`` and ``grad_heads`` are laid out as in the network; all
    three are those of the block's run.
    """
    h = _with_kept(space, kept)
    _fill_inputs(block, net, space)
    _activate_first(block, net, space)
    if kept is None:
        _activate_rest(net, h)
    grad = _samples(grad_output, 1, block).contiguous().unsqueeze(2)
    grad_heads.baddbmm_(grad.mT, _last(net, space, h))

    torch.mul(grad, net.heads[block.run], out=space.last_gradient)
    _gate_(space.gradients[-1], h[-1])
    for layer in reversed(range(len(net.hidden))):
        grad_weight, grad_bias = sums.hidden[layer]
        g = space.gradients[layer + 1]
        _add_product_(grad_weight, space.transposed[layer + 1], h[layer])
        grad_bias += g.sum(0)
        torch.mm(g, net.hidden[layer][0], out=space.gradients[layer])
        _gate_(space.gradients[layer], h[layer])

    grad_inputs, grad_first = sums.of_group(block.group)
    _add_product_(grad_first, space.inputs_by_factor, space.gradients[0])
    torch.mm(net.first[block.group].T, space.transposed[0], out=space.raw_input_gradients)
    u = space.input_gradients
    if net.compute != net.full:
        u.copy_(space.raw_input_gradients.view(u.shape))
    torch.mul(u, _samples(net.inputs[block.group], 2, block), out=space.input_products)
    grad_mask += space.input_products.sum(2, keepdim=True)
    _samples(grad_inputs, 2, block).baddbmm_(net.mask[block.run].mT, u)


_local = threading.local()


def _scratch(n_bytes: int, device: torch.device) -> Tensor:
    """Return memory that the thread keeps: a few megabytes, else fetched page by page in each pass."""
    if device.type != "cpu":
        return torch.empty(n_bytes, dtype=torch.uint8, device=device)
    if getattr(_local, "scratch", None) is None or _local.scratch.numel() < n_bytes:
        with torch.inference_mode(
            False
        ):  # an inference tensor could not be written to in a later training step
            _local.scratch = torch.empty(n_bytes, dtype=torch.uint8)
    return _local.scratch


def _fill_inputs(block: Block, net: Network, space: _Buffers) -> None:
    torch.mul(net.mask[block.run], _samples(net.inputs[block.group], 2, block), out=space.inputs)


def _with_kept(space: _Buffers, kept: Sequence[Tensor] | None) -> Sequence[Tensor]:
    """Activations of all layers; those of the first are never kept."""
    return space.activations if kept is None else [space.activations[0], *kept]


def _activate_first(block: Block, net: Network, space: _Buffers) -> None:
    _relu_(torch.mm(space.inputs_by_row, net.first[block.group].T, out=space.activations[0]))


def _activate_rest(net: Network, h: Sequence[Tensor]) -> None:
    for layer, (weight, bias) in enumerate(net.hidden):
        _relu_(torch.addmm(bias, h[layer], weight.T, out=h[layer + 1]))


def _last(net: Network, space: _Buffers, h: Sequence[Tensor]) -> Tensor:
    """The last activations in full precision: feature × sample × hidden."""
    last = h[-1].view(space.products.shape)
    # One conversion and a kernel of one type are faster than a kernel of two.
    return last if net.compute == net.full else space.products.copy_(last)


def _samples(tensor: Tensor, dim: int, block: Block) -> Tensor:
    if block.n_samples == tensor.shape[dim]:
        return tensor
    return tensor.narrow(dim, block.low, block.n_samples)


def _relu_(h: Tensor) -> None:
    if _as_integers(h):
        # The sign bit of a bfloat16 is that of an int16, and the integer kernel takes a sixth of the time.
        h.view(torch.int16).clamp_min_(0)
    else:
        h.relu_()


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
        total += torch.mm(a, b)
