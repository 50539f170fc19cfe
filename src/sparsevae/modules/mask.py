r"""The mask W as a part of a module: its entries, its prior, and the steps that make zeros exact.

A module has a mask or has none. `SpikeSlabMask` is the sparse VAE's, an entry per feature and factor;
`GroupMask` is OI-VAE's, a column of weights per group of features and factor. Leading dimensions ``...`` are
replicates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from sparsevae.priors import (
    group_norm,
    group_proximal_step,
    inclusion_probability,
    log_inclusion_prior,
    log_prior,
    penalty_weight,
    proximal_step,
    update_inclusion_rate,
)

__all__ = ["GroupMask", "Mask", "Rate", "SpikeSlabMask"]

Rate = float | Tensor
"""A Laplace rate: one number, or a tensor that broadcasts against the mask."""

_HOLD_RATE = 3.0  # spike_rate / slab_rate below which η is held: at equal rates its update only shrinks it


class Mask(nn.Module, ABC):
    """What the optimiser and the loop know of a mask.

    Attributes
    ----------
    weight : Parameter
        The entries; their second-last or last dimensions are given by the kind of mask.
    frozen : boolean Tensor
        Entries that never change; common to all replicates.
    zeros_may_return : bool
        Whether entries that are zero have a gradient. Where they have none, they stay.
    group_dims : tuple of int
        Dimensions of the weight along which entries are zero together, counted from the end.
    """

    shared: ClassVar[frozenset[str]] = frozenset({"frozen"})
    group_dims: ClassVar[tuple[int, ...]] = ()
    weight: nn.Parameter
    frozen: Tensor

    def __init__(self, weight: Tensor, frozen: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.register_buffer("frozen", frozen)
        self.zeros_may_return = True

    @abstractmethod
    def support(self) -> Tensor:
        """Which rows use which factors: boolean, shape (..., n_rows, n_factors)."""

    def active(self) -> Tensor:
        """Which factors any row uses, as 0 and 1: shape (..., n_factors)."""
        return self.support().any(-2).to(self.weight.dtype)

    @abstractmethod
    def penalty(self, n_samples: float) -> Tensor:
        """Minus the log prior over n_samples: shape of the replicates."""

    @abstractmethod
    def proximal_weight(self, n_samples: float) -> Tensor:
        """What one unit of an entry's size, or of a group's norm, costs per sample."""

    @torch.no_grad()
    def shrink_(self, moved: Tensor, step: Tensor, n_samples: float, penalty_scale: float) -> None:
        """Take the proximal step from entries that have followed their gradient, in place, and update η.

        Parameters
        ----------
        moved : Tensor of the weight's shape
            Entries after the gradient step.
        step : Tensor
            Length of that step for each entry; common to a group.
        n_samples : int
        penalty_scale : float
            Multiplies the penalty; 1 is the model as stated.
        """
        threshold = step * self.proximal_weight(n_samples) * penalty_scale
        if self.group_dims:
            moved = group_proximal_step(moved, threshold, self.group_dims)
        else:
            moved = proximal_step(moved, threshold)
        if not self.zeros_may_return:
            moved = torch.where(self.weight == 0, self.weight, moved)
        self.weight.copy_(torch.where(self.frozen, self.weight, moved))
        self.update_inclusion()

    def update_inclusion(self) -> None:
        """Update the prior's own parameters in closed form; nothing to do where it has none."""

    def rates(self) -> dict[str, Rate]:
        """Rates of the present phase, by name, for `set_rates`."""
        return {}

    def set_rates(self, spike_rate: Rate = 1.0, slab_rate: Rate = 1.0) -> None:
        """Begin a phase with these rates; a mask whose prior has none takes no notice."""

    def select_rates_(self, index: int | list[int]) -> None:
        """Keep the rates of some replicates, where each has its own."""


class SpikeSlabMask(Mask):
    r"""The sparse VAE's mask under the Spike-and-Slab Lasso prior.

    Parameters
    ----------
    n_features, n_factors : int
    inclusion_prior : (float, float), optional
        a and b of the Beta prior on the inclusion rates; (1, n_features) by default.
    keep_rate_ratio : bool
        Whether the E-step has the factor λ1/λ0 of the Laplace densities; False only to repeat published
        results.
    replicates : tuple of int

    Attributes
    ----------
    known : boolean Tensor of shape (n_features, n_factors)
        Entries that are there without a doubt: they cost nothing.
    inclusion_rate : Tensor of shape (..., n_factors)
        η.
    spike_rate, slab_rate : float or Tensor
        λ0 and λ1 of the present phase.
    """

    shared = frozenset({"frozen", "known"})
    known: Tensor
    inclusion_rate: Tensor

    def __init__(
        self,
        n_features: int,
        n_factors: int,
        *,
        inclusion_prior: tuple[float, float] | None = None,
        keep_rate_ratio: bool = True,
        replicates: tuple[int, ...] = (),
    ) -> None:
        nothing = torch.zeros(n_features, n_factors, dtype=torch.bool)
        super().__init__(torch.ones(*replicates, n_features, n_factors), nothing)
        self.register_buffer("known", nothing.clone())
        self.register_buffer("inclusion_rate", torch.full((*replicates, n_factors), 0.5))
        self.inclusion_prior = (1.0, float(n_features)) if inclusion_prior is None else inclusion_prior
        self.keep_rate_ratio = keep_rate_ratio
        self.spike_rate: Rate = 1.0
        self.slab_rate: Rate = 1.0

    def support(self) -> Tensor:
        """Which features use which factors: boolean, shape (..., n_features, n_factors)."""
        return self.weight.detach() != 0

    @torch.no_grad()
    def inclusion(self) -> Tensor:
        """E[γ] at the present entries and rates."""
        rate = self.inclusion_rate
        if not self.keep_rate_ratio:
            ratio = torch.as_tensor(self.slab_rate / self.spike_rate)
            rate = torch.sigmoid(torch.logit(rate) - ratio.log())
        return inclusion_probability(self.weight, rate, spike_rate=self.spike_rate, slab_rate=self.slab_rate)

    @torch.no_grad()
    def update_inclusion(self) -> None:
        """η in closed form from E[γ]."""
        ratio = torch.as_tensor(self.spike_rate / self.slab_rate)
        if bool((ratio >= _HOLD_RATE).all()):
            self.inclusion_rate.copy_(update_inclusion_rate(self.inclusion(), *self.inclusion_prior))

    @torch.no_grad()
    def proximal_weight(self, n_samples: float) -> Tensor:
        """λ* / N, what one unit of |w| costs per sample; entries known to be there cost nothing."""
        weight = penalty_weight(self.inclusion(), spike_rate=self.spike_rate, slab_rate=self.slab_rate)
        return (weight / n_samples).masked_fill(self.known, 0.0)

    @torch.no_grad()
    def penalty(self, n_samples: float) -> Tensor:
        """Minus log p(W | η) - log p(η), over n_samples."""
        rates = {"spike_rate": self.spike_rate, "slab_rate": self.slab_rate}
        penalty = -log_prior(self.weight, self.inclusion_rate, **rates)
        return (penalty - log_inclusion_prior(self.inclusion_rate, *self.inclusion_prior)) / n_samples

    def rates(self) -> dict[str, Rate]:
        """Rates of the present phase, by name, for `set_rates`."""
        return {"spike_rate": self.spike_rate, "slab_rate": self.slab_rate}

    def set_rates(self, spike_rate: Rate = 1.0, slab_rate: Rate = 1.0) -> None:
        """Begin a phase with these rates."""
        self.spike_rate, self.slab_rate = spike_rate, slab_rate

    def select_rates_(self, index: int | list[int]) -> None:
        """Keep the rates of some replicates, where each has its own."""
        self.spike_rate, self.slab_rate = (
            rate[index] if isinstance(rate, Tensor) and rate.ndim == 3 else rate
            for rate in (self.spike_rate, self.slab_rate)
        )

    @torch.no_grad()
    def scale_(self, scale: Tensor) -> None:
        """Multiply column k by ``scale[k]``; frozen entries stay."""
        self.weight.copy_(torch.where(self.frozen, self.weight, self.weight * scale.unsqueeze(-2)))

    @torch.no_grad()
    def permute_(self, order: Tensor) -> None:
        """Reorder the columns of a mask without replicates."""
        self.weight.copy_(self.weight[:, order])
        self.inclusion_rate.copy_(self.inclusion_rate[order])
        for buffer in (self.frozen, self.known):
            buffer.copy_(buffer[:, order])


class GroupMask(Mask):
    r"""OI-VAE's matrices :math:`W^{(g)}` under a group lasso.

    Parameters
    ----------
    weight : Tensor of shape (..., n_groups, group_width, n_factors)
        Where the entries begin.
    penalty : float
        λ.
    samples_per_penalty : float, optional
        Over how many samples λ is spread; the training set if not given, as a prior demands.
    """

    group_dims = (-2,)

    def __init__(self, weight: Tensor, penalty: float, samples_per_penalty: float | None = None) -> None:
        shape = (weight.shape[-3], 1, weight.shape[-1])
        super().__init__(weight, torch.zeros(shape, dtype=torch.bool))
        self.rate, self.samples_per_penalty = penalty, samples_per_penalty

    def norms(self) -> Tensor:
        """Norms of the columns of W: shape (..., n_groups, n_factors)."""
        return group_norm(self.weight.detach(), (-2,)).squeeze(-2)

    def support(self) -> Tensor:
        """Which groups use which factors: boolean, shape (..., n_groups, n_factors)."""
        return self.norms() != 0

    @torch.no_grad()
    def penalty(self, n_samples: float) -> Tensor:
        r""":math:`\lambda\sum_{gk}\|W^{(g)}_{\cdot k}\|` over the samples it is spread over."""
        return self.rate * self.norms().sum((-2, -1)) / (self.samples_per_penalty or n_samples)

    @torch.no_grad()
    def proximal_weight(self, n_samples: float) -> Tensor:
        """Cost per sample of a unit of a column's norm."""
        weight = self.rate / (self.samples_per_penalty or n_samples)
        return torch.full_like(self.weight[..., :1, :], weight)
