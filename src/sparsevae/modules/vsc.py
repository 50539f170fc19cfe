r"""Variational sparse coding (Tonolini et al. 2020): factors that are exactly zero for most samples.

.. math::
    q(z_k \mid x) = \gamma_k(x)\, N(\mu_k(x), \sigma_k^2(x)) + (1 - \gamma_k(x))\, \delta_0, \qquad
    p(z) = \sum_u \pi_u\, q(z \mid x_u)

The prior is the posterior at learned pseudo-inputs :math:`x_u`; a selector :math:`s_u(x)` says which of them
a sample is compared with. Shapes are those of `LatentModule`, replicates ``...`` in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softplus

from sparsevae.decoder import MaskedDecoder
from sparsevae.decoder.weights import normal_weights
from sparsevae.divergences import kl_bernoulli, kl_spike_slab
from sparsevae.modules.base import LatentModule, Loss, ModuleConfig, Statistics, Step
from sparsevae.modules.batch import Batch
from sparsevae.modules.encoder import Encoder
from sparsevae.modules.observation import Observation

__all__ = ["SpikeSlab", "VSCConfig", "VSCModule"]

_SLOPES = (10.0, 100.0)  # of the relaxed step at the beginning and at the end of the warm-up
_AUTHORS_SLOPE = 10.0  # at all times, when codes are read as well
_SMALLEST = 1e-6  # probability that a gate is open, or shut, in the authors' arithmetic
_OPEN = 1.0  # log-odds at which gates start: open often enough for every factor to be tried


class SpikeSlab(NamedTuple):
    """Slab and log-odds of the slab, each of shape (..., n_factors)."""

    mean: Tensor
    log_variance: Tensor
    logits: Tensor

    def unsqueeze(self, dim: int) -> SpikeSlab:
        """Each part with one more dimension."""
        return SpikeSlab(*(part.unsqueeze(dim) for part in self))

    def moments(self) -> tuple[Tensor, Tensor]:
        r"""Mean :math:`\gamma\mu` and log of the variance :math:`\gamma\sigma^2 + \gamma(1-\gamma)\mu^2`."""
        gamma = torch.sigmoid(self.logits)
        between = torch.sigmoid(-self.logits) * self.mean.square()
        return gamma * self.mean, logsigmoid(self.logits) + torch.log(self.log_variance.exp() + between)

    def relaxed_moments(self, slope: float) -> tuple[Tensor, Tensor]:
        r"""Mean and log variance with the gate :math:`s = \mathrm{sigmoid}(c(u - 1 + \gamma))`, u uniform.

        .. math:: E s = \left[\tfrac1c \log(1 + e^{cv})\right]_{\gamma - 1}^{\gamma}, \qquad
            E s^2 = E s - \left[\tfrac1c \mathrm{sigmoid}(cv)\right]_{\gamma - 1}^{\gamma}

        because :math:`s' = c\,s(1 - s)`.
        """
        high, low = slope * torch.sigmoid(self.logits), -slope * torch.sigmoid(-self.logits)
        first = (softplus(high) - softplus(low)) / slope
        second = first - (torch.sigmoid(high) - torch.sigmoid(low)) / slope
        variance = second * self.log_variance.exp() + (second - first.square()) * self.mean.square()
        return first * self.mean, torch.log(variance)


@dataclass(frozen=True)
class VSCConfig(ModuleConfig):
    """Settings of variational sparse coding, beside those of `ModuleConfig`.

    Attributes
    ----------
    sparsity : float
        α, the fraction of open gates towards which the pseudo-inputs are drawn.
    n_pseudo_inputs : int
    warmup_epochs : int
        Epochs in which the relaxed step steepens.
    warm_slabs : bool
        Whether slabs grow in these epochs from the standard normal to their own, as Tonolini et al. have it.
        A gate that can let nothing but noise through is soon shut, and what is shut hardly learns.
    authors_arithmetic : bool
        Repeat the arithmetic of the sparse VAE's published code: another divergence, a stronger draw towards
        α, pseudo-inputs and selector that stay where they start, γ = min(1, eᵃ) of the encoder's third output
        a, and gates that are never quite open or shut, when codes are read either.
    """

    sparsity: float = 0.01
    n_pseudo_inputs: int = 16
    warmup_epochs: int = 0
    warm_slabs: bool = True
    authors_arithmetic: bool = False


class VSCModule(LatentModule):
    """A plain decoder under a spike-and-slab posterior and a prior of pseudo-inputs.

    Parameters
    ----------
    observation : Observation
    config : VSCConfig
    replicates : tuple of int
    generator : torch.Generator, optional
        Of the first weights.
    """

    gaussian_posterior = False
    config_class: ClassVar[type[VSCConfig]] = VSCConfig
    config: VSCConfig
    encoder: _GatedEncoder
    decoder: MaskedDecoder
    pseudo_share: Tensor
    n_epochs: Tensor

    def __init__(
        self,
        observation: Observation,
        config: VSCConfig,
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        shape, n_features, n_factors = tuple(replicates), observation.n_features, config.n_factors
        # Drawn and left, as in version 0.1: the same seed gives the same fit.
        Encoder(
            n_features,
            n_factors,
            config.hidden_sizes,
            replicates=shape,
            generator=generator,
            linear_path=config.linear_path,
        )
        decoder = MaskedDecoder(
            n_features, n_factors, config.hidden_sizes, replicates=shape, generator=generator
        )
        super().__init__(observation, config, replicates=shape, generator=generator)
        self.decoder, self.n_noise = decoder, 2 * n_factors
        learned = not config.authors_arithmetic
        n_inputs = config.n_pseudo_inputs
        pseudo_inputs = normal_weights((*shape, n_inputs, n_features), generator)
        self.pseudo_inputs = nn.Parameter(pseudo_inputs, requires_grad=learned)
        selector = normal_weights((*shape, n_inputs, n_features), generator, over=n_features**0.5)
        self.selector_weight = nn.Parameter(selector, requires_grad=learned)
        self.selector_bias = nn.Parameter(torch.zeros(*shape, n_inputs), requires_grad=learned)
        self.register_buffer("pseudo_share", torch.full((*shape, n_inputs), 1.0 / n_inputs))
        self.register_buffer("n_epochs", torch.zeros(shape))

    def new_encoder(self, generator: torch.Generator | None) -> Encoder:
        """An encoder with gates."""
        return _GatedEncoder(
            self.n_features,
            self.n_factors,
            self.config.hidden_sizes,
            replicates=self.replicates,
            generator=generator,
            linear_path=self.config.linear_path,
            capped=self.config.authors_arithmetic,
            n_marks=self.n_marks,
        )

    # -- the model ---------------------------------------------------------------------------------------

    def posterior(self, batch: Batch) -> SpikeSlab:
        """q(z | x), gates included."""
        return self._warmed(self.encoder.gated(batch.inputs, self.marks(batch)))

    def prior(self) -> SpikeSlab:
        """q(z | x_u) at each pseudo-input: parts of shape (..., n_pseudo_inputs, n_factors)."""
        return self._warmed(self.encoder.gated(self.pseudo_inputs))

    def selector(self, batch: Batch) -> Tensor:
        """s(x), the log probability of each pseudo-input: shape (..., n_samples, n_pseudo_inputs)."""
        scores = batch.inputs @ self.selector_weight.mT + self.selector_bias.unsqueeze(-2)
        return torch.log_softmax(scores, -1)

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the factors under q(z | x), gates included."""
        return self._moments_of(self.posterior(batch))

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        """Decoder output for each sample and feature: shape (..., n_samples, n_features)."""
        return self.decoder(None, z, features)

    def active(self) -> Tensor:
        """Every factor may be in use: ones of shape (..., n_factors)."""
        return self.encoder.mean_bias.new_ones(*self.replicates, self.n_factors)

    def support(self) -> Tensor:
        """Every feature uses every factor: boolean, shape (..., n_features, n_factors)."""
        shape = (*self.replicates, self.n_features, self.n_factors)
        return torch.ones(shape, dtype=torch.bool, device=self.encoder.mean_bias.device)

    def draw(self, posterior: SpikeSlab, noise: Tensor, *, relaxed: bool | None = None) -> Tensor:
        r"""Factors from standard normal draws, of which half open the gates.

        .. math:: z = T(\Phi(\epsilon') - 1 + \gamma) \odot (\mu + \sigma \odot \epsilon)

        with T the step function; a sigmoid in its place while training, so that γ receives a gradient, and at
        all times in the authors' arithmetic.

        Parameters
        ----------
        posterior : SpikeSlab
            Parts of shape (..., n_samples, n_factors).
        noise : Tensor of shape (..., n_samples, 2 * n_factors)
        relaxed : bool, optional
            Whether T is the sigmoid, if not as above.
        """
        slab_noise, gate_noise = noise.chunk(2, -1)
        margin = torch.special.ndtr(gate_noise) - torch.sigmoid(-posterior.logits)
        slab = posterior.mean + torch.exp(0.5 * posterior.log_variance) * slab_noise
        if relaxed is None:
            relaxed = self.training or self.config.authors_arithmetic
        if relaxed:
            return torch.sigmoid(self._slope() * margin) * slab
        return torch.where(margin > 0, slab, 0.0)

    def step(self, batch: Batch, noise: Tensor, n_samples: float) -> Step:
        r"""Terms of the objective at one draw of the factors; ``noise`` has two draws per factor.

        .. math:: -E_q \log p(x \mid z) + \sum_u s_u(x)\, D_{KL}[q(z \mid x) \,\|\, q(z \mid x_u)]
            + K\, D_{KL}[\bar\gamma(x) \,\|\, \alpha]

        with :math:`\bar\gamma(x)` the average over factors of the selected pseudo-inputs' γ.
        """
        posterior, prior, log_share = self.posterior(batch), self.prior(), self.selector(batch)
        output = self.decode(self.draw(posterior, noise), batch.features)
        divergence = _authors_kl if self.config.authors_arithmetic else kl_spike_slab
        kl = _selected(divergence, posterior, prior, log_share) + self._sparsity_penalty(prior, log_share)
        loss = Loss(
            reconstruction=-batch.row_mean(self.log_likelihood(batch, output)),
            kl=self.config.beta * batch.row_mean(kl),
            weight_penalty=self.weight_penalty(n_samples),
        )
        if not self.training:
            return Step(loss, Statistics())
        with torch.no_grad():
            sums = self.statistics(batch, output, *self._moments_of(posterior))
            sums["selected"] = batch.row_sum(log_share.exp())
        return Step(loss, sums)

    def bound(self, batch: Batch, draws: Tensor, posterior: tuple[Tensor, Tensor] | None = None) -> Tensor:
        r"""ELBO of each row under :math:`p(z) = \sum_u \pi_u q(z \mid x_u)`, see `LatentModule.bound`.

        The selector is the posterior of u, so its divergence from π counts too; the draw towards α does not.
        Gates are open or shut: relaxed ones have no such bound. It is one for a module with the authors'
        arithmetic as well, which has another objective.
        """
        own, log_share = self.posterior(batch), self.selector(batch)
        drawn = (self.draw(own, draw, relaxed=False) for draw in draws)
        terms = [self.log_likelihood(batch, self.decode(z)) for z in drawn]
        choice = (log_share.exp() * (log_share - self.pseudo_share.log().unsqueeze(-2))).sum(-1)
        kl = _selected(kl_spike_slab, own, self.prior(), log_share) + choice
        return torch.stack(terms).double().mean(0) - kl.double()

    def draw_posterior(self, batch: Batch, moments: tuple[Tensor, Tensor], noise: Tensor) -> Tensor:
        """One draw of the factors per row, gates included; the moments say less than the posterior."""
        return self.draw(self.posterior(batch), noise)

    @torch.no_grad()
    def draw_prior(self, n_samples: int, generator: torch.Generator) -> Tensor:
        """Factors drawn from the prior of a module without replicates: shape (n_samples, n_factors)."""
        which = torch.multinomial(self.pseudo_share, n_samples, replacement=True, generator=generator)
        chosen = SpikeSlab(*(part[which] for part in self.prior()))
        return self.draw(chosen, torch.randn(n_samples, self.n_noise, generator=generator))

    # -- between epochs ----------------------------------------------------------------------------------

    @torch.no_grad()
    def update(self, statistics: Statistics, n_samples: float) -> None:
        """Noise variances, weights of the pseudo-inputs, and one epoch's step of the warm-up."""
        # Not below what a pseudo-input chosen by a single sample would have.
        count = statistics["count"]
        count = count.unsqueeze(-1) if count.ndim else count  # of replicates with rows of their own
        share = (statistics["selected"] / count).clamp_min(1.0 / (n_samples + 1.0))
        self.pseudo_share.copy_(share / share.sum(-1, keepdim=True))
        super().update(statistics, n_samples)
        self.n_epochs.add_(1.0)

    # -- helpers -----------------------------------------------------------------------------------------

    @property
    def warmth(self) -> Tensor:
        """How far the warm-up has come, up to 1: shape (..., 1, 1)."""
        share = (self.n_epochs + 1.0) / max(1, self.config.warmup_epochs)
        return share.clamp(max=1.0)[..., None, None]

    def _warmed(self, own: SpikeSlab) -> SpikeSlab:
        if not self.config.warm_slabs:
            return own
        # At warmth 0 every slab is the standard normal: what a factor says, it says by its gate.
        return SpikeSlab(self.warmth * own.mean, self.warmth * own.log_variance, own.logits)

    def _moments_of(self, posterior: SpikeSlab) -> tuple[Tensor, Tensor]:
        return (
            posterior.relaxed_moments(_AUTHORS_SLOPE)
            if self.config.authors_arithmetic
            else posterior.moments()
        )

    def _slope(self) -> Tensor | float:
        if self.config.authors_arithmetic:
            return _AUTHORS_SLOPE
        return _SLOPES[0] + (_SLOPES[1] - _SLOPES[0]) * self.warmth

    def _sparsity_penalty(self, prior: SpikeSlab, log_share: Tensor) -> Tensor:
        share, gamma = log_share.exp(), torch.sigmoid(prior.logits).mean(-1, keepdim=True)
        alpha = torch.logit(torch.as_tensor(self.config.sparsity, dtype=gamma.dtype, device=gamma.device))

        def distance(rate: Tensor) -> Tensor:
            return kl_bernoulli(torch.logit(rate, eps=_SMALLEST), alpha)

        if self.config.authors_arithmetic:  # the average over pseudo-inputs outside instead of inside
            return self.n_features * (share @ distance(gamma)).squeeze(-1)
        return self.n_factors * distance(share @ gamma).squeeze(-1)  # ... × sample


class _GatedEncoder(Encoder):
    """An encoder with a third output, the log-odds of each factor's gate.

    ``capped`` takes the output for log γ instead, with zero for a cap, as the authors' code does.
    """

    def __init__(
        self,
        n_features: int,
        n_factors: int,
        hidden_sizes: Sequence[int],
        *,
        replicates: tuple[int, ...],
        generator: torch.Generator | None,
        linear_path: bool,
        capped: bool = False,
        n_marks: int = 0,
    ) -> None:
        super().__init__(
            n_features,
            n_factors,
            hidden_sizes,
            replicates=replicates,
            generator=generator,
            linear_path=linear_path,
            n_marks=n_marks,
        )
        self.capped = capped
        width = self.log_variance_weight.shape[-1]
        gates = normal_weights((*self.replicates, n_factors, width), generator, times=width**-0.5)
        self.gate_weight = nn.Parameter(gates)
        self.gate_bias = nn.Parameter(torch.full((*self.replicates, n_factors), 0.0 if capped else _OPEN))

    def gated(self, x: Tensor, marks: Tensor | None = None) -> SpikeSlab:
        """Slab and gate of each factor, for encoder inputs of shape (..., n_samples, n_features)."""
        h = self.hidden(x, marks)
        logits = h @ self.gate_weight.mT + self.gate_bias.unsqueeze(-2)
        if self.capped:
            logits = torch.logit(logits.clamp_max(0.0).exp(), eps=_SMALLEST)
        return SpikeSlab(*self.moments(x, h, marks), logits)


def _selected(
    divergence: Callable[..., Tensor], posterior: SpikeSlab, prior: SpikeSlab, log_share: Tensor
) -> Tensor:
    """Divergence of each posterior from those of the pseudo-inputs, averaged by the selector."""
    each = divergence(*posterior.unsqueeze(-2), *prior.unsqueeze(-3))  # ... × sample × pseudo-input
    return (log_share.exp() * each).sum(-1)


def _authors_kl(
    mean: Tensor,
    log_variance: Tensor,
    logits: Tensor,
    prior_mean: Tensor,
    prior_log_variance: Tensor,
    prior_logits: Tensor,
) -> Tensor:
    """What the sparse VAE's published code has: γ on the log ratio only, σ for σ²; it can be negative."""
    log_ratio = 0.5 * (prior_log_variance - log_variance)
    deviation, prior_deviation = torch.exp(0.5 * log_variance), torch.exp(0.5 * prior_log_variance)
    quadratic = (deviation + (mean - prior_mean).square()) / (2.0 * prior_deviation)
    slab = torch.sigmoid(logits) * log_ratio + quadratic - 0.5
    return (slab + kl_bernoulli(logits, prior_logits)).sum(-1)
