"""Answers on a scale: whole numbers in order, with cut points between them."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparsevae.likelihoods.base import Parameters, per_feature
from sparsevae.likelihoods.levels import Levels, log_shares

__all__ = ["Ordinal", "ordinal_log_prob"]

_SMALLEST_GAP = 1e-6  # between two cut points, on the scale of the logistic distribution


def ordinal_log_prob(x: Tensor, output: Tensor, cuts: Tensor, n_levels: Tensor) -> Tensor:
    r"""Log density of levels 0, 1, ..., C - 1 under the cumulative logit model, elementwise.

    .. math:: P(x \le c) = \mathrm{sigmoid}(\theta_c - \ell), \qquad
        \log P(x = c) = \log\mathrm{sigmoid}(\theta_c - \ell) + \log\mathrm{sigmoid}(\ell - \theta_{c-1})
        + \log\left(1 - e^{-(\theta_c - \theta_{c-1})}\right)

    without the terms of :math:`\theta_{-1} = -\infty` and :math:`\theta_{C-1} = \infty`.

    Parameters
    ----------
    x, output : Tensor of shape (..., n_samples, n_features)
    cuts : Tensor of shape (..., n_cuts, n_features)
        Rising along the second last dimension; those from :math:`C_j - 1` on are not used.
    n_levels : Tensor of shape (n_features,)
        :math:`C_j`.

    Returns
    -------
    Tensor of shape (..., n_samples, n_features)
    """
    shape = torch.broadcast_shapes(x.shape[:-2], output.shape[:-2], cuts.shape[:-2])
    level = x.round().long().clamp(0, cuts.shape[-2]).expand(*shape, *x.shape[-2:])
    cuts = cuts.expand(*shape, *cuts.shape[-2:])
    first, last = level == 0, level >= n_levels - 1
    upper = cuts.gather(-2, level.clamp_max(cuts.shape[-2] - 1))
    lower = cuts.gather(-2, (level - 1).clamp_min(0))
    gap = torch.where(first | last, 1.0, upper - lower).clamp_min(_SMALLEST_GAP)
    return (
        torch.where(last, 0.0, F.logsigmoid(upper - output))
        + torch.where(first, 0.0, F.logsigmoid(output - lower))
        + torch.where(first | last, 0.0, torch.log(-torch.expm1(-gap)))
    )


class Ordinal(Levels):
    r"""Levels in order: :math:`P(x_j \le c) = \mathrm{sigmoid}(\theta_{jc} - \text{output}_j)`.

    Parameters of the distribution: ``first_cut`` :math:`\theta_{j0}`, which stays where the table puts it,
    because the decoder's intercept moves the scale; ``log_gaps``, the logarithms of
    :math:`\theta_{jc} - \theta_{j,c-1}`; and ``n_levels``.
    """

    name = "ordinal"
    shared = frozenset({"n_levels"})

    def log_density(self, x: Tensor, output: Tensor, parameters: Parameters, size: Tensor | None) -> Tensor:
        return ordinal_log_prob(x, output, self.cuts(parameters), parameters["n_levels"])

    def expectation(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        """Expected level: the sum of the chances of being above each cut point."""
        return torch.stack(self._above(output, parameters)).sum(0)

    def probabilities(self, output: Tensor, parameters: Parameters) -> Tensor:
        """Chance of each level: shape (n_levels, ..., n_samples, n_features)."""
        return torch.stack([high - low for high, low in self._edges(output, parameters)])

    def information_at(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        r""":math:`\sum_c p_c (1 - \gamma_c - \gamma_{c-1})^2`, with :math:`\gamma_c = P(x \le c)`."""
        edges = self._edges(output, parameters)
        return torch.stack([(high - low) * (high + low - 1.0).square() for high, low in edges]).sum(0)

    def initial_parameters(self, n_features: int, replicates: tuple[int, ...] = ()) -> dict[str, Tensor]:
        n_cuts = self.n_levels - 1
        return {
            "first_cut": torch.full((*replicates, n_features), -0.5 * (n_cuts - 1)),
            "log_gaps": nn.Parameter(torch.zeros(*replicates, n_cuts - 1, n_features)),
            "n_levels": torch.full((n_features,), float(self.n_levels)),
        }

    def parameters_from_counts(self, counts: Tensor) -> dict[str, Tensor]:
        """Cut points at which an output of zero gives each level its share."""
        below = log_shares(counts).exp().cumsum(0)[:-1].clamp(1e-7, 1.0 - 1e-7)
        cuts = torch.logit(below)
        gaps = cuts.diff(dim=0).clamp_min(_SMALLEST_GAP)
        used = torch.arange(len(gaps)).unsqueeze(-1) < (counts > 0).sum(0)  # any number serves the others
        return {"first_cut": cuts[0], "log_gaps": torch.where(used, gaps.log(), 0.0)}

    def cuts(self, parameters: Parameters) -> Tensor:
        """Cut points in rising order: shape (..., n_cuts, n_features)."""
        first = per_feature(parameters, "first_cut", self)
        gaps = parameters["log_gaps"].exp() + _SMALLEST_GAP
        return torch.cat([first, first + gaps.cumsum(-2)], -2)

    def _above(self, output: Tensor, parameters: Parameters) -> list[Tensor]:
        """Chance of lying above each cut point, zero for those that a feature does not have."""
        n_levels = parameters["n_levels"]
        return [
            torch.where(m < n_levels - 1, torch.sigmoid(output - cut.unsqueeze(-2)), 0.0)
            for m, cut in enumerate(self.cuts(parameters).unbind(-2))
        ]

    def _edges(self, output: Tensor, parameters: Parameters) -> list[tuple[Tensor, Tensor]]:
        """Chances of lying above the lower and above the upper end of each level."""
        above = self._above(output, parameters)
        return list(pairwise([torch.ones_like(above[0]), *above, torch.zeros_like(above[0])]))
