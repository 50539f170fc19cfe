"""The sparse VAE as a module; a mask of ones makes it the plain VAE, an identity network the linear model.

Shapes: x is (n_samples, n_features) or (..., n_samples, n_features); every parameter and every loss term may
carry leading replicate dimensions ``...``, which are independent models trained side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sparsevae.decoder import MaskedDecoder
from sparsevae.divergences import kl_correlated_normal, kl_standard_normal
from sparsevae.modules.base import Loss
from sparsevae.modules.covariance import correlation_and_scale
from sparsevae.modules.gauge import fix_gauge_
from sparsevae.modules.observation import Observation
from sparsevae.modules.subset import (
    check_features_per_step,
    draw_seen,
    draw_subset,
    squared_errors,
    subset_log_prob,
)
from sparsevae.networks import Encoder
from sparsevae.priors import (
    inclusion_probability,
    log_inclusion_prior,
    log_prior,
    map_noise_variance,
    noise_log_prior,
    penalty_weight,
    update_inclusion_rate,
)

__all__ = ["FactorModule"]

_NU = 3.0  # degrees of freedom of the noise prior, appendix "Sparse VAE settings"
_HOLD_RATE = 3.0  # spike_rate / slab_rate below which η is held: at equal rates its update only shrinks it


class FactorModule(nn.Module):
    """Encoder, masked decoder and priors of one model (or several replicates of it).

    Parameters
    ----------
    observation : Observation
        Likelihood and units; shared by all replicates.
    n_factors : int
    hidden_sizes : sequence of int
        Of encoder and decoder; empty for the linear model.
    learned_mask : bool
        False fixes the mask at ones: a plain VAE, whose features share one forward pass.
    covariance : {"learned", "identity", "fixed"}
        Prior covariance of the factors. "fixed" keeps what is in the buffer ``factor_covariance``.
    inclusion_prior : (float, float)
        a and b of the Beta prior on the inclusion rates.
    noise_scale : Tensor of shape (n_features,)
        ξ of the noise prior in model units.
    beta : float
        Weight of the KL term.
    gauge : bool
        Whether decoder norms are fixed, see `modules.gauge`.
    keep_rate_ratio : bool
        Whether the E-step has the factor λ1/λ0 of the Laplace densities; False only to repeat released
        results.
    linear_path : bool
        Whether the encoder has a linear path beside its MLP.
    precision : {"float32", "bfloat16"}
        Of the decoder's matrix products.
    features_per_step : int, optional
        Features in the reconstruction of a training step, see `modules.subset`; all by default.
    input_dropout : float
        Share of the encoder's inputs that are left out in a training step, see `draw_seen`.
    """

    gaussian_posterior = True
    observation: Observation
    mask: nn.Parameter
    log_dispersion: nn.Parameter | None
    noise_variance: Tensor
    factor_covariance: Tensor
    inclusion_rate: Tensor
    used: Tensor
    frozen: Tensor
    known: Tensor
    noise_scale: Tensor
    real: Tensor
    _squares: Tensor
    _moments: Tensor
    _count: int
    _seen: Tensor | int

    def __init__(
        self,
        observation: Observation,
        n_factors: int,
        hidden_sizes: Sequence[int] = (64, 64),
        *,
        learned_mask: bool = True,
        covariance: str = "learned",
        inclusion_prior: tuple[float, float] | None = None,
        noise_scale: Tensor | None = None,
        beta: float = 1.0,
        gauge: bool = True,
        keep_rate_ratio: bool = True,
        linear_path: bool = True,
        precision: str = "float32",
        features_per_step: int | None = None,
        input_dropout: float = 0.0,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        n_features = observation.n_features
        prior = (1.0, float(n_features)) if inclusion_prior is None else inclusion_prior
        check_features_per_step(features_per_step, observation.likelihood)
        self.config: dict[str, Any] = {
            "n_factors": n_factors,
            "hidden_sizes": tuple(hidden_sizes),
            "learned_mask": learned_mask,
            "covariance": covariance,
            "inclusion_prior": tuple(prior),
            "beta": beta,
            "gauge": gauge,
            "keep_rate_ratio": keep_rate_ratio,
            "linear_path": linear_path,
            "precision": precision,
            "features_per_step": features_per_step,
            "input_dropout": input_dropout,
        }
        self.observation = observation
        self.n_features, self.n_factors, self.n_noise = n_features, n_factors, n_factors
        shape = self.replicates = tuple(replicates)
        self.encoder = Encoder(
            n_features,
            n_factors,
            hidden_sizes,
            replicates=shape,
            generator=generator,
            linear_path=linear_path,
        )
        self.decoder = MaskedDecoder(
            n_features, n_factors, hidden_sizes, replicates=shape, generator=generator, precision=precision
        )
        if gauge:
            fix_gauge_(self.decoder)
        self.mask = nn.Parameter(torch.ones(*shape, n_features, n_factors), requires_grad=learned_mask)
        if observation.dispersed_columns.any():
            self.log_dispersion = nn.Parameter(torch.zeros(*shape, n_features))
        else:
            self.register_parameter("log_dispersion", None)
        self.register_buffer("noise_variance", torch.ones(*shape, n_features))
        identity = torch.eye(n_factors).expand(*shape, n_factors, n_factors)
        self.register_buffer("factor_covariance", identity.clone())
        self.register_buffer("inclusion_rate", torch.full((*shape, n_factors), 0.5))
        self.register_buffer("used", torch.ones(*shape, n_factors, dtype=torch.bool))
        self.register_buffer("frozen", torch.zeros(n_features, n_factors, dtype=torch.bool))
        self.register_buffer("known", torch.zeros(n_features, n_factors, dtype=torch.bool))
        noise_scale = torch.full((n_features,), 0.05) if noise_scale is None else noise_scale
        self.register_buffer("noise_scale", noise_scale)
        self.register_buffer("real", torch.as_tensor(observation.real_columns))
        self.spike_rate: float | Tensor = 1.0
        self.slab_rate: float | Tensor = 1.0
        self.zero_gradients = True
        self._reset_statistics()

    # -- the model ------------------------------------------------------------------------------------------

    def encode(self, x: Tensor, seen: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log variance of q(z | x) for rows in model units; 0 and 0 for factors not in use.

        ``seen``, from `draw_seen`, leaves out some of the encoder's inputs.
        """
        mean, log_variance = self.encoder(self._inputs(x, seen))
        active = self.active().unsqueeze(-2)
        return mean * active, log_variance * active

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        """Decoder output for each sample and feature: shape (..., n_samples, n_features)."""
        if not self.config["learned_mask"]:
            return self.decoder(None, z * self.used.unsqueeze(-2), features)
        return self.decoder(self.mask, z, features, zero_gradients=self.zero_gradients, fixed=self.frozen)

    def active(self) -> Tensor:
        """Which factors any feature uses, as 0 and 1: shape (..., n_factors)."""
        if not self.config["learned_mask"]:
            return self.used.to(self.mask.dtype)
        return (self.mask.detach() != 0).any(-2).to(self.mask.dtype)

    def support(self) -> Tensor:
        """Which features use which factors: boolean, shape (..., n_features, n_factors)."""
        return self.mask.detach() != 0

    def dispersion(self) -> Tensor | None:
        """Noise variance of real-valued features and inverse dispersion of overdispersed counts."""
        if self.log_dispersion is None:
            return self.noise_variance
        return torch.where(self.real, self.noise_variance, self.log_dispersion.exp())

    def log_likelihood(self, x: Tensor, output: Tensor, features: Tensor | None = None) -> Tensor:
        """Log p(x | z) per row in model units: shape (..., n_samples).

        With ``features``, whose columns alone the output then has, its estimate from these.
        """
        terms = {"dispersion": self.dispersion(), "size": self.observation.size(x)}
        likelihood = self.observation.likelihood
        if features is None:
            return likelihood.log_prob(x, output, **terms)
        return subset_log_prob(likelihood, x, output, features, **terms)

    def kl(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        """Divergence of the posterior from N(0, Σ_z) per row: shape (..., n_samples)."""
        if self.config["covariance"] == "identity":
            return kl_standard_normal(mean, log_variance)
        return kl_correlated_normal(mean, log_variance, self.prior_covariance())

    def prior_covariance(self) -> Tensor:
        """Σ_z of the active factors; the others have left the model, standard normal on both sides."""
        if self.config["covariance"] != "fixed":
            return self.factor_covariance
        active = self.active().bool()
        both = active.unsqueeze(-1) & active.unsqueeze(-2)
        return torch.where(both, self.factor_covariance, torch.eye(self.n_factors, device=both.device))

    def _inputs(self, x: Tensor, seen: Tensor | None) -> Tensor:
        inputs = self.observation.encoder_input(x)
        return inputs if seen is None else inputs * seen

    def log_weight(self, x: Tensor, noise: Tensor) -> Tensor:
        r"""Log importance weight :math:`\log p(x \mid z) + \log p(z) - \log q(z \mid x)` of one draw per row.

        Its mean over draws is the ELBO; the log of the mean weight is a tighter bound, which does not punish
        a model for posteriors that a diagonal Gaussian fits badly.
        """
        mean, log_variance = self.encode(x)
        z = mean + torch.exp(0.5 * log_variance) * noise
        factor = torch.linalg.cholesky(self.prior_covariance())
        white = torch.linalg.solve_triangular(factor, z.mT, upper=False).mT
        log_determinant = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
        log_prior_ratio = 0.5 * (noise.square() + log_variance - white.square()).sum(-1) - log_determinant
        return self.log_likelihood(x, self.decode(z)) + log_prior_ratio

    def bound(self, x: Tensor, draws: Tensor, posterior: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """ELBO of each row, averaged over draws of the noise that all rows share.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
            Rows in model units.
        draws : Tensor of shape (n_draws, n_noise)
        posterior : (Tensor, Tensor), optional
            Mean and log variance; the encoder's by default.

        Returns
        -------
        Tensor of shape (n_samples,), in float64
        """
        mean, log_variance = self.encode(x) if posterior is None else posterior
        deviation = torch.exp(0.5 * log_variance)
        terms = [self.log_likelihood(x, self.decode(mean + deviation * draw)) for draw in draws]
        return torch.stack(terms).double().mean(0) - self.kl(mean, log_variance).double()

    def draw_prior(self, n_samples: int, generator: torch.Generator) -> Tensor:
        """Factors drawn from N(0, Σ_z): shape (n_samples, n_factors)."""
        factor = torch.linalg.cholesky(self.factor_covariance)
        return torch.randn(n_samples, self.n_factors, generator=generator) @ factor.mT

    def draw_features(self, generator: torch.Generator) -> Tensor | None:
        """Features of a training step's reconstruction; None for all of them."""
        features = draw_subset(self.n_features, self.config["features_per_step"], generator)
        return None if features is None else features.to(self.mask.device)

    def draw_seen(self, x: Tensor, generator: torch.Generator) -> Tensor | None:
        """Which of its inputs the encoder sees of some rows in a training step; None for all of them."""
        return draw_seen(x, self.config["input_dropout"], generator)

    def loss(
        self,
        x: Tensor,
        noise: Tensor,
        n_samples: int,
        *,
        features: Tensor | None = None,
        seen: Tensor | None = None,
    ) -> Loss:
        """Terms of the objective at one draw of the factors.

        Parameters
        ----------
        x : Tensor of shape (..., batch, n_features)
            Rows in model units.
        noise : Tensor of shape (..., batch, n_factors)
            Standard normal draws of the reparameterisation.
        n_samples : int
            Size of the whole training set, over which the priors are spread.
        features : integer Tensor, optional
            Estimate the reconstruction from these features; the encoder sees all of them.
        seen : Tensor of shape (..., batch, n_features), optional
            From `draw_seen`.
        """
        mean, log_variance = self.encode(x, seen)
        z = mean + torch.exp(0.5 * log_variance) * noise
        output = self.decode(z, features)
        if self.training:
            self._collect(x, output, mean, log_variance, features)
        return Loss(
            reconstruction=-self.log_likelihood(x, output, features).mean(-1),
            kl=self.config["beta"] * self.kl(mean, log_variance).mean(-1),
            weight_penalty=self.weight_penalty(n_samples),
        )

    def weight_penalty(self, n_samples: int) -> Tensor:
        """Minus the log prior of the network's weights over n_samples: they have none here."""
        return self.noise_variance.new_zeros(self.replicates)

    @torch.no_grad()
    def penalties(self, n_samples: int) -> dict[str, Tensor]:
        """Minus the log priors of mask and noise over n_samples, which act through no gradient."""
        noise = mask = self.noise_variance.new_zeros(self.replicates)
        if self.real.any():
            noise = -noise_log_prior(self.noise_variance[..., self.real], _NU, self.noise_scale[self.real])
        if self.config["learned_mask"]:
            rates = {"spike_rate": self.spike_rate, "slab_rate": self.slab_rate}
            mask = -log_prior(self.mask, self.inclusion_rate, **rates)
            mask = mask - log_inclusion_prior(self.inclusion_rate, *self.config["inclusion_prior"])
        return {"mask_penalty": mask / n_samples, "noise_penalty": noise / n_samples}

    # -- closed-form updates --------------------------------------------------------------------------------

    @torch.no_grad()
    def inclusion(self) -> Tensor:
        """E[γ] at the present mask and rates."""
        rate = self.inclusion_rate
        if not self.config["keep_rate_ratio"]:
            ratio = torch.as_tensor(self.slab_rate / self.spike_rate)
            rate = torch.sigmoid(torch.logit(rate) - ratio.log())
        return inclusion_probability(self.mask, rate, spike_rate=self.spike_rate, slab_rate=self.slab_rate)

    @torch.no_grad()
    def update_inclusion(self) -> None:
        """η in closed form from E[γ]."""
        ratio = torch.as_tensor(self.spike_rate / self.slab_rate)
        if bool((ratio >= _HOLD_RATE).all()):
            prior = self.config["inclusion_prior"]
            self.inclusion_rate.copy_(update_inclusion_rate(self.inclusion(), *prior))

    @torch.no_grad()
    def proximal_weight(self, n_samples: int) -> Tensor:
        """λ* / N, what one unit of |w| costs per sample; entries known to be there cost nothing."""
        weight = penalty_weight(self.inclusion(), spike_rate=self.spike_rate, slab_rate=self.slab_rate)
        return (weight / n_samples).masked_fill(self.known, 0.0)

    @torch.no_grad()
    def closed_form_update(self, n_samples: int) -> None:
        """Noise variances and factor covariance from what the batches since the last call have shown."""
        if self._count == 0:
            return
        if self.real.any():
            squares = self._squares * (n_samples / self._seen)
            variance = map_noise_variance(squares, n_samples, _NU, self.noise_scale)
            # A feature that no step has drawn has no squares (0/0) and keeps its variance.
            known = self.real & variance.isfinite() if isinstance(self._seen, Tensor) else self.real
            self.noise_variance.copy_(torch.where(known, variance, self.noise_variance))
        if self.config["covariance"] == "learned" and self.config["learned_mask"]:
            self._update_covariance(self._moments / self._count)
        self._reset_statistics()

    def _update_covariance(self, moments: Tensor) -> None:
        """Parameter-expanded step: mask and encoder take the diagonal of E[zz'], the rest is Σ_z."""
        covariance, scale = correlation_and_scale(moments, self.factor_covariance, self.active().bool())
        self.factor_covariance.copy_(covariance)
        self.scale_factors_(scale)

    @torch.no_grad()
    def scale_factors_(self, scale: Tensor) -> None:
        """Divide factor k by ``scale[k]``, multiply column k of the mask by it: the same model, other units.

        Fixed rows (known anchors) keep their entries; their heads follow.
        """
        self.mask.copy_(torch.where(self.frozen, self.mask, self.mask * scale.unsqueeze(-2)))
        self.encoder.transform_factors_(torch.diag_embed(1.0 / scale))

    def _collect(
        self, x: Tensor, output: Tensor, mean: Tensor, log_variance: Tensor, features: Tensor | None = None
    ) -> None:
        with torch.no_grad():
            if self.real.any():
                squares, seen = squared_errors(x, output, features)
                self._squares, self._seen = self._squares + squares, self._seen + seen
            moments = mean.mT @ mean + torch.diag_embed(log_variance.exp().sum(-2))
            self._moments = self._moments + moments
            self._count += x.shape[-2]

    def _reset_statistics(self) -> None:
        self._squares = self._moments = torch.zeros(())
        self._count = self._seen = 0
