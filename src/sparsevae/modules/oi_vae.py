r"""The output-interpretable VAE (Ainsworth et al. 2018): a generator network for each group of features.

.. math::
    z \sim N(0, I), \qquad x^{(g)} \sim \text{likelihood}\left(f_{\theta_g}(W^{(g)} z)\right), \qquad
    p(W^{(g)}_{\cdot k}) \propto e^{-\lambda \|W^{(g)}_{\cdot k}\|_2}, \qquad \theta_g \sim N(0, \tau^2 I)

Column k of :math:`W^{(g)}`, with p rows, is zero as a whole or not at all: then group g does not depend on
factor k. All groups run as one batched product. Shapes are those of `FactorModule`, replicates ``...`` in
front.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparsevae.exceptions import ParameterError
from sparsevae.modules.factor import FactorModule
from sparsevae.modules.observation import Observation
from sparsevae.priors import group_norm

__all__ = ["GroupDecoder", "OIVAEModule"]

_BLOCK = 1 << 18  # activations of a layer that are worked on at a time: a megabyte


class OIVAEModule(FactorModule):
    """Encoder, group generators and the group lasso prior on what enters them.

    Parameters
    ----------
    observation : Observation
    n_factors : int
    hidden_sizes : sequence of int
        Of the encoder and of each generator; empty makes both linear.
    groups : sequence of int
        Group of each feature, numbered from 0 in order of their size; each feature by itself if not given.
    group_width : int
        p, how many inputs a generator has.
    penalty : float
        λ.
    weight_deviation : float
        τ of the normal prior on the generators' weights.
    samples_per_penalty, samples_per_weight_prior : float, optional
        Over how many samples λ and the prior on the weights are spread; the size of the training set if not
        given, as a prior demands. 1 charges them for every sample.
    **options
        Further arguments of `FactorModule`.

    Attributes
    ----------
    mask : Parameter of shape (..., n_groups, group_width, n_factors)
        The matrices W.
    """

    decoder: GroupDecoder  # type: ignore[assignment]

    def __init__(
        self,
        observation: Observation,
        n_factors: int,
        hidden_sizes: Sequence[int] = (64, 64),
        *,
        groups: Sequence[int] | None = None,
        group_width: int = 5,
        penalty: float = 1.0,
        weight_deviation: float = 1.0,
        samples_per_penalty: float | None = None,
        samples_per_weight_prior: float | None = None,
        generator: torch.Generator | None = None,
        **options: Any,
    ) -> None:
        # Without the sparse VAE's mask and its prior: what takes their place here is set below.
        options.update(learned_mask=False, covariance="identity", gauge=False)
        super().__init__(observation, n_factors, hidden_sizes, generator=generator, **options)
        groups = list(range(self.n_features)) if groups is None else [int(g) for g in groups]
        self.config.update(
            groups=groups,
            group_width=group_width,
            penalty=penalty,
            weight_deviation=weight_deviation,
            samples_per_penalty=samples_per_penalty,
            samples_per_weight_prior=samples_per_weight_prior,
        )
        self.decoder = GroupDecoder(
            groups, group_width, hidden_sizes, replicates=self.replicates, generator=generator
        )
        shape = (self.decoder.n_groups, group_width, n_factors)
        maps = torch.randn(*self.replicates, *shape, generator=generator) / math.sqrt(n_factors)
        self.mask = nn.Parameter(maps)
        self.register_buffer("frozen", torch.zeros(shape[0], 1, n_factors, dtype=torch.bool))

    # -- the model ---------------------------------------------------------------------------------------

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        """Generators' outputs for each sample and feature: shape (..., n_samples, n_features)."""
        output = self.decoder(self.mask, z)
        return output if features is None else output.index_select(-1, features)

    def group_loadings(self) -> Tensor:
        """Norms of the columns of W: shape (..., n_groups, n_factors)."""
        return group_norm(self.mask.detach(), (-2,)).squeeze(-2)

    def support(self) -> Tensor:
        """Which features use which factors: boolean, shape (..., n_features, n_factors)."""
        groups = torch.as_tensor(self.config["groups"], device=self.mask.device)
        return (self.group_loadings() != 0).index_select(-2, groups)

    def active(self) -> Tensor:
        """Which factors any group uses, as 0 and 1: shape (..., n_factors)."""
        return (self.group_loadings() != 0).any(-2).to(self.mask.dtype)

    def weight_penalty(self, n_samples: int) -> Tensor:
        r"""Minus the log prior of the generators' weights, :math:`\|\theta\|^2 / 2\tau^2` and a constant.

        The intercepts, where the features lie, are not penalised.
        """
        weights = [w.flatten(len(self.replicates)) for w in self.decoder.parameters()]
        intercept = self.decoder.intercept
        squares = sum(torch.linalg.vecdot(w, w) for w in weights) - torch.linalg.vecdot(intercept, intercept)
        ridge = squares / (2.0 * self.config["weight_deviation"] ** 2)
        return ridge / (self.config["samples_per_weight_prior"] or n_samples)

    @torch.no_grad()
    def penalties(self, n_samples: int) -> dict[str, Tensor]:
        r"""Minus the log priors of W, :math:`\lambda\sum_{gk}\|W^{(g)}_{\cdot k}\|`, and of the noise.

        W's penalty acts through `proximal_weight`.
        """
        lasso = self.config["penalty"] * self.group_loadings().sum((-2, -1))
        mask = lasso / (self.config["samples_per_penalty"] or n_samples)
        return {**super().penalties(n_samples), "mask_penalty": mask}

    # -- updates -----------------------------------------------------------------------------------------

    @torch.no_grad()
    def proximal_weight(self, n_samples: int) -> Tensor:
        """Cost per sample of a unit of a column's norm: of size one along columns, hence of groups."""
        weight = self.config["penalty"] / (self.config["samples_per_penalty"] or n_samples)
        return torch.full_like(self.mask[..., :1, :], weight)

    def update_inclusion(self) -> None:
        """Nothing to do: the group lasso has no inclusion rates."""


class GroupDecoder(nn.Module):
    r"""A network per group, :math:`f_{\theta_g}(u) = V_g\,h_L(u) + c_g` with ReLU layers h.

    Parameters
    ----------
    groups : sequence of int
        Group of each feature, numbered from 0 in order of their size.
    group_width : int
        Inputs of each network.
    hidden_sizes : sequence of int
        Widths of its layers; empty for linear generators.
    replicates : tuple of int
    generator : torch.Generator, optional

    Notes
    -----
    Groups of one size run as batched products, in blocks whose activations stay in the cache. Output weights
    are stored group by group, so that a block of them is a view and none is padding.
    """

    position: Tensor

    def __init__(
        self,
        groups: Sequence[int],
        group_width: int,
        hidden_sizes: Sequence[int] = (64, 64),
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.group_sizes, order = _sizes_and_order(groups)
        n_groups, self.replicates = len(self.group_sizes), tuple(replicates)
        widths = (group_width, *hidden_sizes)

        def normal(*shape: int, gain: float) -> nn.Parameter:
            draw = torch.randn(*self.replicates, *shape, generator=generator)
            return nn.Parameter(draw * math.sqrt(gain))

        def zeros(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(*self.replicates, *shape))

        self.hidden_weights = nn.ParameterList(
            normal(n_groups, below, above, gain=2.0 / below) for below, above in pairwise(widths)
        )
        self.hidden_biases = nn.ParameterList(zeros(n_groups, 1, width) for width in hidden_sizes)
        self.heads = normal(len(order), widths[-1], gain=1.0 / widths[-1])
        self.intercept = zeros(len(order))
        self.register_buffer("position", torch.as_tensor(np.argsort(order)), persistent=False)
        self._sorted = bool((np.diff(order) > 0).all())

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.group_sizes)

    def forward(self, maps: Tensor, z: Tensor) -> Tensor:
        """Decode z through the maps W into the groups.

        Parameters
        ----------
        maps : Tensor of shape (..., n_groups, group_width, n_factors)
        z : Tensor of shape (..., n_samples, n_factors)

        Returns
        -------
        Tensor of shape (..., n_samples, n_features)
        """
        u = z @ maps.flatten(-3, -2).mT  # ... × sample × (group · width)
        u = u.unflatten(-1, maps.shape[-3:-1]).movedim(-2, -3)  # ... × group × sample × width
        widest = max((weight.shape[-1] for weight in self.hidden_weights), default=maps.shape[-2])
        sizes = _blocks(self.group_sizes, max(1, _BLOCK // (widest * z.shape[-2])))
        counts = [len(block) for block in sizes]
        heads = self.heads.split([sum(block) for block in sizes], -2)
        layers = [
            list(zip(weight.split(counts, -3), bias.split(counts, -3), strict=True))
            for weight, bias in zip(self.hidden_weights, self.hidden_biases, strict=True)
        ]
        columns = []
        for i, h in enumerate(u.split(counts, -3)):
            for layer in layers:
                h = torch.relu_(_affine(h, *layer[i]))
            own = heads[i].unflatten(-2, (counts[i], sizes[i][0]))  # ... × group × feature × hidden
            columns.append((h @ own.mT).movedim(-3, -2).flatten(-2))  # ... × sample × (group · feature)
        output = torch.cat(columns, -1)
        if not self._sorted:
            output = output.index_select(-1, self.position)
        return output + self.intercept.unsqueeze(-2)


def _sizes_and_order(groups: Sequence[int]) -> tuple[list[int], np.ndarray]:
    """Size of each group, and the features group by group."""
    labels = np.asarray(groups)
    sizes = np.bincount(labels)
    if sizes.min() < 1 or (np.diff(sizes) < 0).any():
        raise ParameterError(
            "Expected groups numbered from 0 without gaps and in order of their size; got sizes "
            f"{sizes.tolist()}."
        )
    return sizes.tolist(), np.argsort(labels, kind="stable")


def _blocks(sizes: list[int], n_groups: int) -> list[list[int]]:
    """Runs of groups of one size, of at most n_groups each."""
    runs = [list(run) for _, run in groupby(sizes)]
    return [run[i : i + n_groups] for run in runs for i in range(0, len(run), n_groups)]


def _affine(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.baddbmm(bias, h, weight) if h.ndim == 3 else h @ weight + bias
