"""The contract of all modules: what the training loop, the fits and the readers of a fit may ask of a model.

Reduction is the same everywhere: sum over features and factors, mean over samples. Shapes: x is (n_samples,
n_features) or (..., n_samples, n_features); every parameter and every loss term may carry leading replicate
dimensions ``...``, which are independent models trained side by side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, fields
from typing import ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from sparsevae.aliases import State
from sparsevae.divergences import kl_standard_normal
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.likelihoods import Likelihood, Mixed
from sparsevae.modules.batch import Batch
from sparsevae.modules.encoder import Encoder
from sparsevae.modules.groups import Groups
from sparsevae.modules.mask import Mask
from sparsevae.modules.observation import Observation

__all__ = ["LatentModule", "Loss", "ModuleConfig", "Statistics", "Step"]


@dataclass(frozen=True)
class ModuleConfig:
    """Settings of a module.

    Attributes
    ----------
    n_factors : int
    hidden_sizes : tuple of int
        Of encoder and decoder; empty for a linear model.
    beta : float
        Weight of the KL term.
    linear_path : bool
        Whether the encoder has a linear path beside its MLP.
    features_per_step : int, optional
        Features in the reconstruction of a training step; all by default.
    input_dropout : float
        Fraction of the encoder's inputs that are left out in a training step.
    holes : bool
        Whether the encoder is told which entries of a row are missing.
    n_groups : int
        Groups of rows that the model knows of; 0 for none.
    group_shifts, group_variances : bool
        See `modules.groups.Groups`.
    held_means : bool
        Whether the means of the encoder are a linear map that training leaves alone: see `Encoder`.
    """

    n_factors: int
    hidden_sizes: tuple[int, ...] = (64, 64)
    beta: float = 1.0
    linear_path: bool = True
    features_per_step: int | None = None
    input_dropout: float = 0.0
    holes: bool = False
    n_groups: int = 0
    group_shifts: bool = True
    group_variances: bool = True
    held_means: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type == "bool" and not isinstance(getattr(self, field.name), bool):
                raise DataError(f"Expected {field.name} to be true or false")
        if self.held_means and not self.linear_path:
            raise DataError("Expected a linear path of the encoder, whose means are held")


class Loss(NamedTuple):
    """Terms of the objective that gradients lower, per sample.

    The priors of mask and noise act through proximal steps and closed forms: see `LatentModule.penalties`.
    """

    reconstruction: Tensor
    """Minus the expected log likelihood."""
    kl: Tensor
    """Divergence of the posterior of the factors from their prior."""
    weight_penalty: Tensor
    """Minus the log prior of the network's weights, divided by the number of samples."""


class Statistics(dict[str, Tensor]):
    """Sums over rows that closed forms need; they add up over the batches of an epoch."""

    def __add__(self, other: Statistics) -> Statistics:
        if not self:
            return other
        return Statistics({name: value + other[name] for name, value in self.items()})


class Step(NamedTuple):
    """What one batch gives: the loss to be lowered, and sums for `LatentModule.update`."""

    loss: Loss
    statistics: Statistics


class LatentModule(nn.Module, ABC):
    """An encoder, a decoder and priors, or several replicates of them.

    Parameters
    ----------
    observation : Observation
        Likelihood and units; shared by all replicates.
    config : ModuleConfig
    replicates : tuple of int
    generator : torch.Generator, optional
        Of the first weights.

    Attributes
    ----------
    n_noise : int
        Standard normal draws per row that a step needs.
    gaussian_posterior : bool
        Whether q(z | x) is the diagonal Gaussian that `encode` describes.
    has_own_threads : bool
        Whether decoding uses threads of its own, with which kernels must not compete.
    mask : Mask or None
    nuisance : Nuisance
        State of the likelihood beside the decoder's output.
    row_groups : Groups or None
        What differs between groups of rows.
    """

    gaussian_posterior = True
    has_own_threads = False
    config: ModuleConfig
    decoder: nn.Module
    mask: Mask | None
    row_groups: Groups | None

    def __init__(
        self,
        observation: Observation,
        config: ModuleConfig,
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_features_per_step(config.features_per_step, observation.likelihood)
        self.observation, self.config, self.replicates = observation, config, tuple(replicates)
        self.n_features, self.n_factors = observation.n_features, config.n_factors
        self.n_noise = config.n_factors
        self.nuisance = Nuisance(observation.likelihood, self.n_features, self.replicates)
        self.row_groups = None
        if config.n_groups:
            self.row_groups = Groups(
                config.n_groups,
                self.n_features,
                self.n_factors,
                shifts=config.group_shifts,
                variances=config.group_variances,
                replicates=self.replicates,
            )
        self.encoder = self.new_encoder(generator)
        self.mask = None

    def new_encoder(self, generator: torch.Generator | None) -> Encoder:
        """The encoder with its first weights."""
        return Encoder(
            self.n_features,
            self.n_factors,
            self.config.hidden_sizes,
            replicates=self.replicates,
            generator=generator,
            linear_path=self.config.linear_path,
            n_marks=self.n_marks,
            held_means=self.config.held_means,
        )

    @property
    def n_marks(self) -> int:
        """Marks of a row that the encoder sees beside its entries."""
        return (self.n_features if self.config.holes else 0) + self.config.n_groups

    def marks(self, batch: Batch) -> Tensor | None:
        """What the encoder is told of each row beside its entries: (..., n_rows, n_marks)."""
        parts = []
        if self.config.holes:
            seen = batch.observed
            parts.append(torch.zeros_like(batch.inputs) if seen is None else (~seen).to(batch.inputs))
        if self.row_groups is not None:
            n_groups = self.config.n_groups
            if batch.group is None:
                parts.append(batch.inputs.new_zeros(*batch.inputs.shape[:-1], n_groups))
            else:
                parts.append(self.row_groups.marks(batch.group, n_groups).to(batch.inputs))
        return torch.cat(parts, -1) if parts else None

    # -- the model ------------------------------------------------------------------------------------------

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Mean and log variance of q(z | x); 0 and 0 for factors not in use."""
        mean, log_variance = self.encoder(batch.inputs, self.marks(batch))
        active = self.active().unsqueeze(-2)
        return self.padded(batch, mean * active), self.padded(batch, log_variance * active)

    def padded(self, batch: Batch, z: Tensor) -> Tensor:
        """Factors, or moments of them, with zeros in rows whose group lacks them."""
        if self.row_groups is None or batch.group is None:
            return z
        return self.row_groups.pad(z, batch.group)

    def shifted(self, batch: Batch, output: Tensor) -> Tensor:
        """Decoder outputs of the rows of a batch, with the shifts of their groups."""
        if self.row_groups is None or batch.group is None:
            return output
        return output + self.row_groups.offset(batch.group, batch.features)

    @abstractmethod
    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        """Decoder output for each sample and feature: shape (..., n_samples, n_features)."""

    @abstractmethod
    def active(self) -> Tensor:
        """Which factors are in use, as 0 and 1: shape (..., n_factors)."""

    @abstractmethod
    def support(self) -> Tensor:
        """Which features use which factors: boolean, shape (..., n_features, n_factors)."""

    def log_likelihood(self, batch: Batch, output: Tensor) -> Tensor:
        """Log p(x | z) per row in model units: shape (..., n_samples).

        If the batch names ``features``, whose columns alone the output then has, the estimate from these.
        """
        likelihood, parameters = self.observation.likelihood, self.nuisance.values()
        output = self.shifted(batch, output)
        if batch.features is None:
            return likelihood.log_prob(batch.x, output, parameters, size=batch.size, observed=batch.observed)
        return subset_log_prob(likelihood, batch, output, parameters)

    def kl(self, mean: Tensor, log_variance: Tensor, group: Tensor | None = None) -> Tensor:
        """Divergence of the posterior from the prior of the factors per row: shape (..., n_samples)."""
        if self.row_groups is not None and group is not None:
            mean, log_variance = self.row_groups.standardise(mean, log_variance, group)
        return kl_standard_normal(mean, log_variance)

    def bound(self, batch: Batch, draws: Tensor, posterior: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """ELBO of each row, averaged over draws of the noise that all rows share.

        Parameters
        ----------
        batch : Batch
        draws : Tensor of shape (n_draws, n_noise)
        posterior : (Tensor, Tensor), optional
            Mean and log variance; the encoder's by default.

        Returns
        -------
        Tensor of shape (n_samples,), in float64
        """
        mean, log_variance = self.encode(batch) if posterior is None else posterior
        deviation = torch.exp(0.5 * log_variance)
        drawn = (self.padded(batch, mean + deviation * draw) for draw in draws)
        terms = [self.log_likelihood(batch, self.decode(z)) for z in drawn]
        return torch.stack(terms).double().mean(0) - self.kl(mean, log_variance, batch.group).double()

    def draw_prior(self, n_samples: int, generator: torch.Generator) -> Tensor:
        """Factors drawn from their prior: shape (n_samples, n_factors)."""
        return torch.randn(n_samples, self.n_factors, generator=generator)

    def draw_posterior(self, batch: Batch, moments: tuple[Tensor, Tensor], noise: Tensor) -> Tensor:
        """One draw of the factors per row from the posterior with this mean and log variance."""
        mean, log_variance = moments
        return self.padded(batch, mean + torch.exp(0.5 * log_variance) * noise)

    def prior_of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Mean and inverse covariance of the factors' prior, for all rows or for each; without replicates."""
        if self.row_groups is None or batch.group is None:
            covariance = self.prior_covariance()
            return covariance.new_zeros(self.n_factors), torch.linalg.inv(covariance)
        precision = self.row_groups.precision(self.prior_covariance(), batch.group)
        return self.row_groups.mean[batch.group], precision

    def prior_covariance(self) -> Tensor:
        """Σ_z of the prior: shape (..., n_factors, n_factors)."""
        return torch.eye(self.n_factors).to(self.encoder.mean_bias)

    @property
    def cells_per_row(self) -> int:
        """About how many numbers decoding makes of a row, beside a network that all features share."""
        return self.n_features

    @property
    def noise_variance(self) -> Tensor:
        """Noise variances in model units, ones for a likelihood without: shape (..., n_features)."""
        variance = self.observation.likelihood.noise_variance(self.nuisance.values())
        if variance is None:
            return self.encoder.mean_bias.new_ones(*self.replicates, self.n_features)
        return variance

    # -- training -------------------------------------------------------------------------------------------

    def step(self, batch: Batch, noise: Tensor, n_samples: float) -> Step:
        """Terms of the objective at one draw of the factors, and sums for the closed forms.

        Parameters
        ----------
        batch : Batch
        noise : Tensor of shape (..., batch, n_noise)
            Standard normal draws of the reparameterisation.
        n_samples : float
            Size of the whole training set, by weight, over which the priors are spread.

        Returns
        -------
        Step
            Without statistics in evaluation mode.
        """
        mean, log_variance = self.encode(batch)
        z = self.padded(batch, mean + torch.exp(0.5 * log_variance) * noise)
        output = self.decode(z, batch.features)
        loss = Loss(
            reconstruction=-batch.row_mean(self.log_likelihood(batch, output)),
            kl=self.config.beta * batch.row_mean(self.kl(mean, log_variance, batch.group)),
            weight_penalty=self.weight_penalty(n_samples),
        )
        if not self.training:
            return Step(loss, Statistics())
        return Step(loss, self.statistics(batch, output, mean, log_variance))

    @torch.no_grad()
    def statistics(self, batch: Batch, output: Tensor, mean: Tensor, log_variance: Tensor) -> Statistics:
        """Sums over the rows of a batch that `update` needs."""
        sums = Statistics(self.nuisance.statistics(batch, self.shifted(batch, output)))
        if self.row_groups is not None and batch.group is not None:
            sums.update(self.row_groups.statistics(batch, mean, log_variance))
        sums["count"] = torch.as_tensor(batch.total_weight)
        return sums

    def thin(
        self,
        batch: Batch,
        generator: torch.Generator,
        *,
        every_feature: bool = False,
        part_of: tuple[slice, int] | None = None,
    ) -> Batch:
        """Draw the features of a training step's reconstruction, and leave out some of the encoder's inputs.

        Inputs left out are 0 and the others grow by 1/(1 - rate), so that averages stay what they are. An
        encoder that may not rely on any single feature overfits less. ``part_of`` says which rows of how many
        these are, where they are not the whole batch.
        """
        size, rate = self.config.features_per_step, self.config.input_dropout
        if size is not None and size < self.n_features and not every_feature:
            drawn = torch.randperm(self.n_features, generator=generator)[:size].sort().values
            batch = batch._replace(features=drawn.to(batch.x.device))
        if rate:
            rows, n_rows = (slice(None), batch.n_rows) if part_of is None else part_of
            shape = (*batch.x.shape[:-2], n_rows, batch.x.shape[-1])
            drawn = torch.rand(shape, generator=generator)[..., rows, :]
            kept = drawn.to(batch.x.device) >= rate
            batch = batch._replace(inputs=batch.inputs * (kept / (1.0 - rate)))
        return batch

    def weight_penalty(self, n_samples: float) -> Tensor:
        """Minus the log prior of the network's weights over n_samples; zero where they have none."""
        return self.encoder.mean_bias.new_zeros(self.replicates)

    @torch.no_grad()
    def penalties(self, n_samples: float) -> dict[str, Tensor]:
        """Minus the log priors of mask and noise over n_samples, which act through no gradient."""
        zero = self.encoder.mean_bias.new_zeros(self.replicates)
        noise = self.nuisance.log_prior()
        return {
            "mask_penalty": zero if self.mask is None else self.mask.penalty(n_samples),
            "noise_penalty": zero if noise is None else -noise / n_samples,
        }

    @torch.no_grad()
    def update(self, statistics: Statistics, n_samples: float) -> None:
        """Closed forms, given what all batches of an epoch have shown."""
        self.nuisance.update(statistics, n_samples)
        if self.row_groups is not None and "group_counts" in statistics:
            self.row_groups.update_(statistics)

    def project_(self) -> None:
        """Move the parameters back to where the model is defined, after each gradient step."""

    def network_parameters(self) -> list[nn.Parameter]:
        """What gradients move, apart from the mask."""
        mask = set() if self.mask is None else set(self.mask.parameters())
        first = [*self.nuisance.parameters()]
        others = [p for p in self.parameters() if p not in mask and all(p is not q for q in first)]
        return [p for p in (*first, *others) if p.requires_grad]

    # -- copies ---------------------------------------------------------------------------------------------

    config_class: ClassVar[type[ModuleConfig]] = ModuleConfig

    def to_dict(self) -> State:
        """Everything that `from_dict` needs to make the same module: plain values and tensors."""
        rates = {} if self.mask is None else self.mask.rates()
        return {"config": asdict(self.config), "rates": rates, "tensors": dict(self.state_dict())}

    @classmethod
    def from_dict(
        cls,
        values: State,
        observation: Observation,
        device: torch.device | str = "cpu",
        *,
        finite: bool = True,
    ) -> Self:
        """The module without replicates that `to_dict` described; units come with the tensors.

        ``finite`` is False for a candidate of a fit, which may have diverged without harm to the others.
        """
        config, tensors = cls.config_class(**values["config"]), values["tensors"]
        cls._check_tensors(observation, config, tensors, finite=finite)
        module = cls(observation, config, generator=torch.Generator())
        module.load_state_dict({name: tensors[name] for name in module.state_dict()})
        if module.mask is not None:
            rates = values["rates"].items()
            module.mask.set_rates(**{k: r.to(device) if isinstance(r, Tensor) else r for k, r in rates})
        return module.to(device)

    @classmethod
    def _check_tensors(
        cls, observation: Observation, config: ModuleConfig, tensors: State, *, finite: bool
    ) -> None:
        """Refuse tensors of other shapes than these settings give, before memory is taken for a module."""
        if len(config.hidden_sizes) > len(tensors):
            raise DataError(f"Expected weights for {len(config.hidden_sizes)} hidden layers")
        with torch.device("meta"):  # shapes alone
            expected = cls(observation, config).state_dict()
        for name, like in expected.items():
            found = tensors[name]
            if not isinstance(found, Tensor) or found.shape != like.shape or found.dtype != like.dtype:
                got = f"{tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
                raise DataError(f"Expected {name} of shape {tuple(like.shape)}; got {got}")
            if finite and found.is_floating_point() and not bool(found.isfinite().all()):
                raise DataError(f"Expected finite numbers in {name}")

    def replicated(self) -> Iterator[tuple[str, Tensor]]:
        """Names and values of the state that differs between replicates and has their dimension in front."""
        observation = set(self.observation.modules())
        for prefix, part in self.named_modules():
            if part in observation:
                continue
            shared: frozenset[str] = getattr(part, "shared", frozenset())
            for name, value in (*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)):
                if name not in shared:
                    yield (f"{prefix}.{name}" if prefix else name), value

    def clone(self) -> Self:
        """An independent copy."""
        return deepcopy(self)

    def select(self, index: int | list[int]) -> Self:
        """A copy with some replicates only.

        Parameters
        ----------
        index : int or list of int
            One replicate gives a module without replicate dimensions; a list keeps the dimension.
        """
        if not self.replicates:
            return self.clone()
        replicates = () if isinstance(index, int) else (len(index),)
        copy = _copy_with(self, {name: value[index] for name, value in self.replicated()}, replicates)
        if copy.mask is not None:
            copy.mask.select_rates_(index)
        return copy

    @classmethod
    def stack(cls, modules: Sequence[Self]) -> Self:
        """Modules of one shape, without replicates, as the replicates of one module."""
        values = [dict(module.replicated()) for module in modules]
        stacked = {name: torch.stack([value[name] for value in values]) for name in values[0]}
        return _copy_with(modules[0], stacked, (len(modules),))


Module = TypeVar("Module", bound=LatentModule)


@torch.no_grad()
def _copy_with(module: Module, values: dict[str, Tensor], replicates: tuple[int, ...]) -> Module:
    """A copy with these values in place of those that differ between replicates."""
    copy = deepcopy(module)
    for name, tensor in copy.replicated():
        tensor.data = values[name].detach().clone()
    for parameter in copy.parameters():
        parameter.grad = None
    for part in copy.modules():
        if hasattr(part, "replicates"):
            part.replicates = replicates  # type: ignore[assignment]
    return copy


_PREFIX = "likelihood."  # of the likelihood's sums among the statistics of a module


class Nuisance(nn.Module):
    """The parameters of a likelihood beside the decoder's output, by their names."""

    def __init__(self, likelihood: Likelihood, n_features: int, replicates: tuple[int, ...]) -> None:
        super().__init__()
        self.likelihood, self.n_features, self.shared = likelihood, n_features, likelihood.shared
        for name, value in likelihood.initial_parameters(n_features, replicates).items():
            if isinstance(value, nn.Parameter):
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value)

    def values(self) -> dict[str, Tensor]:
        """All of them, as the likelihood's functions take them."""
        found: dict[str, Tensor] = {
            name: value for name, value in self._parameters.items() if value is not None
        }
        return found | {name: value for name, value in self._buffers.items() if value is not None}

    def statistics(self, batch: Batch, output: Tensor) -> dict[str, Tensor]:
        """Sums over the rows of a batch, for every feature."""
        weight = {} if batch.weight is None else {"weight": batch.weight}
        if batch.features is None:
            sums = self.likelihood.statistics(batch.x, output, batch.observed, **weight)
            return {_PREFIX + name: value for name, value in sums.items()}
        some = restrict(self.likelihood, self.n_features, batch.features)
        x = batch.x.index_select(-1, batch.features)
        observed = None if batch.observed is None else batch.observed.index_select(-1, batch.features)
        return {
            _PREFIX + name: value.new_zeros(*value.shape[:-1], self.n_features).index_copy(
                -1, batch.features, value
            )
            for name, value in some.statistics(x, output, observed, **weight).items()
        }

    @torch.no_grad()
    def update(self, statistics: Statistics, n_samples: float) -> None:
        """Those with a closed form."""
        sums = {k.removeprefix(_PREFIX): v for k, v in statistics.items() if k.startswith(_PREFIX)}
        for name, value in self.likelihood.update(self.values(), sums, n_samples).items():
            self._buffers[name].copy_(value)  # type: ignore[union-attr]

    def log_prior(self) -> Tensor | None:
        """Log prior of those with a closed form."""
        return self.likelihood.log_prior(self.values())


def check_features_per_step(features_per_step: int | None, likelihood: Likelihood) -> None:
    """Refuse a subset of features where the likelihood needs all of them at once."""
    if features_per_step is None or likelihood.factorised:
        return
    raise ParameterError(
        "Expected features_per_step=None for a multinomial likelihood, whose features share one total per "
        f"sample; got features_per_step={features_per_step}. Leave it out, or model the counts as 'poisson' "
        "or 'negative_binomial'."
    )


def subset_log_prob(
    likelihood: Likelihood, batch: Batch, output: Tensor, parameters: dict[str, Tensor]
) -> Tensor:
    r"""Estimate the log density of each sample from some of its features.

    Where features are independent given the factors, a subset S of G features drawn uniformly gives

    .. math:: \frac{G}{|S|} \sum_{j \in S} \log p(x_{ij} \mid z_i),

    whose mean over subsets is the sum over all features, and so are its gradients.

    Parameters
    ----------
    likelihood : Likelihood
        Factorised.
    batch : Batch
        Whole rows, with the features drawn.
    output : Tensor of shape (..., n_samples, len(features))
    parameters : dict
        For all features.

    Returns
    -------
    Tensor of shape (..., n_samples)
    """
    features, n_features = batch.features, batch.x.shape[-1]
    assert features is not None
    total = restrict(likelihood, n_features, features).log_prob(
        batch.x.index_select(-1, features),
        output,
        {name: value.index_select(-1, features) for name, value in parameters.items()},
        size=batch.size,
        observed=None if batch.observed is None else batch.observed.index_select(-1, features),
    )
    return total * (n_features / len(features))


def restrict(likelihood: Likelihood, n_features: int, features: Tensor) -> Likelihood:
    """The likelihood of the chosen columns, counted anew from 0."""
    parts = likelihood.split(n_features)
    if len(parts) == 1:
        return parts[0][0]
    kind = np.empty(n_features, dtype=np.intp)
    for number, (_, columns) in enumerate(parts):
        kind[columns] = number
    chosen = kind[features.cpu().numpy()]
    return Mixed([(part, np.flatnonzero(chosen == number)) for number, (part, _) in enumerate(parts)])
