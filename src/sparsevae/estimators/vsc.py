"""Variational sparse coding as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sparsevae.estimators.evaluating import map_rows
from sparsevae.estimators.neural import NeuralEstimator
from sparsevae.estimators.preparing import FitData
from sparsevae.exceptions import ParameterError
from sparsevae.modules import FactorModule
from sparsevae.modules.vsc import VSCModule
from sparsevae.training.initial import usual_layers_
from sparsevae.validation import check_positive

__all__ = ["VSC"]

_DRAWS = 64  # behind score_samples


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
        sparse VAE's released code: a divergence that can be negative, the penalty times ``n_features``
        instead of ``n_factors``, a prior that stays where it starts, no warm-up, gates that stay soft.
    sparsity : float
        α, the share of open gates towards which the prior is drawn.
    n_pseudo_inputs : int
    n_init, hidden_sizes, batch_size, max_epochs, learning_rate
        As for `VAE`.
    validation_fraction, device, random_state, verbose
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
    _module_class = VSCModule

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, Any] = "gaussian",
        recipe: str = "default",
        sparsity: float = 0.01,
        n_pseudo_inputs: int = 16,
        n_init: int = 1,
        hidden_sizes: tuple[int, ...] = (64, 64),
        batch_size: int = 128,
        max_epochs: int | None = None,
        learning_rate: float = 3e-3,
        validation_fraction: float = 0.1,
        device: str = "auto",
        random_state: Any = None,
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
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def inclusion(self, X: Any) -> pd.DataFrame:
        """Posterior probability of each factor being in use: a row per sample, a column per factor."""
        check_is_fitted(self, "module_")
        X = self._check_table(X, reset=False)

        def gates(module: FactorModule, x: Tensor) -> Tensor:
            return torch.sigmoid(cast(VSCModule, module).posterior(x).logits)

        gamma = map_rows(self.module_, X, gates)
        return pd.DataFrame(gamma.astype(np.float64), columns=self.get_feature_names_out())

    def _draws(self) -> Tensor:
        return _stratified_draws(self.module_.n_noise)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("n_pseudo_inputs", self.n_pseudo_inputs, integer=True)
        check_positive("sparsity", self.sparsity)
        if self.sparsity >= 1:
            raise ParameterError(
                f"Expected sparsity to be a share above 0 and below 1; got {self.sparsity!r}. The paper has "
                "0.01."
            )

    def _start_(self, module: FactorModule, data: FitData) -> None:
        super()._start_(module, data)
        if self.recipe == "authors":  # with γ capped at one, gates that begin open could not learn to shut
            encoder = cast(VSCModule, module).encoder
            usual_layers_([(encoder.gate_weight, encoder.gate_bias)], data.generator)

    def _n_warm(self, epochs: int) -> int:
        return 0 if self.recipe == "authors" else epochs // 3

    def _n_kl_warm(self, epochs: int) -> int:
        # As long as the gates are soft: the divergence would shut those that have not found their use yet.
        return epochs // 3 if self.recipe == "default" else 0

    def _module_options(self, data: FitData, n_warm: int) -> dict[str, Any]:
        return {
            "sparsity": float(self.sparsity),
            "n_pseudo_inputs": self.n_pseudo_inputs,
            "warmup_epochs": n_warm,
            "warm_slabs": self.recipe == "paper",
            "released": self.recipe == "authors",
        }


def _stratified_draws(n_noise: int) -> Tensor:
    """Standard normal draws, each column even over its quantiles: a gate opens in its share of them."""
    generator = torch.Generator().manual_seed(0)
    order = torch.rand(_DRAWS, n_noise, generator=generator).argsort(0)
    return torch.special.ndtri((order.double() + 0.5) / _DRAWS)
