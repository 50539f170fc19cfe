"""Variational sparse coding as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sparsevae.aliases import TableLike
from sparsevae.estimators.neural import NeuralEstimator
from sparsevae.exceptions import ParameterError
from sparsevae.fitting import FitData, Recipe, get_recipe
from sparsevae.fitting.initial import pytorch_layers_
from sparsevae.inspection.codes import map_rows
from sparsevae.modules import Batch, LatentModule, VSCConfig, VSCModule
from sparsevae.principal import RandomState
from sparsevae.validation import check_positive

__all__ = ["VSC"]

_DRAWS = 64  # behind score_samples


@dataclass(frozen=True)
class _VSCRecipe:
    """What a recipe means for VSC.

    Attributes
    ----------
    warm_up : int
        One part in so many of the epochs, in which gates steepen; 0 for none.
    warm_kl : bool
        Whether the divergence grows meanwhile: it would shut gates that have not found their use yet.
    warm_slabs : bool
        Whether slabs begin as pure noise, as Tonolini et al. have it.
    authors_arithmetic : bool
        See `VSCConfig`.
    """

    warm_up: int = 3
    warm_kl: bool = False
    warm_slabs: bool = False
    authors_arithmetic: bool = False


_RECIPES = {
    "default": _VSCRecipe(warm_kl=True),
    "paper": _VSCRecipe(warm_slabs=True),
    "authors": _VSCRecipe(warm_up=0, authors_arithmetic=True),
}


class VSC(NeuralEstimator):
    r"""Variational sparse coding (Tonolini, Jensen & Murray-Smith 2020): each *sample* uses few factors.

    .. math:: q(z_k \mid x) = \gamma_k(x)\, N(\mu_k(x), \sigma_k^2(x)) + (1 - \gamma_k(x))\, \delta_0, \qquad
        p(z) = \sum_u \pi_u\, q(z \mid x_u)

    with learned pseudo-inputs :math:`x_u`, a selector that says which of them a sample is compared with, and
    a penalty that draws their γ towards α. The decoder is dense, hence no ``loadings``: sparsity is in the
    codes.

    Parameters
    ----------
    n_factors : int
    likelihood : str or dict
        As for `SparseVAE`.
    recipe : {"default", "paper", "authors"}
        "default" and "paper" differ in the schedule, see `VAE`, and in the warm-up: Tonolini et al. begin
        with slabs that are pure noise, which shuts most gates for good on the tables of this package's
        results, so the default begins with slabs of their own. "authors" repeats the arithmetic of the
        sparse VAE's published code: a divergence that can be negative, the penalty times ``n_features``
        instead of ``n_factors``, a prior that stays where it starts, no warm-up, gates that stay soft.
    sparsity : float
        α, the share of open gates towards which the prior is drawn.
    n_pseudo_inputs : int
    n_init, hidden_sizes, batch_size, max_epochs, learning_rate
        As for `VAE`.
    validation_fraction, missing, size_factors, device, random_state, verbose
        As for `VAE`.

    Attributes
    ----------
    noise_variance_ : ndarray of shape (n_features,)
    active_factors_ : ndarray of int
        Factors whose posterior mean varies from sample to sample, by more than 0.01 in variance.
    history_ : DataFrame
        A row per epoch; ``kl`` has the penalty towards α in it.
    n_features_in_, feature_names_in_, n_iter_

    Notes
    -----
    `transform` gives the posterior means, γμ where gates are open or shut, `inclusion` the γ. `score` bounds
    log p(x) under the mixture above: the selector counts as the posterior of u, with its divergence from π,
    and gates are open or shut, not relaxed.
    """

    module_: VSCModule
    _module_class: ClassVar[type[LatentModule]] = VSCModule

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        recipe: str = "default",
        sparsity: float = 0.01,
        n_pseudo_inputs: int = 16,
        n_init: int = 1,
        hidden_sizes: tuple[int, ...] = (64, 64),
        batch_size: int | str = "auto",
        max_epochs: int | None = None,
        learning_rate: float = 3e-3,
        validation_fraction: float = 0.1,
        missing: str = "ignorable",
        size_factors: bool = True,
        device: str = "auto",
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.likelihood = likelihood
        self.recipe = recipe
        self.sparsity = sparsity
        self.n_pseudo_inputs = n_pseudo_inputs
        self.n_init = n_init
        self.hidden_sizes = hidden_sizes
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.missing = missing
        self.size_factors = size_factors
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def inclusion(self, X: TableLike) -> pd.DataFrame:
        """Posterior probability of each factor being in use: a row per sample, a column per factor."""
        check_is_fitted(self, "module_")

        def gates(module: LatentModule, batch: Batch) -> Tensor:
            return torch.sigmoid(cast(VSCModule, module).posterior(batch).logits)

        gamma = map_rows(self.module_, self._check_table(X, reset=False), gates)
        return pd.DataFrame(gamma.astype(np.float64), columns=self.get_feature_names_out())

    def score_draws(self) -> Tensor:
        """Fixed draws of the noise behind `score_samples`: (n_draws, n_noise)."""
        return _stratified_draws(self.module_.n_noise)

    def check_parameters(self) -> None:
        """Refuse parameters of the constructor that make no sense."""
        super().check_parameters()
        check_positive("n_pseudo_inputs", self.n_pseudo_inputs, integer=True)
        check_positive("sparsity", self.sparsity)
        if self.sparsity >= 1:
            raise ParameterError(
                f"Expected sparsity to be a share above 0 and below 1; got {self.sparsity!r}. The paper has "
                "0.01."
            )

    def _start_(self, module: LatentModule, data: FitData) -> None:
        super()._start_(module, data)
        if (
            self._own_recipe().authors_arithmetic
        ):  # with γ capped, gates that begin open could not learn to shut
            encoder = cast(VSCModule, module).encoder
            pytorch_layers_([(encoder.gate_weight, encoder.gate_bias)], data.generator)

    def _own_recipe(self) -> _VSCRecipe:
        return _RECIPES.get(get_recipe(self.recipe).name, _RECIPES["default"])

    def _n_warm(self, epochs: int) -> int:
        part = self._own_recipe().warm_up
        return epochs // part if part else 0

    def _n_kl_warm(self, epochs: int) -> int:
        return self._n_warm(epochs) if self._own_recipe().warm_kl else 0

    def _config(self, recipe: Recipe, data: FitData, n_warm: int) -> VSCConfig:
        own = self._own_recipe()
        return VSCConfig(
            n_factors=self.n_factors,
            hidden_sizes=tuple(self.hidden_sizes),
            linear_path=recipe.linear_path,
            input_dropout=data.input_dropout if recipe.input_dropout else 0.0,
            holes=data.source.has_missing,
            sparsity=float(self.sparsity),
            n_pseudo_inputs=self.n_pseudo_inputs,
            warmup_epochs=n_warm,
            warm_slabs=own.warm_slabs,
            authors_arithmetic=own.authors_arithmetic,
        )


def _stratified_draws(n_noise: int) -> Tensor:
    """Standard normal draws, each column even over its quantiles: a gate opens in its share of them."""
    generator = torch.Generator().manual_seed(0)
    order = torch.rand(_DRAWS, n_noise, generator=generator).argsort(0)
    return torch.special.ndtri((order.double() + 0.5) / _DRAWS)
