"""The shapes of the paper's data sets, and masks that are dense, mostly anchors or mostly empty."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["SHAPES", "Shape", "sparse_mask"]


class Shape(NamedTuple):
    """Batch size, features, factors, width of the hidden layers, and how the data are distributed."""

    n_samples: int
    n_features: int
    n_factors: int
    width: int
    likelihood: str = "gaussian"

    def gflop(self, n_hidden: int) -> float:
        """Forward and backward pass of encoder and dense decoder, in 10^9 multiplications and additions."""
        k, d, g = self.n_factors, self.width, self.n_features
        between = (n_hidden - 1) * d**2
        decoder = g * (k * d + between + d)  # per sample: the network once for each feature
        encoder = g * d + between + 2 * d * k + g * k
        return 6e-9 * self.n_samples * (decoder + encoder)


SHAPES = {
    "synthetic": Shape(100, 7, 5, 50),
    "peerread": Shape(128, 500, 20, 100, "multinomial"),
    "zeisel": Shape(512, 558, 15, 100),
    "movielens": Shape(100, 300, 30, 300, "multinomial"),
    "transcriptome": Shape(128, 20_000, 30, 128),
}


def sparse_mask(mask: Tensor, share: float, non_zeros: int, generator: torch.Generator) -> Tensor:
    """Thin out a mask: a share of its rows keeps ``non_zeros`` entries, the others keep two or three."""
    n_features, n_factors = mask.shape
    few = torch.randperm(n_features, generator=generator) < round(share * n_features)
    others = torch.randint(2, 4, (n_features,), generator=generator)
    keep = torch.where(few, non_zeros, others)
    ranks = torch.rand(n_features, n_factors, generator=generator).argsort(1).argsort(1)
    return mask * (ranks < keep.unsqueeze(1))
