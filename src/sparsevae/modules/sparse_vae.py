"""The sparse VAE: a plain VAE, a mask before its decoder, and factors that may be correlated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparsevae.divergences import kl_correlated_normal, kl_standard_normal
from sparsevae.modules.base import Statistics
from sparsevae.modules.batch import Batch
from sparsevae.modules.mask import SpikeSlabMask
from sparsevae.modules.observation import Observation
from sparsevae.modules.vae import VAEConfig, VAEModule

__all__ = ["SparseVAEConfig", "SparseVAEModule", "correlation_and_scale"]

_SHRINKAGE = 0.02  # of the learned factor correlation towards the identity
_INERTIA = 0.8  # weight of the old factor correlation at each update


@dataclass(frozen=True)
class SparseVAEConfig(VAEConfig):
    """Settings of a sparse VAE, beside those of `VAEConfig`.

    Attributes
    ----------
    covariance : {"learned", "identity", "fixed"}
        Prior covariance of the factors. "fixed" keeps what is in the buffer ``factor_covariance``.
    inclusion_prior : (float, float), optional
        a and b of the Beta prior on the inclusion rates; (1, n_features) by default.
    keep_rate_ratio : bool
        See `SpikeSlabMask`.
    spine : float
        Weight of the linear part W z beside the network of the masked factors. 1 makes the mask the signed
        loadings of a linear model on which the network builds; 0 is the decoder of the paper.
    """

    gauge: bool = True
    covariance: str = "learned"
    inclusion_prior: tuple[float, float] | None = None
    keep_rate_ratio: bool = True
    spine: float = 0.0


class SparseVAEModule(VAEModule):
    """Encoder, masked decoder and priors; an identity network makes it the sparse linear factor model.

    Parameters
    ----------
    observation : Observation
    config : SparseVAEConfig
    replicates : tuple of int
    generator : torch.Generator, optional
        Of the first weights.

    Attributes
    ----------
    mask : SpikeSlabMask
    factor_covariance : Tensor of shape (..., n_factors, n_factors)
        Σ_z.
    """

    config_class: ClassVar[type[SparseVAEConfig]] = SparseVAEConfig
    config: SparseVAEConfig
    mask: SpikeSlabMask
    factor_covariance: Tensor

    def __init__(
        self,
        observation: Observation,
        config: SparseVAEConfig,
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(observation, config, replicates=replicates, generator=generator)
        self.mask = SpikeSlabMask(
            self.n_features,
            self.n_factors,
            inclusion_prior=config.inclusion_prior,
            keep_rate_ratio=config.keep_rate_ratio,
            replicates=self.replicates,
        )
        # Not torch.eye: on the meta device, where a saved model's shapes are compared, it loads the compiler.
        covariance = torch.zeros(*self.replicates, self.n_factors, self.n_factors)
        covariance.diagonal(dim1=-2, dim2=-1).fill_(1.0)
        self.register_buffer("factor_covariance", covariance)
        self.has_own_threads = self.decoder.first is not None  # the linear model is one product

    @classmethod
    def from_vae(cls, vae: VAEModule, config: SparseVAEConfig) -> SparseVAEModule:
        """The network of a plain VAE without replicates, with a mask of ones before its decoder."""
        module = cls(vae.observation, config, generator=torch.Generator()).to(vae.decoder.heads)
        state = module.state_dict()
        module.load_state_dict(
            {**state, **{name: v for name, v in vae.state_dict().items() if name in state}}
        )
        return module

    # -- the model ------------------------------------------------------------------------------------------

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        """Decoder output for each sample and feature: shape (..., n_samples, n_features)."""
        mask = self.mask
        output: Tensor = self.decoder(
            mask.weight, z, features, zero_gradients=mask.zeros_may_return, fixed=mask.frozen
        )
        if not self.config.spine:
            return output
        weight = mask.weight if features is None else mask.weight.index_select(-2, features)
        return output + self.config.spine * (z @ weight.mT)

    def active(self) -> Tensor:
        """Which factors any feature uses, as 0 and 1: shape (..., n_factors)."""
        return self.mask.active()

    def support(self) -> Tensor:
        """Which features use which factors: boolean, shape (..., n_features, n_factors)."""
        return self.mask.support()

    def kl(self, mean: Tensor, log_variance: Tensor, group: Tensor | None = None) -> Tensor:
        """Divergence of the posterior from N(0, Σ_z), or its group's prior, per row: (..., n_samples)."""
        if self.row_groups is not None and group is not None:
            return self._kl_of_groups(mean, log_variance, group)
        if self.config.covariance == "identity":
            return kl_standard_normal(mean, log_variance)
        return kl_correlated_normal(mean, log_variance, self.prior_covariance())

    def _kl_of_groups(self, mean: Tensor, log_variance: Tensor, group: Tensor) -> Tensor:
        assert self.row_groups is not None
        mean, log_variance = self.row_groups.standardise(mean, log_variance, group)
        if self.config.covariance == "identity":
            return kl_standard_normal(mean, log_variance)
        covariance = self.prior_covariance()
        if bool(self.row_groups.used.all()):
            return kl_correlated_normal(mean, log_variance, covariance)
        result = mean.new_zeros(mean.shape[:-1])
        for g in range(self.row_groups.n_groups):
            own = kl_correlated_normal(mean, log_variance, self.row_groups.covariance(covariance, g))
            result = torch.where(group == g, own, result)
        return result

    def prior_covariance(self) -> Tensor:
        """Σ_z of the active factors; the others have left the model, standard normal on both sides."""
        if self.config.covariance != "fixed":
            return self.factor_covariance
        active = self.active().bool()
        both = active.unsqueeze(-1) & active.unsqueeze(-2)
        return torch.where(both, self.factor_covariance, torch.eye(self.n_factors, device=both.device))

    def log_weight(self, batch: Batch, noise: Tensor) -> Tensor:
        r"""Log importance weight :math:`\log p(x \mid z) + \log p(z) - \log q(z \mid x)` of one draw per row.

        Its mean over draws is the ELBO; the log of the mean weight is a tighter bound, which does not punish
        a model for posteriors that a diagonal Gaussian fits badly.
        """
        mean, log_variance = self.encode(batch)
        z = mean + torch.exp(0.5 * log_variance) * noise
        if self.row_groups is not None and batch.group is not None:
            return self._log_weight_of_groups(batch, z, log_variance, noise)
        factor = torch.linalg.cholesky(self.prior_covariance())
        white = torch.linalg.solve_triangular(factor, z.mT, upper=False).mT
        log_determinant = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
        log_prior_ratio = 0.5 * (noise.square() + log_variance - white.square()).sum(-1) - log_determinant
        return self.log_likelihood(batch, self.decode(z)) + log_prior_ratio

    def _log_weight_of_groups(self, batch: Batch, z: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
        assert self.row_groups is not None
        assert batch.group is not None
        moved, _ = self.row_groups.standardise(z, log_variance, batch.group)
        log_variance = log_variance - 2.0 * self.padded(
            batch, self.row_groups.scale.log()[..., batch.group, :]
        )
        result = z.new_zeros(z.shape[:-1])
        # Factors that a group lacks are standard normal on both sides.
        moved = torch.where(self.row_groups.used[..., batch.group, :], moved, noise)
        for g in range(self.row_groups.n_groups):
            factor = torch.linalg.cholesky(self.row_groups.covariance(self.prior_covariance(), g))
            white = torch.linalg.solve_triangular(factor, moved.mT, upper=False).mT
            log_determinant = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
            ratio = 0.5 * (noise.square() + log_variance - white.square()).sum(-1) - log_determinant
            result = torch.where(batch.group == g, ratio, result)
        return self.log_likelihood(batch, self.decode(self.padded(batch, z))) + result

    def draw_prior(self, n_samples: int, generator: torch.Generator) -> Tensor:
        """Factors drawn from N(0, Σ_z): shape (n_samples, n_factors)."""
        factor = torch.linalg.cholesky(self.factor_covariance)
        return super().draw_prior(n_samples, generator) @ factor.mT

    # -- training -------------------------------------------------------------------------------------------

    @torch.no_grad()
    def statistics(self, batch: Batch, output: Tensor, mean: Tensor, log_variance: Tensor) -> Statistics:
        """Sums over the rows of a batch: those of the likelihood, and second moments of the factors."""
        sums = super().statistics(batch, output, mean, log_variance)
        if self.config.covariance == "learned":
            if self.row_groups is not None and batch.group is not None:
                mean, log_variance = self.row_groups.standardise(mean, log_variance, batch.group)
            weighted = mean if batch.weight is None else mean * batch.weight.unsqueeze(-1)
            sums["moments"] = weighted.mT @ mean + torch.diag_embed(batch.row_sum(log_variance.exp()))
        return sums

    @torch.no_grad()
    def update(self, statistics: Statistics, n_samples: float) -> None:
        """Σ_z by a parameter-expanded step (mask and encoder take the diagonal of E[zz']), and the noise."""
        if self.config.covariance == "learned":
            count = statistics["count"]
            count = count[..., None, None] if count.ndim else count  # of replicates with rows of their own
            moments, active = statistics["moments"] / count, self.active().bool()
            covariance, scale = correlation_and_scale(moments, self.factor_covariance, active)
            self.factor_covariance.copy_(covariance)
            self.scale_factors_(scale)
        super().update(statistics, n_samples)

    @torch.no_grad()
    def scale_factors_(self, scale: Tensor) -> None:
        """Divide factor k by ``scale[k]``, multiply column k of the mask by it: the same model, other units.

        Fixed rows (known anchors) keep their entries; their heads follow.
        """
        self.mask.scale_(scale)
        self.encoder.transform_factors_(torch.diag_embed(1.0 / scale))
        if self.row_groups is not None:
            self.row_groups.transform_(torch.diag_embed(1.0 / scale))

    @torch.no_grad()
    def permute_factors_(self, order: Tensor, sign: Tensor) -> None:
        """Reorder the factors and flip the signs of some; the model stays the same.

        Parameters
        ----------
        order : integer Tensor of shape (n_factors,)
            New factor k is old factor ``order[k]``; for a module without replicates.
        sign : Tensor of shape (n_factors,)
            +1 or -1 for each new factor.
        """
        order, sign = order.to(self.mask.weight.device), sign.to(self.mask.weight)
        signed = torch.diag(sign)[:, order.argsort()]
        self.encoder.transform_factors_(signed)
        if self.row_groups is not None:
            self.row_groups.transform_(signed)
        self.mask.permute_(order)
        if self.decoder.first is None:
            self.decoder.heads.copy_(self.decoder.heads[:, order])
            self.mask.weight.mul_(sign)
        elif self.config.spine:  # the mask takes the sign, so that w_jk z_k stays what it is
            self.decoder.first.copy_(self.decoder.first[:, order])
            self.mask.weight.mul_(sign)
        else:
            self.decoder.first.copy_(self.decoder.first[:, order] * sign)
        self.factor_covariance.copy_(signed @ self.factor_covariance @ signed.mT)


def correlation_and_scale(moments: Tensor, previous: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    r"""Split :math:`E[zz^\top]` into a correlation matrix and the scale that mask and encoder are to take.

    Parameters
    ----------
    moments : Tensor of shape (..., n_factors, n_factors)
        :math:`E_q[zz^\top]`, averaged over samples.
    previous : Tensor of shape (..., n_factors, n_factors)
        The correlation matrix so far.
    active : boolean Tensor of shape (..., n_factors)
        Factors that have not left the model.

    Returns
    -------
    correlation : Tensor of shape (..., n_factors, n_factors)
        Shrunk slightly towards the identity, and that of the identity for factors not in use.
    scale : Tensor of shape (..., n_factors)
        Half of the step to unit variance: the network follows, and an overshoot would make it oscillate.
    """
    scale = moments.diagonal(dim1=-2, dim2=-1).clamp_min(1e-8).sqrt()
    both = active.unsqueeze(-1) & active.unsqueeze(-2)
    identity = torch.eye(moments.shape[-1], device=moments.device)
    correlation = moments / (scale.unsqueeze(-1) * scale.unsqueeze(-2))
    correlation = (1.0 - _SHRINKAGE) * correlation + _SHRINKAGE * identity
    correlation = _INERTIA * previous + (1.0 - _INERTIA) * correlation
    correlation = torch.where(both, correlation, identity)
    correlation.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    step = torch.where(active & scale.isfinite(), scale.clamp(0.5, 2.0), torch.ones_like(scale)).sqrt()
    return torch.where(correlation.isfinite(), correlation, identity), step
