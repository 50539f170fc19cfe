"""The numbers of the masked decoder, as one record that every decoding path reads.

Leading dimensions, written ``...``, are replicates: independent decoders that run side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sparsevae.exceptions import ParameterError

__all__ = ["DecoderWeights", "check_decoder_inputs", "normal_weights"]


class DecoderWeights(NamedTuple):
    r"""Weights of :math:`f_\theta(u)_j = c_j + v_j^\top h_L(u)`, the network shared by all features.

    .. math:: h_1 = \mathrm{relu}(H_1 u), \qquad h_l = \mathrm{relu}(H_l h_{l-1} + b_l)

    Attributes
    ----------
    first : Tensor of shape (..., D_1, n_factors) or None
        :math:`H_1`. It has no bias, so that :math:`h_1(s e_k) = |s|\, h_1(\pm e_k)`. None is the identity
        network, :math:`h(u) = u`: the sparse linear factor model.
    hidden : tuple of (Tensor of shape (..., D_l, D_{l-1}), Tensor of shape (..., D_l))
        :math:`(H_l, b_l)` for :math:`l = 2, \dots, L`.
    heads : Tensor of shape (..., n_features, D_L)
        :math:`v_j`, one row per feature; D_L is n_factors for the identity network.
    intercept : Tensor of shape (..., n_features)
        :math:`c_j`.
    """

    first: Tensor | None
    hidden: tuple[tuple[Tensor, Tensor], ...]
    heads: Tensor
    intercept: Tensor

    @property
    def depth(self) -> int:
        """Number of hidden layers; 0 for the identity network."""
        return 0 if self.first is None else 1 + len(self.hidden)

    @property
    def widths(self) -> tuple[int, ...]:
        """Widths of the hidden layers, from the factors upwards."""
        first = () if self.first is None else (self.first.shape[-2],)
        return (*first, *(bias.shape[-1] for _, bias in self.hidden))

    @property
    def replicates(self) -> tuple[int, ...]:
        """Leading dimensions of the heads; ``()`` for one decoder."""
        return tuple(self.heads.shape[:-2])

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor of the record in a fixed order: first, hidden layers, heads, intercept."""
        first = () if self.first is None else (self.first,)
        return (*first, *(t for layer in self.hidden for t in layer), self.heads, self.intercept)

    def select(self, features: Tensor) -> DecoderWeights:
        """Return the same network with the heads and intercepts of some features only, in the given order."""
        heads = self.heads.index_select(-2, features)
        return self._replace(heads=heads, intercept=self.intercept.index_select(-1, features))


def check_decoder_inputs(mask: Tensor, z: Tensor, weights: DecoderWeights) -> None:
    """Refuse shapes that do not belong together, before a kernel refuses them less clearly."""
    n_features, n_factors = weights.heads.shape[-2], z.shape[-1]
    if mask.shape[-2:] != (n_features, n_factors):
        raise ParameterError(
            f"Expected mask of shape (..., {n_features}, {n_factors}), one row per head and one column "
            f"per factor of z; got {tuple(mask.shape)}. Select the same features in mask and weights."
        )
    width = n_factors
    if weights.first is None:
        if weights.hidden:
            raise ParameterError(
                f"Expected no hidden layers in an identity network (first=None); got {len(weights.hidden)}. "
                "Pass the first layer too, or hidden=()."
            )
    else:
        layers = (weights.first, *(weight for weight, _ in weights.hidden))
        for number, weight in enumerate(layers, start=1):
            if weight.shape[-1] != width:
                raise ParameterError(
                    f"Expected decoder layer {number} to take {width} inputs; got a weight of shape "
                    f"{tuple(weight.shape)}. Layers are (outputs, inputs), from the factors upwards."
                )
            width = weight.shape[-2]
    if weights.heads.shape[-1] != width:
        raise ParameterError(
            f"Expected heads of shape (..., {n_features}, {width}), as wide as the last layer; "
            f"got {tuple(weights.heads.shape)}."
        )


def relu_layers(u: Tensor, weights: DecoderWeights) -> Tensor:
    """``h_L(u)`` for inputs of shape (..., rows, n_factors), the replicates leading."""
    if weights.first is None:
        return u
    h = torch.relu(u @ weights.first.mT)  # ... × row × hidden
    for weight, bias in weights.hidden:
        h = torch.relu(_affine(h, weight, bias))
    return h


def _affine(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    # One fused kernel over replicates; a plain ``@`` followed by ``+`` would launch two.
    if weight.ndim == 2:
        return torch.nn.functional.linear(h, weight, bias)
    if weight.ndim == 3 and h.ndim == 3:
        return torch.baddbmm(bias.unsqueeze(-2), h, weight.mT)
    return h @ weight.mT + bias.unsqueeze(-2)


def normal_weights(
    shape: Sequence[int], generator: torch.Generator | None, *, times: float = 1.0, over: float = 1.0
) -> Tensor:
    """Normal weights to begin with; on the meta device, where shapes are all that is asked, none are drawn.

    Draws and arithmetic on the meta device load torch's compiler: seconds, for a saved model that opens in
    milliseconds.
    """
    if torch.get_default_device().type == "meta":
        return torch.empty(*shape)
    return torch.randn(*shape, generator=generator) * times / over
