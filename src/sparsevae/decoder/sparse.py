r"""The decoder that profits from exact zeros in the mask: empty features, anchors, factors not in use.

The first layer has no bias, so that it is positively homogeneous. An anchor with its one non-zero at factor
:math:`k` has the input :math:`s e_k`, :math:`s = w_{jk} z_{ik}`, and

.. math:: H_2 h_1(s e_k) = s_+ H_2\,\mathrm{relu}(H_{1,k}) + s_-\,H_2\,\mathrm{relu}(-H_{1,k}),

with :math:`s_\pm = \max(\pm s, 0)`: two vectors per factor take the place of a matrix product per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sparsevae.decoder.anchors import decode_curves
from sparsevae.decoder.blocked import decode_groups
from sparsevae.decoder.dense import decode_dense
from sparsevae.decoder.plan import MaskPlan, plan_mask
from sparsevae.decoder.weights import DecoderWeights, check_decoder_inputs, relu_layers

__all__ = ["decode_sparse"]


def decode_sparse(
    mask: Tensor,
    z: Tensor,
    weights: DecoderWeights,
    *,
    precision: str = "float32",
    plan: MaskPlan | None = None,
) -> Tensor:
    """Decode features by what their rows of the mask need.

    Parameters
    ----------
    mask : Tensor of shape (n_features, n_factors)
    z : Tensor of shape (n_samples, n_factors)
    weights : DecoderWeights
        Without replicates.
    precision : {"float32", "bfloat16"}
        Of the matrix products.
    plan : MaskPlan, optional
        `plan_mask` of this mask's support, if it is known already.

    Returns
    -------
    Tensor of shape (n_samples, n_features)

    Notes
    -----
    Values are those of `decode_literal` up to rounding, and so is every gradient but one: mask entries that
    are exactly zero get the gradient zero. A proximal method keeps such an entry at zero either way unless
    its gradient exceeds the penalty; to test for that, decode with ``zero_gradients=True``.
    """
    check_decoder_inputs(mask, z, weights)
    first = weights.first
    if first is None:
        return decode_dense(mask * (mask.detach() != 0), z, weights)
    plan = plan_mask(mask) if plan is None else plan
    mask_parts = _permute(mask, 0, plan.order, plan.inverse).split(plan.sizes)
    head_parts = _permute(weights.heads, 0, plan.order, plan.inverse).split(plan.sizes)
    parts = []  # sample × feature
    if plan.sizes[0]:
        parts.append(_decode_general(mask_parts[0], z, first, weights.hidden, head_parts[0], plan, precision))
    if plan.sizes[1]:
        parts.append(_decode_anchors(mask_parts[1], z, first, weights.hidden, head_parts[1], plan, precision))
    if plan.sizes[2] or not parts:
        h = relu_layers(z.new_zeros(1, z.shape[1]), weights)  # one row: an empty feature's activations
        parts.append((h @ head_parts[2].mT).expand(z.shape[0], -1))
    return _permute(torch.cat(parts, dim=1), 1, plan.inverse, plan.order) + weights.intercept


def _decode_general(
    mask: Tensor,
    z: Tensor,
    first: Tensor,
    hidden: Sequence[tuple[Tensor, Tensor]],
    heads: Tensor,
    plan: MaskPlan,
    precision: str,
) -> Tensor:
    if plan.active is not None:
        mask, z, first = (tensor.index_select(1, plan.active) for tensor in (mask, z, first))
    if not plan.zero_gradients:
        mask = mask * (mask.detach() != 0)
    return decode_groups(
        mask,
        z.mT.unsqueeze(0),
        first.unsqueeze(0),
        hidden,
        heads,
        sizes=plan.sizes[:1],
        precision=precision,
    )


def _decode_anchors(
    mask: Tensor,
    z: Tensor,
    first: Tensor,
    hidden: Sequence[tuple[Tensor, Tensor]],
    heads: Tensor,
    plan: MaskPlan,
    precision: str,
) -> Tensor:
    w = mask.gather(1, plan.anchor_factors.unsqueeze(1)).squeeze(1)
    units = torch.relu(torch.stack([first.mT, -first.mT]))  # sign × factor × hidden
    if not hidden:
        slopes = (units[:, plan.anchor_factors] * heads).sum(-1)  # sign × anchor
        s = w * z.index_select(1, plan.anchor_factors)  # sample × anchor
        return torch.relu(s) * slopes[0] + torch.relu(-s) * slopes[1]

    (weight, bias), *rest = hidden
    lines = units @ weight.mT  # sign × factor × hidden
    if not rest:
        return decode_curves(w, z, plan.anchor_factors, lines, bias, heads)

    # A masked network of one layer less, one group per factor: s₊ is w₊z₊ + w₋z₋, s₋ is w₊z₋ + w₋z₊, and the
    # bias is the weight of a fifth input that is always one.
    up, down = lines
    second = torch.stack([up, down, down, up, bias.expand_as(up)], dim=-1)  # factor × hidden × 5
    w_up, w_down, z_up, z_down = torch.relu(w), torch.relu(-w), torch.relu(z.mT), torch.relu(-z.mT)
    rows = torch.stack([w_up, w_up, w_down, w_down, torch.ones_like(w)], dim=-1)  # anchor × 5
    inputs = torch.stack([z_up, z_down, z_up, z_down, torch.ones_like(z_up)], dim=1)  # factor × 5 × sample
    return decode_groups(rows, inputs, second, rest, heads, sizes=plan.anchor_counts, precision=precision)


def _permute(tensor: Tensor, dim: int, order: Tensor, inverse: Tensor) -> Tensor:
    return _Permute.apply(tensor, dim, order, inverse)


class _Permute(torch.autograd.Function):
    """``index_select`` by a permutation: its gradient is the same by the inverse, not a slow scatter."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dim: int, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.dim = dim
        ctx.save_for_backward(order, inverse)
        return tensor.index_select(dim, order)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        order, inverse = ctx.saved_tensors
        return _permute(grad, ctx.dim, inverse, order), None, None, None
