"""The shapes of the paper's data sets, with masks that are dense, mostly anchors or mostly empty."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sparsevae.decoder import DecoderWeights, MaskedDecoder

__all__ = ["SHAPES", "Problem", "Shape", "make_problem", "sparse_mask"]


class Shape(NamedTuple):
    """Batch size, features, factors, width of the hidden layers."""

    n_samples: int
    n_features: int
    n_factors: int
    width: int

    def gflop(self, n_hidden: int) -> float:
        """Forward and backward pass of the dense decoder, in 10^9 multiplications and additions."""
        per_row = self.n_factors * self.width + (n_hidden - 1) * self.width**2 + self.width
        return 6e-9 * self.n_samples * self.n_features * per_row


SHAPES = {
    "synthetic": Shape(100, 7, 5, 50),
    "peerread": Shape(128, 500, 20, 100),
    "zeisel": Shape(512, 558, 15, 100),
    "movielens": Shape(100, 300, 30, 300),
    "transcriptome": Shape(128, 20_000, 30, 128),
}


class Problem(NamedTuple):
    """Arguments of a decoder and a gradient to send back."""

    mask: Tensor
    z: Tensor
    weights: DecoderWeights
    grad_output: Tensor


def make_problem(shape: Shape, n_hidden: int, generator: torch.Generator) -> Problem:
    """A decoder of the given shape with a dense mask."""
    decoder = MaskedDecoder(shape.n_features, shape.n_factors, [shape.width] * n_hidden, generator=generator)
    mask = torch.randn(shape.n_features, shape.n_factors, generator=generator).requires_grad_()
    z = torch.randn(shape.n_samples, shape.n_factors, generator=generator).requires_grad_()
    grad_output = torch.randn(shape.n_samples, shape.n_features, generator=generator)
    return Problem(mask, z, decoder.weights(), grad_output)


def sparse_mask(mask: Tensor, share: float, non_zeros: int, generator: torch.Generator) -> Tensor:
    """Thin out a mask: a share of its rows keeps ``non_zeros`` entries, the others keep two or three."""
    n_features, n_factors = mask.shape
    few = torch.randperm(n_features, generator=generator) < round(share * n_features)
    others = torch.randint(2, 4, (n_features,), generator=generator)
    keep = torch.where(few, non_zeros, others)
    ranks = torch.rand(n_features, n_factors, generator=generator).argsort(1).argsort(1)
    return (mask.detach() * (ranks < keep.unsqueeze(1))).requires_grad_()
