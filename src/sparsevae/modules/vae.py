"""The plain VAE: every feature may depend on every factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sparsevae.decoder import MaskedDecoder
from sparsevae.modules.base import LatentModule, ModuleConfig
from sparsevae.modules.observation import Observation

__all__ = ["VAEConfig", "VAEModule"]


@dataclass(frozen=True)
class VAEConfig(ModuleConfig):
    """Settings of a VAE, beside those of `ModuleConfig`.

    Attributes
    ----------
    gauge : bool
        Whether decoder norms are fixed, see `decoder.gauge`.
    precision : {"float32", "bfloat16"}
        Of the decoder's matrix products.
    """

    gauge: bool = False
    precision: str = "float32"


class VAEModule(LatentModule):
    """Encoder and decoder, whose features share one forward pass, under a standard normal prior.

    Parameters
    ----------
    observation : Observation
    config : VAEConfig
    replicates : tuple of int
    generator : torch.Generator, optional
        Of the first weights.

    Attributes
    ----------
    used : boolean Tensor of shape (..., n_factors)
        Factors that there are; the others are zero.
    """

    config_class: ClassVar[type[VAEConfig]] = VAEConfig
    config: VAEConfig
    decoder: MaskedDecoder
    used: Tensor

    def __init__(
        self,
        observation: Observation,
        config: VAEConfig,
        *,
        replicates: tuple[int, ...] = (),
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(observation, config, replicates=replicates, generator=generator)
        self.decoder = MaskedDecoder(
            self.n_features,
            self.n_factors,
            config.hidden_sizes,
            replicates=self.replicates,
            generator=generator,
            precision=config.precision,
            gauge=config.gauge,
        )
        self.register_buffer("used", torch.ones(*self.replicates, self.n_factors, dtype=torch.bool))

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        """Decoder output for each sample and feature: shape (..., n_samples, n_features)."""
        return self.decoder(None, z * self.used.unsqueeze(-2), features)

    def active(self) -> Tensor:
        """Which factors there are, as 0 and 1: shape (..., n_factors)."""
        return self.used.to(self.decoder.heads.dtype)

    def support(self) -> Tensor:
        """Every feature uses every factor: boolean, shape (..., n_features, n_factors)."""
        return self.used.new_ones(*self.replicates, self.n_features, self.n_factors)

    def project_(self) -> None:
        """Fix the norms of the decoder's layers, if the gauge is asked for."""
        if self.config.gauge:
            self.decoder.fix_gauge_()

    def network_parameters(self) -> list[torch.nn.Parameter]:
        """What gradients move; the heads of the identity network are the gauge's, always ones."""
        parameters = super().network_parameters()
        if self.config.gauge and self.decoder.first is None:
            parameters = [p for p in parameters if p is not self.decoder.heads]
        return parameters
