"""What the VAE and its relatives do alike: random starts, a schedule, early stopping, an end on all rows."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted

from sparsevae.estimators.factor_estimator import FactorEstimator
from sparsevae.fitting import FitData, Recipe, get_recipe
from sparsevae.fitting.initial import pytorch_start_, start_at_means_
from sparsevae.fitting.ladder import patience_for
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.outputs import Outputs, average_slopes, expected_rows, strongest_features
from sparsevae.modules import LatentModule, ModuleConfig
from sparsevae.training import Phase, TrainingLog, train
from sparsevae.training.interrupt import stop_requested
from sparsevae.training.loop import Progress, held_out_bound
from sparsevae.training.progress import progress_bar
from sparsevae.validation import check_positive

__all__ = ["NeuralEstimator"]

_USED = 0.01  # variance of a posterior mean above which the factor says something (Burda et al. 2016)
_ROWS_READ = 2000  # samples behind effects and factors in use


class NeuralEstimator(FactorEstimator):
    """Base of the estimators that train one network from random starts.

    A subclass names its module and the module's settings; ``recipe="default"`` warms up the KL term, lets the
    learning rate fall and ends on all rows, the other recipes do none of that.
    """

    # -- fitting -----------------------------------------------------------------------------------------

    @abstractmethod
    def _config(self, recipe: Recipe, data: FitData, n_warm: int) -> ModuleConfig:
        """Settings of the module; n_warm epochs come before early stopping."""

    def _n_warm(self, epochs: int) -> int:
        """Epochs of the warm-up."""
        return self._n_kl_warm(epochs)

    def _n_kl_warm(self, epochs: int) -> int:
        """Epochs of the warm-up over which the KL term grows to its weight."""
        part = get_recipe(self.recipe).network.kl_warmup
        return max(1, epochs // part) if part else 0

    def check_parameters(self) -> None:
        """Refuse parameters of the constructor that make no sense."""
        super().check_parameters()
        check_positive("n_init", self.n_init, integer=True)
        get_recipe(self.recipe)

    def _fit_module(self, data: FitData) -> tuple[LatentModule, pd.DataFrame]:
        phases, refine = self._schedule(data)
        n_epochs = sum(phase.epochs for phase in phases)
        fits = []
        with progress_bar(self.verbose, self.n_init * n_epochs + sum(p.epochs for p in refine)) as progress:
            for _ in range(self.n_init):
                module = self._new_module(data, n_epochs - phases[-1].epochs)
                log = self._train(module, data, phases, progress)
                fits.append((self._quality(module, data), module, log))
                if stop_requested():
                    break
            _, module, log = max(fits, key=lambda fit: fit[0])
            train(module, data.everything, refine, generator=data.generator, progress=progress, log=log)
        return module, log.frame()

    def _new_module(self, data: FitData, n_warm: int) -> LatentModule:
        recipe = get_recipe(self.recipe)
        config = self._config(recipe, data, n_warm)
        module = self._module_class(data.source.observation, config, generator=data.generator)
        data.calibrate_(module)
        module.to(data.source.device)
        self._start_(module, data)
        return module

    def _start_(self, module: LatentModule, data: FitData) -> None:
        """Begin at the features' means, or where PyTorch's linear layers do."""
        if get_recipe(self.recipe).start_at_means:
            start_at_means_(module, data.feature_mean)
        else:
            pytorch_start_(module, data.generator)

    def _schedule(self, data: FitData) -> tuple[list[Phase], list[Phase]]:
        """Phases on the training rows, and those that follow on all rows."""
        schedule, rate = get_recipe(self.recipe).network, self.learning_rate
        epochs = schedule.lengths.epochs(data.n_steps) if self.max_epochs is None else self.max_epochs
        warm, refined = self._n_warm(epochs), epochs // schedule.refine if schedule.refine else 0
        trained = max(1, epochs - warm - refined)
        phases = []
        if warm:
            kl_warmup = min(warm, self._n_kl_warm(epochs))
            phases = [Phase("warm-up", warm, (rate, rate), kl_warmup=kl_warmup, penalty_warmup=warm)]
        fall = (rate, schedule.last_rate * rate)
        # Whatever the penalty empties may come back while it is at its full strength.
        patience = patience_for(trained, data)
        phases.append(Phase("train", trained, fall, zeros_may_return=True, patience=patience))
        return phases, [Phase("refine", refined, (0.1 * rate, 0.02 * rate))] if refined else []

    def _train(
        self, module: LatentModule, data: FitData, phases: list[Phase], progress: Progress | None
    ) -> TrainingLog:
        return train(
            module,
            data.training,
            phases,
            generator=data.generator,
            validation=data.validation,
            progress=progress,
        )

    def _quality(self, module: LatentModule, data: FitData) -> float:
        """The held-out bound that chooses among several starts."""
        if self.n_init == 1:
            return 0.0
        rows = data.training if data.validation is None else data.validation
        return float(held_out_bound(module, rows).nan_to_num(-torch.inf))

    def _finish(self, codes: Codes, data: FitData) -> None:
        module, observation = self.module_, self.module_.observation
        rows = data.rows_to_read(_ROWS_READ)
        z = torch.as_tensor(codes.means(rows))
        weight = None if data.weight is None else data.weight[torch.as_tensor(rows)]
        noise = module.noise_variance.double() * observation.scale.double().square()
        self.noise_variance_ = np.where(observation.real_columns, noise.numpy(), np.nan)
        self.active_factors_ = np.flatnonzero(self._in_use(z.numpy()))
        [self.effects_] = average_slopes(Outputs(module, z, weight), partial(expected_rows, module))

    def _in_use(self, codes: np.ndarray) -> np.ndarray:
        """Whether each factor's posterior mean varies from sample to sample."""
        return codes.var(0, ddof=1) > _USED

    # -- reading a fit -----------------------------------------------------------------------------------

    def effects(self) -> pd.DataFrame:
        """Average slope of each feature on each active factor, signed, in units of the feature.

        What changes when the factor rises by one, averaged over the samples of the fit.
        """
        check_is_fitted(self, "module_")
        names = self.get_feature_names_out()[self.active_factors_]
        return pd.DataFrame(self.effects_[:, self.active_factors_], index=self.feature_names(), columns=names)

    def top_features(self, n: int = 10) -> pd.DataFrame:
        """The features that change most with each active factor, in units of their own standard deviation.

        Counts and yes/no answers count by the change of their expected value. Columns: factor, rank, feature,
        effect, and loading where the method has loadings.
        """
        check_is_fitted(self, "module_")
        check_positive("n", n, integer=True)
        active = self.active_factors_
        values = {"effect": self.effects_[:, active]}
        if hasattr(self, "mask_"):
            values["loading"] = self.mask_[:, active]
        scale = self.module_.observation.scale.numpy()[:, None]
        factors = self.get_feature_names_out()[active]
        return strongest_features(
            np.abs(values["effect"]) / scale, n, factors, self.feature_names(), **values
        )
