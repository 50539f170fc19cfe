r"""The output-interpretable VAE (Ainsworth et al. 2018): a generator network for each group of features.

.. math::
    z \sim N(0, I), \qquad x^{(g)} \sim \text{likelihood}\left(f_{\theta_g}(W^{(g)} z)\right), \qquad
    p(W^{(g)}_{\cdot k}) \propto e^{-\lambda \|W^{(g)}_{\cdot k}\|_2}, \qquad \theta_g \sim N(0, \tau^2 I)

Column k of :math:`W^{(g)}`, with p rows, is zero as a whole or not at all: then group g does not depend on
factor k. All groups run as one batched product. Shapes are those of `LatentModule`, replicates ``...`` in
front.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from sparsevae.decoder import MaskedDecoder
from sparsevae.decoder.weights import normal_weights
from sparsevae.exceptions import ParameterError
from sparsevae.modules.base import LatentModule, ModuleConfig
from sparsevae.modules.mask import GroupMask
from sparsevae.modules.observation import Observation

__all__ = ["GroupDecoder", "OIVAEConfig", "OIVAEModule"]

_BLOCK = 1 << 18  # activations of a layer that are worked on at a time: a megabyte


@dataclass(frozen=True)
class OIVAEConfig(ModuleConfig):
    """Settings of an OI-VAE, beside those of `ModuleConfig`.

    Attributes
    ----------
    groups : tuple of int, optional
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
    """

    groups: tuple[int, ...] | None = None
    group_width: int = 5
    penalty: float = 1.0
    weight_deviation: float = 1.0
    samples_per_penalty: float | None = None
    samples_per_weight_prior: float | None = None


class OIVAEModule(LatentModule):
    """Encoder, group generators and the group lasso prior on what enters them.

    Parameters
    ----------
    observation : Observation
    config : OIVAEConfig
    replicates : tuple of int
    generator : torch.Generator, optional
        Of the first weights.

    Attributes
    ----------
    mask : GroupMask
        The matrices W.
    groups : tuple of int
        Group of each feature.
    """

    config_class: ClassVar[type[OIVAEConfig]] = OIVAEConfig
    config: OIVAEConfig
    decoder: GroupDecoder
    mask: GroupMask

    def __init__(
        self,
        observation: Observation,
        config: OIVAEConfig,
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(observation, config, replicates=replicates, generator=generator)
        shape, widths, n_factors = self.replicates, config.hidden_sizes, config.n_factors
        # Drawn and left, as in version 0.1: the same seed gives the same fit.
        MaskedDecoder(self.n_features, n_factors, widths, replicates=shape, generator=generator)
        self.groups = tuple(range(self.n_features)) if config.groups is None else tuple(config.groups)
        self.decoder = GroupDecoder(
            self.groups, config.group_width, widths, replicates=shape, generator=generator
        )
        sizes = (*shape, self.decoder.n_groups, config.group_width, n_factors)
        maps = normal_weights(sizes, generator, over=math.sqrt(n_factors))
        self.mask = GroupMask(maps, config.penalty, config.samples_per_penalty)

    # -- the model ---------------------------------------------------------------------------------------

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        """Generators' outputs for each sample and feature: shape (..., n_samples, n_features)."""
        output = self.decoder(self.mask.weight, z)
        return output if features is None else output.index_select(-1, features)

    @property
    def cells_per_row(self) -> int:
        """The widest layers of all generators together: no two groups share one."""
        return self.n_features + self.decoder.n_groups * max(self.config.hidden_sizes, default=1)

    def active(self) -> Tensor:
        """Which factors any group uses, as 0 and 1: shape (..., n_factors)."""
        return self.mask.active()

    def support(self) -> Tensor:
        """Which features use which factors: boolean, shape (..., n_features, n_factors)."""
        groups = torch.as_tensor(self.groups, device=self.mask.weight.device)
        return self.mask.support().index_select(-2, groups)

    def weight_penalty(self, n_samples: float) -> Tensor:
        r"""Minus the log prior of the generators' weights, :math:`\|\theta\|^2 / 2\tau^2` and a constant.

        The intercepts, where the features lie, are not penalised.
        """
        weights = [w.flatten(len(self.replicates)) for w in self.decoder.parameters()]
        intercept = self.decoder.intercept
        squares = sum(torch.linalg.vecdot(w, w) for w in weights) - torch.linalg.vecdot(intercept, intercept)
        ridge = squares / (2.0 * self.config.weight_deviation**2)
        return ridge / (self.config.samples_per_weight_prior or n_samples)


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

    shared: ClassVar[frozenset[str]] = frozenset({"position"})
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
            sizes = (*self.replicates, *shape)
            return nn.Parameter(normal_weights(sizes, generator, times=math.sqrt(gain)))

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
