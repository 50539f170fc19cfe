"""What the VAE and its relatives do alike: random starts, a schedule, early stopping, an end on all rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sparsevae.estimators.base import FactorEstimator
from sparsevae.estimators.preparing import FitData
from sparsevae.estimators.reading import Outputs, average_slopes, strongest_features
from sparsevae.modules import FactorModule
from sparsevae.training import Phase, TrainingLog, train
from sparsevae.training.initial import initial_outputs_, usual_start_
from sparsevae.training.interrupt import stop_requested
from sparsevae.training.loop import Progress, held_out_bound
from sparsevae.training.progress import progress_bar
from sparsevae.validation import check_choice, check_positive

__all__ = ["NeuralEstimator"]

_RECIPES = ("default", "paper", "authors")
_STEPS = 3000  # gradient steps of a fit by default
_EPOCHS = (60, 300)
_USED = (
    0.01  # variance of a factor's posterior mean above which the factor says something (Burda et al. 2016)
)
_ROWS_READ = 2000  # samples behind effects and factors in use


class NeuralEstimator(FactorEstimator):
    """Base of the estimators that train one network from random starts.

    A subclass names its module and the module's options; ``recipe="default"`` warms up the KL term, lets the
    learning rate fall and ends on all rows, the literal recipes do none of that.
    """

    _phase: ClassVar[str] = "train"  # what the history calls the main phase

    # -- fitting -----------------------------------------------------------------------------------------

    @abstractmethod
    def _module_options(self, data: FitData, n_warm: int) -> dict[str, Any]:
        """Arguments of the module that are its own; n_warm epochs come before early stopping."""

    def _n_warm(self, epochs: int) -> int:
        """Epochs of the warm-up."""
        return self._n_kl_warm(epochs)

    def _n_kl_warm(self, epochs: int) -> int:
        """Epochs of the warm-up over which the KL term grows to its weight."""
        return max(1, epochs // 16) if self.recipe == "default" else 0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("n_init", self.n_init, integer=True)
        check_choice("recipe", self.recipe, _RECIPES)

    def _fit_module(self, data: FitData) -> tuple[FactorModule, pd.DataFrame]:
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

    def _new_module(self, data: FitData, n_warm: int) -> FactorModule:
        module = self._module_class(
            data.table.observation,
            self.n_factors,
            tuple(self.hidden_sizes),
            noise_scale=data.noise_scale,
            linear_path=self.recipe == "default",
            input_dropout=data.input_dropout if self.recipe == "default" else 0.0,
            generator=data.generator,
            **self._module_options(data, n_warm),
        ).to(data.table.device)
        self._start_(module, data)
        return module

    def _start_(self, module: FactorModule, data: FitData) -> None:
        """Begin at the features' means; a literal recipe begins where PyTorch's linear layers do."""
        if self.recipe == "default":
            initial_outputs_(module, data.feature_mean)
        else:
            usual_start_(module, data.generator)

    def _schedule(self, data: FitData) -> tuple[list[Phase], list[Phase]]:
        """Phases on the training rows, and those that follow on all rows."""
        epochs, rate = self.max_epochs, self.learning_rate
        if epochs is None:
            epochs = int(np.clip(math.ceil(_STEPS / data.n_steps), *_EPOCHS))
        literal = self.recipe != "default"
        warm, refined = self._n_warm(epochs), 0 if literal else epochs // 6
        trained = max(1, epochs - warm - refined)
        phases = []
        if warm:
            kl_warmup = min(warm, self._n_kl_warm(epochs))
            phases = [Phase("warm-up", warm, (rate, rate), kl_warmup=kl_warmup, penalty_warmup=warm)]
        fall = (rate, rate if literal else 0.1 * rate)
        phases.append(Phase(self._phase, trained, fall, patience=_patience(trained, data)))
        return phases, [Phase("refine", refined, (0.1 * rate, 0.02 * rate))] if refined else []

    def _train(
        self, module: FactorModule, data: FitData, phases: list[Phase], progress: Progress | None
    ) -> TrainingLog:
        return train(
            module,
            data.training,
            phases,
            generator=data.generator,
            validation=data.validation,
            progress=progress,
        )

    def _quality(self, module: FactorModule, data: FitData) -> float:
        """The held-out bound that chooses among several starts."""
        if self.n_init == 1:
            return 0.0
        rows = data.training if data.validation is None else data.validation
        return float(held_out_bound(module, rows).nan_to_num(-torch.inf))

    def _finish(self, module: FactorModule, history: pd.DataFrame, data: FitData) -> None:
        super()._finish(module, history, data)
        observation = module.observation
        z, _ = module.encode(data.table.rows(data.everything.rows[:_ROWS_READ]).cpu())
        noise = module.noise_variance.numpy() * observation.scale.numpy() ** 2
        self.noise_variance_ = np.where(observation.real_columns, noise, np.nan).astype(np.float64)
        self.active_factors_ = np.flatnonzero(self._in_use(module, z))
        [self.effects_] = average_slopes(Outputs(module, z), self._expected_of)

    def _in_use(self, module: FactorModule, z: Tensor) -> np.ndarray:
        """Whether each factor's posterior mean varies from sample to sample."""
        return (z.var(0) > _USED).numpy()

    # -- reading a fit -----------------------------------------------------------------------------------

    def effects(self) -> pd.DataFrame:
        """Average slope of each feature on each active factor, signed, in units of the feature.

        What changes when the factor rises by one, averaged over the samples of the fit.
        """
        check_is_fitted(self, "module_")
        names = self.get_feature_names_out()[self.active_factors_]
        return pd.DataFrame(
            self.effects_[:, self.active_factors_], index=self._feature_names(), columns=names
        )

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
            np.abs(values["effect"]) / scale, n, factors, self._feature_names(), **values
        )


def _patience(epochs: int, data: FitData) -> int:
    return max(10, epochs // 5) if data.validation is not None else 0
