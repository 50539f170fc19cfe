"""Which decoding path to take: chosen from the shapes and the zeros of the mask, never by the user."""

from __future__ import annotations

from torch import Tensor

from sparsevae.decoder.blocked import decode_blocked
from sparsevae.decoder.dense import decode_dense, decode_shared
from sparsevae.decoder.weights import DecoderWeights
from sparsevae.exceptions import ParameterError

__all__ = ["decode"]

_PRECISIONS = ("float32", "bfloat16")
_SMALL = 1 << 18  # activations per layer below which kernel launches, not arithmetic, are the cost


def decode(
    mask: Tensor | None,
    z: Tensor,
    weights: DecoderWeights,
    *,
    precision: str = "float32",
    zero_gradients: bool = True,
    plan: object | None = None,
) -> Tensor:
    """Decode by the fastest path that gives the gradients wanted.

    Parameters
    ----------
    mask : Tensor of shape (..., n_features, n_factors) or None
        None means a mask of ones: the plain VAE, one forward pass for all features.
    z : Tensor of shape (..., n_samples, n_factors)
    weights : DecoderWeights
    precision : {"float32", "bfloat16"}
        Of the matrix products on the blocked and sparse paths.
    zero_gradients : bool
        Whether the gradient of mask entries that are exactly zero is needed. Without it, features that
        use few factors cost less.

    Returns
    -------
    Tensor of shape (..., n_samples, n_features)
    """
    if precision not in _PRECISIONS:
        raise ParameterError(f"Expected precision to be one of {_PRECISIONS}; got {precision!r}.")
    if mask is None:
        return decode_shared(z, weights)
    small = z.shape[-2] * mask.shape[-2] * weights.heads.shape[-1] <= _SMALL
    if mask.ndim > 2 or weights.depth == 0 or small:
        return decode_dense(mask, z, weights)
    return decode_blocked(mask, z, weights, precision=precision)
