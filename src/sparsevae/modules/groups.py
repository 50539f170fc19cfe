"""Groups of rows (studies, batches, countries): what may differ between them while the mask is one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sparsevae.modules.batch import Batch

__all__ = ["Groups"]

_VARIANCES = (1e-4, 100.0)  # of a factor in a group, relative to its average
_UNUSED = 0.05  # variance of a factor in a group, relative to the largest, below which the group lacks it
_INERTIA = 0.5  # weight of the old variances at each update
_LEAST_SHARE = 0.3  # of a factor's variance that its posterior means must show for a step by moments


class Groups(nn.Module):
    r"""Shifts of the features and priors of the factors, for each group.

    .. math:: x_i \sim p(\,\cdot \mid f(z_i) + b_{g(i)}), \qquad z_i \sim N(\mu_g, S_g \Sigma_z S_g)

    A factor whose variance in a group falls to nothing leaves it for good: its rows have :math:`z_k = 0`, so
    that factors are shared or belong to some groups under one mask (Moran and Krishnan, arXiv 2601.18128).

    Parameters
    ----------
    n_groups, n_features, n_factors : int
    shifts : bool
        Whether features have levels of their own in each group; else the factors have means of their own. One
        of the two: a mean of all factors of a feature and a shift of it cannot be told apart.
    variances : bool
        Whether the variances of the factors are learned.
    replicates : tuple of int

    Attributes
    ----------
    shift : Tensor of shape (..., n_groups, n_features)
        b, in units of the decoder's output.
    mean, scale : Tensor of shape (..., n_groups, n_factors)
        μ and the diagonal of S; scales have a mean square of one over the rows that have the factor.
    used : boolean Tensor of shape (..., n_groups, n_factors)
        Which groups have which factors.
    """

    mean: Tensor
    scale: Tensor
    used: Tensor

    def __init__(
        self,
        n_groups: int,
        n_features: int,
        n_factors: int,
        *,
        shifts: bool = True,
        variances: bool = True,
        replicates: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.n_groups, self.shifts, self.variances, self.replicates = n_groups, shifts, variances, replicates
        shift = torch.zeros(*replicates, n_groups, n_features)
        self.shift = nn.Parameter(shift, requires_grad=shifts)
        self.register_buffer("mean", torch.zeros(*replicates, n_groups, n_factors))
        self.register_buffer("scale", torch.ones(*replicates, n_groups, n_factors))
        self.register_buffer("used", torch.ones(*replicates, n_groups, n_factors, dtype=torch.bool))

    def offset(self, group: Tensor, features: Tensor | None = None) -> Tensor:
        """B of each row: shape (..., n_rows, n_features)."""
        shift = self.shift if features is None else self.shift.index_select(-1, features)
        return _rows(shift, group)

    def marks(self, group: Tensor, n_marks: int) -> Tensor:
        """Which group each row belongs to, as 0 and 1: (..., n_rows, n_marks); groups beyond have none."""
        return (group.unsqueeze(-1) == torch.arange(n_marks, device=group.device)).to(self.scale)

    def pad(self, values: Tensor, group: Tensor) -> Tensor:
        """Values of the factors, zero in rows whose group lacks them."""
        return values * _rows(self.used, group)

    def standardise(self, mean: Tensor, log_variance: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        """A posterior in units of the group's prior; 0 and 0 for factors that the group lacks."""
        scale = _rows(self.scale, group)
        moved = (mean - _rows(self.mean, group)) / scale
        return self.pad(moved, group), self.pad(log_variance - 2.0 * scale.log(), group)

    def covariance(self, covariance: Tensor, g: int) -> Tensor:
        """Σ of the factors that group g has, in units of their scales; the others are standard normal."""
        used = self.used[..., g, :]
        both = used.unsqueeze(-1) & used.unsqueeze(-2)
        identity = torch.eye(covariance.shape[-1], device=covariance.device).to(covariance)
        return torch.where(both, covariance, identity)

    def precision(self, covariance: Tensor, group: Tensor) -> Tensor:
        """Inverse prior covariance of each row: (n_rows, n_factors, n_factors); without replicates."""
        each = [torch.linalg.inv(self.covariance(covariance, g)) for g in range(self.n_groups)]
        inverse = 1.0 / self.scale
        return (torch.stack(each) * inverse.unsqueeze(-1) * inverse.unsqueeze(-2))[group]

    # -- closed forms ---------------------------------------------------------------------------------------

    def statistics(self, batch: Batch, mean: Tensor, log_variance: Tensor) -> dict[str, Tensor]:
        """Sums over the rows of each group: weights, factors, and their squares."""
        assert batch.group is not None
        marks = self.marks(batch.group, self.n_groups)
        if batch.weight is not None:
            marks = marks * batch.weight.unsqueeze(-1)
        return {
            "group_counts": marks.sum(-2),
            "group_sums": marks.mT @ mean,
            "group_squares": marks.mT @ mean.square(),
            "group_variances": marks.mT @ log_variance.exp(),
        }

    @torch.no_grad()
    def update_(self, sums: dict[str, Tensor]) -> None:
        r"""Means and variances of the factors in each group, and which groups have left a factor.

        Variances by moments, :math:`s^2 = E m^2/\gamma^2 - E v/\gamma` with :math:`\gamma = 1 - E v/s^2`, for
        posterior means m and variances v: the steps of EM, :math:`E m^2 + E v`, hardly move once s² is small.
        """
        counts = sums["group_counts"].unsqueeze(-1).clamp_min(1e-12)
        first, second = sums["group_sums"] / counts, sums["group_squares"] / counts
        left = sums["group_variances"] / counts
        if not self.shifts:
            centre = (counts * first).sum(-2, keepdim=True) / counts.sum(-2, keepdim=True)
            self.mean.copy_(first - centre)
        if not self.variances:
            return
        squares = second - 2.0 * self.mean * first + self.mean.square()
        previous = self.scale.square()
        share = 1.0 - left / previous
        moments = squares / share.square() - left / share
        variance = torch.where(share > _LEAST_SHARE, moments, squares + left)
        variance = ((1.0 - _INERTIA) * variance.clamp_min(0.0) + _INERTIA * previous).clamp(*_VARIANCES)
        self.used.logical_and_(variance >= _UNUSED * variance.amax(-2, keepdim=True))
        present = counts * self.used
        average = (present * variance).sum(-2, keepdim=True) / present.sum(-2, keepdim=True).clamp_min(1e-12)
        self.scale.copy_(torch.where(self.used, (variance / average).sqrt(), 1.0))

    # -- other factors --------------------------------------------------------------------------------------

    @torch.no_grad()
    def transform_(self, matrix: Tensor) -> None:
        """Means of :math:`B z` for what was z; for scalings, permutations and signs the rest follows too."""
        self.mean.copy_(self.mean @ matrix.mT)
        order = matrix.abs().argmax(-1)
        if self.variances:
            index = order.unsqueeze(-2).expand_as(self.scale)
            self.scale.copy_(self.scale.gather(-1, index))
            self.used.copy_(self.used.gather(-1, index))

    def with_group(self, shift: Tensor) -> Groups:
        """A copy with one more group, whose factors have their average prior; without replicates."""
        n_factors = self.mean.shape[-1]
        other = Groups(self.n_groups + 1, self.shift.shape[-1], n_factors, shifts=self.shifts)
        with torch.no_grad():
            other.shift.copy_(torch.cat([self.shift, shift.to(self.shift)[None]]))
            other.mean.copy_(torch.cat([self.mean, torch.zeros(1, n_factors).to(self.mean)]))
            other.scale.copy_(torch.cat([self.scale, torch.ones(1, n_factors).to(self.scale)]))
            other.used.copy_(torch.cat([self.used, torch.ones(1, n_factors, dtype=torch.bool)]))
        return other.to(self.shift)


def _rows(values: Tensor, group: Tensor) -> Tensor:
    """The row of each group, for each of some rows: (..., n_groups, n) to (..., n_rows, n)."""
    if group.ndim == 1:
        return values.index_select(-2, group)
    return values.gather(-2, group.unsqueeze(-1).expand(*group.shape, values.shape[-1]))
