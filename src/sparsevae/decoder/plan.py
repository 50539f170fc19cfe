"""What the zeros of a mask save: which features are empty, which are anchors, which factors are in use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["MaskPlan", "plan_mask"]

_CURVE_COST = 0.1  # time of an anchor looked up on its curve, against that of any other feature
_LAYER_COST = 0.2  # time of a layer that an anchor needs no matrix product for, against one that it does


class MaskPlan(NamedTuple):
    """Features of a mask by the number of their non-zeros. It depends on the support alone, not on values.

    Attributes
    ----------
    order : Tensor of int
        Features in the order general, anchors, empty.
    inverse : Tensor of int
        Where in that order a feature stands.
    sizes : tuple of int
        Number of general features, of anchors, of empty features.
    active : Tensor of int or None
        Factors that a general feature uses, or may come to use where zero entries have gradients; None for
        all.
    anchor_factors : Tensor of int
        The factor of each anchor, ascending.
    anchor_counts : tuple of int
        Number of anchors of each factor.
    zero_gradients : bool
        Whether entries of general features that are exactly zero get their gradient.
    """

    order: Tensor
    inverse: Tensor
    sizes: tuple[int, int, int]
    active: Tensor | None
    anchor_factors: Tensor
    anchor_counts: tuple[int, ...]
    zero_gradients: bool = False

    @property
    def general(self) -> Tensor:
        """Features that go through the network as they are."""
        return self.order.split(self.sizes)[0]

    @property
    def anchors(self) -> Tensor:
        """Features with exactly one non-zero, sorted by its factor."""
        return self.order.split(self.sizes)[1]

    @property
    def empty(self) -> Tensor:
        """Features without a non-zero."""
        return self.order.split(self.sizes)[2]

    def cost(self, widths: Sequence[int]) -> float:
        """Return the work as a fraction of that without a plan, for hidden layers of some widths."""
        n_general, n_anchors, _ = self.sizes
        n_factors = len(self.anchor_counts)
        n_active = n_factors if self.active is None else len(self.active)
        later = sum(below * above for below, above in pairwise((*widths, 1)))  # behind the first layer
        general = (n_active * widths[0] + later) / (n_factors * widths[0] + later)
        depth = len(widths)
        anchor = _CURVE_COST if depth <= 2 else (depth - 2 + _LAYER_COST) / (depth - 1)
        return (general * n_general + anchor * n_anchors) / max(sum(self.sizes), 1)


def plan_mask(mask: Tensor, *, zero_gradients: bool = False, fixed: Tensor | None = None) -> MaskPlan:
    """Sort the features of a mask by what they need.

    Parameters
    ----------
    mask : Tensor of shape (n_features, n_factors)
    zero_gradients : bool
        Whether mask entries that are exactly zero need their gradient. If so, only empty features are set
        apart: their gradient is zero in any case, because relu's derivative at zero is.
    fixed : boolean Tensor of shape (n_features, n_factors), optional
        Entries that never change: where a whole column is fixed at zero, nobody needs its gradient.

    Returns
    -------
    MaskPlan
    """
    n_features, n_factors = mask.shape
    support = mask.detach() != 0
    counts = support.sum(1)
    is_empty, is_anchor = counts == 0, (counts == 1) & (not zero_gradients)
    factors = support.to(torch.uint8).argmax(1)
    # General features first, then anchors by factor, then the empty ones.
    rank = torch.where(is_empty, n_factors + 1, torch.where(is_anchor, factors + 1, 0))
    rank, order = torch.sort(rank, stable=True)
    n_general, *anchor_counts, n_empty = torch.bincount(rank, minlength=n_factors + 2).tolist()
    n_anchors = n_features - n_general - n_empty
    wanted = support
    if zero_gradients:
        wanted = torch.ones_like(support) if fixed is None else support | ~fixed
    general = wanted if n_general == n_features else wanted.index_select(0, order[:n_general])
    active = torch.nonzero(general.any(0)).squeeze(1)
    return MaskPlan(
        order,
        torch.argsort(order),
        (n_general, n_anchors, n_empty),
        None if zero_gradients and len(active) == n_factors else active,
        rank[n_general : n_general + n_anchors] - 1,
        tuple(anchor_counts),
        zero_gradients,
    )
