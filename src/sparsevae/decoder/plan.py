"""What the zeros of a mask save: which features are empty, which are anchors, which factors are in use."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["MaskPlan", "plan_mask"]

_ANCHOR_COST = 0.15  # time of an anchor's row of activations, element by element, against a matrix product's


class MaskPlan(NamedTuple):
    """Features of a mask by the number of their non-zeros. It depends on the support alone, not on values.

    Attributes
    ----------
    general : Tensor of int
        Features that go through the network as they are.
    active : Tensor of int or None
        Factors that a general feature uses; None for all, with gradients for zero entries too.
    anchors : Tensor of int
        Features with exactly one non-zero, sorted by its factor.
    anchor_factors : Tensor of int
        That factor.
    anchor_counts : list of int
        Number of anchors of each factor.
    empty : Tensor of int
        Features without a non-zero.
    """

    general: Tensor
    active: Tensor | None
    anchors: Tensor
    anchor_factors: Tensor
    anchor_counts: list[int]
    empty: Tensor

    def cost(self, depth: int) -> float:
        """Return the work as a fraction of that without a plan, for a network of some hidden layers."""
        n_features = len(self.general) + len(self.anchors) + len(self.empty)
        wide_layers = max(depth - 1, 1)
        anchor = (wide_layers - 1 + _ANCHOR_COST) / wide_layers
        return (len(self.general) + anchor * len(self.anchors)) / max(n_features, 1)


def plan_mask(mask: Tensor, *, zero_gradients: bool = False) -> MaskPlan:
    """Sort the features of a mask by what they need.

    Parameters
    ----------
    mask : Tensor of shape (n_features, n_factors)
    zero_gradients : bool
        Whether mask entries that are exactly zero need their gradient. If so, only empty features are set
        apart: their gradient is zero in any case, because relu's derivative at zero is.

    Returns
    -------
    MaskPlan
    """
    support = mask.detach() != 0
    counts = support.sum(1)
    empty = torch.nonzero(counts == 0).squeeze(1)
    if zero_gradients:
        none = empty[:0]
        return MaskPlan(torch.nonzero(counts).squeeze(1), None, none, none, [0] * mask.shape[1], empty)
    general = torch.nonzero(counts > 1).squeeze(1)
    anchors = torch.nonzero(counts == 1).squeeze(1)
    factors = support[anchors].to(torch.uint8).argmax(1)
    factors, order = torch.sort(factors, stable=True)
    return MaskPlan(
        general,
        torch.nonzero(support[general].any(0)).squeeze(1),
        anchors[order],
        factors,
        torch.bincount(factors, minlength=mask.shape[1]).tolist(),
        empty,
    )
