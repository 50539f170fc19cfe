"""The masked decoder as an ``nn.Module``: parameters, their start, and a call to `decode`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from sparsevae.decoder.dispatch import decode
from sparsevae.decoder.weights import DecoderWeights, normal_weights
from sparsevae.exceptions import ParameterError

__all__ = ["MaskedDecoder"]


class MaskedDecoder(nn.Module):
    r"""Parameters of the decoder; the mask itself is not one of them and arrives with each call.

    Parameters
    ----------
    n_features, n_factors : int
    hidden_sizes : sequence of int
        Widths of the hidden layers, from the factors upwards; empty for the identity network.
    replicates : tuple of int
        Leading dimensions of every parameter: that many independent decoders.
    generator : torch.Generator, optional
        Source of the random start; torch's global one if not given.
    precision : {"float32", "bfloat16"}
        Of the matrix products; parameters and gradients keep their own type.
    gauge : bool
        Whether to begin with the norms of the gauge, see Notes.

    Notes
    -----
    **The gauge.** Without fixed norms the mask has no scale. ``W[:, k] · c`` with ``H_1[:, k] / c`` is the
    same decoder, and because ReLU is positively homogeneous any c moves into later layers and heads just as
    well; the penalty on W would then be minimised by W → 0 at no cost. `fix_gauge_` closes every one of these
    exits by fixed norms, and a bound for the heads:

    .. math:: \|H_1 e_k\| = \sqrt{2 D_1}, \qquad \|e_d^\top H_l\| = \sqrt 2, \qquad \|v_j\| \le 1.

    The constants keep unit-variance inputs at unit variance through ReLU layers of any width, so that
    :math:`|w_{jk}| \approx 1` is a feature that lives on factor k at any width. Heads may be shorter than
    their bound, or a feature that nothing explains would have to be matched by a function that varies; the
    penalty on the mask draws them out to the bound.

    Weights start as :math:`N(0, 2/\text{inputs})`, which keeps the size of ReLU activations from layer to
    layer, heads as :math:`N(0, 1/\text{inputs})`, biases and intercepts at zero.
    """

    def __init__(
        self,
        n_features: int,
        n_factors: int,
        hidden_sizes: Sequence[int] = (64, 64),
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
        precision: str = "float32",
        gauge: bool = False,
    ) -> None:
        super().__init__()
        sizes = (n_features, n_factors, *hidden_sizes, *replicates)
        if any(size < 1 for size in sizes):
            raise ParameterError(
                f"Expected positive sizes; got n_features={n_features}, n_factors={n_factors}, "
                f"hidden_sizes={tuple(hidden_sizes)}, replicates={replicates}."
            )
        self.n_features, self.n_factors = n_features, n_factors
        self.hidden_sizes, self.replicates = tuple(hidden_sizes), tuple(replicates)
        self.precision = precision

        def normal(n_outputs: int, n_inputs: int, gain: float) -> nn.Parameter:
            shape = (*self.replicates, n_outputs, n_inputs)
            return nn.Parameter(normal_weights(shape, generator, times=math.sqrt(gain / n_inputs)))

        def zeros(n_outputs: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(*self.replicates, n_outputs))

        widths = (n_factors, *self.hidden_sizes)
        self.first = normal(widths[1], widths[0], 2.0) if self.hidden_sizes else None
        self.hidden_weights = nn.ParameterList(
            normal(above, below, 2.0) for below, above in pairwise(widths[1:])
        )
        self.hidden_biases = nn.ParameterList(zeros(width) for width in widths[2:])
        self.heads = normal(n_features, widths[-1], 1.0)
        self.intercept = zeros(n_features)
        if gauge and not self.heads.is_meta:  # without values there is nothing to scale
            self.fix_gauge_()

    def weights(self) -> DecoderWeights:
        """Return the parameters as the record that the decoding functions take; no copy."""
        hidden = tuple(zip(self.hidden_weights, self.hidden_biases, strict=True))
        return DecoderWeights(self.first, hidden, self.heads, self.intercept)

    @torch.no_grad()
    def fix_gauge_(self) -> None:
        """Scale every layer to its fixed norm, in place: a projection, after each step."""
        if self.first is None:
            # The identity network's heads and the mask are the same numbers twice: keep the mask's.
            self.heads.fill_(1.0)
            return
        _scale_(self.first, dim=-2, norm=self.first_layer_norm())
        for weight in self.hidden_weights:
            _scale_(weight, dim=-1, norm=math.sqrt(2.0))
        norm = torch.linalg.vector_norm(self.heads, dim=-1, keepdim=True)
        self.heads.div_(norm.clamp_min(1.0))

    def first_layer_norm(self) -> float:
        """Norm of a column of the first layer in the gauge."""
        assert self.first is not None, "the identity network has no first layer"
        return math.sqrt(2.0 * self.first.shape[-2])

    def forward(
        self,
        mask: Tensor | None,
        z: Tensor,
        features: Tensor | None = None,
        *,
        zero_gradients: bool = True,
        fixed: Tensor | None = None,
    ) -> Tensor:
        """Decode z under a mask.

        Parameters
        ----------
        mask : Tensor of shape (..., n_features, n_factors) or None
            None means a mask of ones.
        z : Tensor of shape (..., n_samples, n_factors)
        features : integer Tensor, optional
            Indices of the features wanted; all by default.
        zero_gradients : bool
            Whether mask entries that are zero need their gradient, see `decode`.
        fixed : boolean Tensor of shape (n_features, n_factors), optional
            Mask entries that never change.

        Returns
        -------
        Tensor of shape (..., n_samples, n_features or len(features))
        """
        weights = self.weights()
        if features is not None:
            weights = weights.select(features)
            mask = None if mask is None else mask.index_select(-2, features)
            fixed = None if fixed is None else fixed.index_select(-2, features)
        return decode(mask, z, weights, precision=self.precision, zero_gradients=zero_gradients, fixed=fixed)

    def extra_repr(self) -> str:
        """Return the sizes for ``repr``."""
        return (
            f"n_features={self.n_features}, n_factors={self.n_factors}, hidden_sizes={self.hidden_sizes}, "
            f"replicates={self.replicates}, precision={self.precision!r}"
        )


def _scale_(weight: Tensor, *, dim: int, norm: float) -> None:
    weight.mul_(norm / torch.linalg.vector_norm(weight, dim=dim, keepdim=True).clamp_min(1e-12))
