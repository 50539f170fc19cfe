"""Which decoding path to take, from the shapes and the zeros of the mask, and in which precision."""

from __future__ import annotations

import functools
import warnings

import torch
from torch import Tensor

from sparsevae.decoder.blocked import decode_blocked
from sparsevae.decoder.dense import decode_dense, decode_shared
from sparsevae.decoder.plan import plan_mask
from sparsevae.decoder.sparse import decode_sparse
from sparsevae.decoder.weights import DecoderWeights
from sparsevae.exceptions import ParameterError

__all__ = ["PRECISIONS", "bfloat16_supported", "decode"]

PRECISIONS = ("float32", "bfloat16")
"""Of matrix products: what a user may ask for."""

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
    precision = _usable_precision(precision, z.device)
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


def bfloat16_supported(device: torch.device | str) -> bool:
    """Tell whether a device multiplies bfloat16 matrices in hardware; emulated they gain nothing."""
    return _bfloat16_supported(torch.device(device).type)


def _usable_precision(precision: str, device: torch.device) -> str:
    """Return the precision, or "float32" with a warning where the device has no bfloat16.

    Parameters
    ----------
    precision : {"float32", "bfloat16"}
    device : torch.device

    Returns
    -------
    str
    """
    if precision not in PRECISIONS:
        raise ParameterError(
            f"Expected precision to be one of {', '.join(map(repr, PRECISIONS))}; got {precision!r}."
        )
    if precision == "bfloat16" and not bfloat16_supported(device):
        warnings.warn(
            f"precision='bfloat16' needs a device that multiplies bfloat16 matrices, and this {device.type} "
            "does not; decoding in float32. Pass precision='float32' to silence this.",
            UserWarning,
            stacklevel=3,
        )
        return "float32"
    return precision


@functools.cache
def _bfloat16_supported(device_type: str) -> bool:
    if device_type == "cuda":
        return torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    if device_type == "cpu" and hasattr(torch.cpu, "get_capabilities"):
        capabilities = torch.cpu.get_capabilities()
        return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return device_type == "cpu" and torch.cpu._is_avx512_bf16_supported()
