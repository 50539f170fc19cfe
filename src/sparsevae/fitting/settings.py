"""What a fit of the sparse VAE is asked for: the estimator's parameters, resolved once for a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsevae.fitting.data import FitData
from sparsevae.fitting.recipes import Budget, Effort, Recipe
from sparsevae.modules import SparseVAEConfig, SparseVAEModule, VAEConfig, VAEModule

__all__ = ["FitSettings", "new_module", "new_vae"]

_SMALL = 1 << 18  # batch × features × width up to which a step costs more of Python's time than of arithmetic


@dataclass(frozen=True)
class FitSettings:
    """Settings of one fit.

    Attributes
    ----------
    recipe : Recipe
    config : SparseVAEConfig
        Of the module to be fitted.
    small : bool
        Whether a step costs more of Python's time than of arithmetic, so that candidates train side by side.
    from_vae : bool
        Whether the fit starts from plain VAEs, whose factors are turned to sparse slopes.
    init : str or array of shape (n_features, n_factors)
        Where the mask starts otherwise.
    anchors : tuple of (int, int)
        Feature and factor of each known anchor.
    factor_covariance : array of shape (n_factors, n_factors), optional
        Given by the user.
    spike_rate, slab_rate : float, optional
        Given by the user.
    expected_features_per_factor : float, optional
    n_init : int, optional
        Starts for each number of factors; the recipe's by default.
    max_epochs : int, optional
    learning_rate : float
    gain_kept : float
        Fraction of the best held-out gain over no factors that a simpler fit must keep.
    verbose : int
    """

    recipe: Recipe
    config: SparseVAEConfig
    small: bool
    from_vae: bool = True
    init: str | np.ndarray = "auto"
    anchors: tuple[tuple[int, int], ...] = ()
    factor_covariance: np.ndarray | None = None
    spike_rate: float | None = None
    slab_rate: float | None = None
    expected_features_per_factor: float | None = None
    n_init: int | None = None
    max_epochs: int | None = None
    learning_rate: float = 3e-3
    gain_kept: float = 1.0
    verbose: int = 0

    @property
    def n_factors(self) -> int:
        """Largest number of factors."""
        return self.config.n_factors

    @property
    def named_factors(self) -> list[int]:
        """Factors with known anchors."""
        return sorted({factor for _, factor in self.anchors})

    @property
    def effort(self) -> Effort:
        """What a table of this size gets of each part."""
        return self.recipe.small if self.small else self.recipe.large

    @property
    def n_starts(self) -> int:
        """Networks for each number of factors."""
        return self.effort.n_starts if self.n_init is None else self.n_init

    @property
    def spine_first(self) -> bool:
        """Whether a linear spine is tried before networks: by default, where nothing of the mask is given."""
        given = (
            self.anchors
            or self.slab_rate is not None
            or not isinstance(self.init, str)
            or self.init != "auto"
        )
        wanted = self.recipe.spine is not None and self.recipe.rates is None
        return wanted and not given and self.rate_is_free

    @property
    def most_predictive(self) -> bool:
        """Whether factors need not come back: the spine has all of them, beside ladders."""
        return self.gain_kept >= 1.0

    @property
    def linear(self) -> bool:
        """Whether the decoder has no hidden layers: the sparse linear model."""
        return not self.config.hidden_sizes

    @property
    def rate_is_free(self) -> bool:
        """Whether the user has left the spike rate, and what it stands for, to the fit."""
        return self.spike_rate is None and self.expected_features_per_factor is None

    def budget(self, data: FitData) -> Budget:
        """Epochs of each part."""
        small = self.small or self.recipe.rates is not None

        def enough(max_epochs: int | None) -> Budget:
            return Budget.of(self.recipe, max_epochs, data.n_steps, small=small, from_vae=self.from_vae)

        if self.max_epochs is None or data.passes == 1.0:
            return enough(self.max_epochs)
        # The user counts epochs of all rows: a sample gets their steps, as far as it has use for them.
        return enough(None).at_most(enough(round(self.max_epochs * data.passes)))

    @staticmethod
    def is_small(data: FitData, hidden_sizes: tuple[int, ...]) -> bool:
        """Whether a step on this table is a small one."""
        return bool(data.batch_size * data.source.n_features * max(hidden_sizes, default=1) <= _SMALL)


def new_module(settings: FitSettings, data: FitData, n_replicates: int) -> SparseVAEModule:
    """A sparse VAE with random weights and a mask of ones."""
    module = SparseVAEModule(
        data.source.observation, settings.config, replicates=(n_replicates,), generator=data.generator
    )
    data.calibrate_(module)
    return module.to(data.source.device)


def new_vae(settings: FitSettings, data: FitData, n_replicates: int) -> VAEModule:
    """A plain VAE with the same network and random weights."""
    own = settings.config
    config = VAEConfig(
        n_factors=own.n_factors,
        hidden_sizes=own.hidden_sizes,
        beta=own.beta,
        linear_path=own.linear_path,
        features_per_step=own.features_per_step,
        input_dropout=own.input_dropout,
        gauge=own.gauge,
        precision=own.precision,
        holes=own.holes,
        n_groups=own.n_groups,
        group_shifts=own.group_shifts,
        group_variances=own.group_variances and not own.n_groups,  # its factors are yet to be turned
    )
    module = VAEModule(data.source.observation, config, replicates=(n_replicates,), generator=data.generator)
    data.calibrate_(module)
    return module.to(data.source.device)
