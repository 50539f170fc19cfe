"""Which decoding path to take: chosen from the shapes and the zeros of the mask, never by the user."""

from __future__ import annotations

import torch
from torch import Tensor

from sparsevae.decoder.blocked import decode_blocked
from sparsevae.decoder.dense import decode_dense, decode_shared
from sparsevae.decoder.plan import plan_mask
from sparsevae.decoder.precision import usable_precision
from sparsevae.decoder.sparse import decode_sparse
from sparsevae.decoder.weights import DecoderWeights

__all__ = ["decode"]

_SMALL = 1 << 18  # activations per layer below which kernel launches, not arithmetic, are the cost
_WORTH_SORTING = 0.95  # a plan must save this much before features are reordered for it


def decode(
    mask: Tensor | None,
    z: Tensor,
    weights: DecoderWeights,
    *,
    precision: str = "float32",
    zero_gradients: bool = True,
    fixed: Tensor | None = None,
) -> Tensor:
    """Decode by the fastest path that gives the gradients wanted.

    Parameters
    ----------
    mask : Tensor of shape (..., n_features, n_factors) or None
        None means a mask of ones: the plain VAE, one forward pass for all features.
    z : Tensor of shape (..., n_samples, n_factors)
    weights : DecoderWeights
    precision : {"float32", "bfloat16"}
        Of the matrix products. Small problems and replicates stay in float32, where bfloat16 gains nothing.
    zero_gradients : bool
        Whether mask entries that are exactly zero need their gradient. Without it, anchors and factors not in
        use cost next to nothing and such entries get the gradient zero.
    fixed : boolean Tensor of shape (n_features, n_factors), optional
        Entries that never change: a factor whose column is fixed at zero costs nothing either way.

    Returns
    -------
    Tensor of shape (..., n_samples, n_features)
    """
    precision = usable_precision(precision, z.device)
    if mask is None:
        return decode_shared(z, weights)
    n_activations = z.shape[-2] * mask.shape[-2] * weights.heads.shape[-1]
    if mask.ndim > 2 or weights.depth == 0 or n_activations <= _SMALL:
        return decode_dense(mask, z, weights)
    differentiated = torch.is_grad_enabled() and mask.requires_grad
    plan = plan_mask(mask, zero_gradients=zero_gradients and differentiated, fixed=fixed)
    if plan.cost(weights.widths) < _WORTH_SORTING:
        return decode_sparse(mask, z, weights, precision=precision, plan=plan)
    return decode_blocked(mask, z, weights, precision=precision)
