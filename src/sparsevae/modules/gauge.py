r"""One decoder function, one set of numbers: norms that fix the scale of the mask.

Without them the mask has no scale. ``W[:, k] · c`` with ``H_1[:, k] / c`` is the same decoder, and because
ReLU is positively homogeneous any c moves into later layers and heads just as well; the penalty on W would
then be minimised by W → 0 at no cost. Fixed norms, and a bound for the heads, close every one of these exits:

.. math:: \|H_1 e_k\| = \sqrt{2 D_1}, \qquad \|e_d^\top H_l\| = \sqrt 2, \qquad \|v_j\| \le 1.

The constants keep unit-variance inputs at unit variance through ReLU layers of any width, so that
:math:`|w_{jk}| \approx 1` is a feature that lives on factor k, whatever the width. Heads may be shorter than
their bound, or a feature that nothing explains would have to be matched by a function that varies; the
penalty on the mask draws them out to the bound.
"""

from __future__ import annotations

import math

import torch

from sparsevae.decoder import MaskedDecoder

__all__ = ["first_layer_norm", "fix_gauge_"]


@torch.no_grad()
def fix_gauge_(decoder: MaskedDecoder) -> None:
    """Scale every layer of the decoder to its fixed norm, in place: a projection, after each step."""
    if decoder.first is None:
        # The identity network's heads and the mask are the same numbers twice: keep the mask's.
        decoder.heads.fill_(1.0)
        return
    _scale_(decoder.first, dim=-2, norm=first_layer_norm(decoder))
    for weight in decoder.hidden_weights:
        _scale_(weight, dim=-1, norm=math.sqrt(2.0))
    norm = torch.linalg.vector_norm(decoder.heads, dim=-1, keepdim=True)
    decoder.heads.div_(norm.clamp_min(1.0))


def first_layer_norm(decoder: MaskedDecoder) -> float:
    """Norm of a column of the first layer in the gauge."""
    assert decoder.first is not None
    return math.sqrt(2.0 * decoder.first.shape[-2])


def _scale_(weight: torch.Tensor, *, dim: int, norm: float) -> None:
    weight.mul_(norm / torch.linalg.vector_norm(weight, dim=dim, keepdim=True).clamp_min(1e-12))
