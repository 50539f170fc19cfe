r"""The response of an anchor under two hidden layers: a piecewise linear curve, tabulated and looked up.

With its one non-zero at factor :math:`k` and :math:`s = w_{jk} z_{ik}`, an anchor's output is

.. math:: v_j^\top \mathrm{relu}(|s|\, l_{k\pm} + b), \qquad l_{k\pm} = H_2\,\mathrm{relu}(\pm H_{1,k}),

a function of one variable whose slope changes where a unit switches on or off, at
:math:`|s| = -b_d / l_{k\pm d}`. Those places are the same for all anchors of a factor; an anchor's slopes and
offsets between them are cumulative sums over the units in that order. A sample then costs a search among the
places rather than work for each unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sparsevae.decoder.threads import n_decoder_threads, run_tasks

__all__ = ["decode_curves"]

_MIN_SHARES = 2  # of the anchors; the same for 1 and 2 threads, and so are the sums
_PER_SHARE = 1 << 18  # elements of a table that a thread holds at a time


def decode_curves(
    w: Tensor, z: Tensor, factors: Tensor, lines: Tensor, bias: Tensor, heads: Tensor
) -> Tensor:
    """Decode anchors by their curves.

    Parameters
    ----------
    w : Tensor of shape (n_anchors,)
        The non-zero of each anchor.
    z : Tensor of shape (n_samples, n_factors)
    factors : Tensor of int of shape (n_anchors,)
        The factor of each anchor.
    lines : Tensor of shape (2, n_factors, D)
        Input of the second layer per unit of positive and of negative s, without the bias.
    bias : Tensor of shape (D,)
        Of the second layer.
    heads : Tensor of shape (n_anchors, D)

    Returns
    -------
    Tensor of shape (n_samples, n_anchors)
    """
    return _Curves.apply(factors, w, z, lines, bias, heads).mT


class _Switches(NamedTuple):
    """Where and how the units of the second layer switch, sorted by where; factor × sign × unit."""

    order: Tensor
    inverse: Tensor
    places: Tensor  # factor × (2 · unit): of negative s from below, then of positive s
    line: Tensor
    bias: Tensor
    start: Tensor  # 1 where the unit is on next to zero
    turn: Tensor  # 1 where it switches on, -1 where off, 0 where it never switches

    @classmethod
    def of(cls, lines: Tensor, bias: Tensor) -> _Switches:
        lines = lines.transpose(0, 1)  # factor × sign × unit
        places = -bias / lines
        places = torch.where(
            places > 0, places, torch.inf
        )  # not a number, where both are zero, is no place either
        places, order = torch.sort(places, dim=-1)
        line, bias = lines.gather(-1, order), bias.expand_as(lines).gather(-1, order)
        start = (bias > 0) | ((bias == 0) & (line > 0))
        turn = torch.where(places < torch.inf, torch.where(start, -1, 1), 0)
        above, below = places.unbind(1)
        return cls(
            order,
            torch.argsort(order, dim=-1),
            torch.cat([-below.flip(-1), above], dim=-1),
            line,
            bias,
            start.to(line.dtype),
            turn.to(line.dtype),
        )


class _Samples(NamedTuple):
    """Samples in ascending order of each factor, in which a search among places is several times faster."""

    values: Tensor  # factor × rank
    order: Tensor
    inverse: Tensor

    @classmethod
    def of(cls, z: Tensor) -> _Samples:
        values, order = torch.sort(z.mT.contiguous(), dim=1)
        return cls(values, order, torch.argsort(order, dim=1))


class _Share(NamedTuple):
    """What the backward pass needs of some anchors, their samples in ascending order of the factor."""

    s: Tensor  # anchor × rank
    piece: Tensor  # of its curve that a sample is on: anchor × rank
    slope: Tensor  # there: anchor × rank
    sorted_heads: Tensor  # anchor × sign × unit


class _Curves(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, factors: Tensor, w: Tensor, z: Tensor, lines: Tensor, bias: Tensor, heads: Tensor
    ) -> Tensor:
        switches, samples = _Switches.of(lines, bias), _Samples.of(z)
        output = w.new_empty(w.shape[0], z.shape[0])  # anchor × sample
        shares = _cut(w.shape[0], switches)
        kept: dict[int, _Share] = {}

        def work(todo: Iterator[int]) -> None:
            for share in todo:
                part = slice(*shares[share])
                kept[share] = _look_up(factors[part], w[part], samples, heads[part], switches, output[part])

        run_tasks(work, range(len(shares)), z.device)
        ctx.shares = shares
        ctx.save_for_backward(
            factors, w, *samples, *switches, *(tensor for i in range(len(shares)) for tensor in kept[i])
        )
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        factors, w, *rest = ctx.saved_tensors
        n_kept = len(_Share._fields)
        samples, switches, kept = _Samples(*rest[:3]), _Switches(*rest[3:10]), rest[10:]
        grad_w, grad_heads = torch.empty_like(w), w.new_empty(w.shape[0], switches.line.shape[-1])
        sums: dict[int, tuple[Tensor, Tensor, Tensor]] = {}

        def work(todo: Iterator[int]) -> None:
            for share in todo:
                part = slice(*ctx.shares[share])
                of_share = _Share(*kept[share * n_kept : (share + 1) * n_kept])
                sums[share] = _look_back(
                    factors[part],
                    w[part],
                    samples,
                    of_share,
                    switches,
                    grad_output[part],
                    grad_w[part],
                    grad_heads[part],
                )

        run_tasks(work, range(len(ctx.shares)), w.device)
        totals = [sum(of_kind) for of_kind in zip(*(sums[i] for i in sorted(sums)), strict=True)]
        grad_samples, grad_line, grad_bias = totals
        grad_lines = grad_line.view_as(switches.line).gather(-1, switches.inverse).transpose(0, 1)
        grad_bias = grad_bias.view_as(switches.line).gather(-1, switches.inverse).sum((0, 1))
        grad_z = grad_samples.gather(1, samples.inverse).mT
        return None, grad_w, grad_z, grad_lines, grad_bias, grad_heads


def _cut(n_anchors: int, switches: _Switches) -> list[tuple[int, int]]:
    by_size = -(-n_anchors * switches.places.shape[1] // _PER_SHARE)
    n_shares = min(n_anchors, max(_MIN_SHARES, n_decoder_threads(), by_size))
    return list(pairwise(n_anchors * share // n_shares for share in range(n_shares + 1)))


def _look_up(
    factors: Tensor, w: Tensor, samples: _Samples, heads: Tensor, switches: _Switches, output: Tensor
) -> _Share:
    """Write the output of some anchors, anchor × sample."""
    n_units = heads.shape[1]
    sorted_heads = heads.unsqueeze(1).expand(-1, 2, -1).gather(2, switches.order[factors])
    slopes, offsets = (
        _curve(sorted_heads, each, switches, factors) for each in (switches.line, switches.bias)
    )
    s = w.unsqueeze(1) * samples.values[factors]
    place = torch.searchsorted(switches.places[factors], s)
    # Pieces of a curve: those of positive s from zero upwards, then those of negative s from zero downwards.
    piece = torch.where(s < 0, 2 * n_units + 1 - place, place - n_units)
    slope = slopes.gather(1, piece)
    by_rank = torch.addcmul(offsets.gather(1, piece), slope, s.abs())
    torch.gather(by_rank, 1, samples.inverse[factors], out=output)
    return _Share(s, piece, slope, sorted_heads)


def _curve(sorted_heads: Tensor, each: Tensor, switches: _Switches, factors: Tensor) -> Tensor:
    """Sum what the units that are on add, piece by piece: anchor × (sign · piece)."""
    n_anchors, n_signs, n_units = sorted_heads.shape
    curve = sorted_heads.new_empty(n_anchors, n_signs, n_units + 1)
    torch.sum(sorted_heads * (switches.start * each)[factors], -1, out=curve[..., 0])
    torch.mul(sorted_heads, (switches.turn * each)[factors], out=curve[..., 1:])
    return curve.cumsum_(-1).flatten(1)


def _look_back(
    factors: Tensor,
    w: Tensor,
    samples: _Samples,
    share: _Share,
    switches: _Switches,
    grad_output: Tensor,
    grad_w: Tensor,
    grad_heads: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Write the gradients of some anchors and return their sums for the samples, the lines and the bias."""
    member = torch.nn.functional.one_hot(factors, len(samples.values)).to(w.dtype).mT  # factor × anchor
    grad_output = grad_output.gather(1, samples.order[factors])
    grad_s = grad_output * share.slope * share.s.sign()
    torch.sum(grad_s * samples.values[factors], 1, out=grad_w)
    grad_samples = member @ (grad_s * w.unsqueeze(1))

    start, turn = switches.start[factors], switches.turn[factors]
    slopes = _on(share, grad_output * share.s.abs(), start, turn)
    offsets = _on(share, grad_output, start, turn)
    grad_sorted = slopes * switches.line[factors] + offsets * switches.bias[factors]
    torch.sum(grad_sorted.gather(2, switches.inverse[factors]), 1, out=grad_heads)
    grad_line, grad_bias = (member @ (share.sorted_heads * on).flatten(1) for on in (slopes, offsets))
    return grad_samples, grad_line, grad_bias


def _on(share: _Share, amount: Tensor, start: Tensor, turn: Tensor) -> Tensor:
    """Sum amounts over the samples for which a unit is on: anchor × sign × unit."""
    n_anchors, n_signs, n_units = start.shape
    pieces = amount.new_zeros(n_anchors, n_signs * (n_units + 1)).scatter_add_(1, share.piece, amount)
    # From each piece outwards; the first sum is that over all samples of the sign.
    outwards = pieces.view(n_anchors, n_signs, -1).flip(-1).cumsum_(-1).flip(-1)
    return torch.addcmul(start * outwards[..., :1], turn, outwards[..., 1:])
