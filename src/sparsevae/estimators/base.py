"""What every estimator of the package does alike: checks, units, transform, score, sample, names, save and load."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from sparsevae.exceptions import DataError, DataWarning
from sparsevae.likelihoods import Likelihood, get_likelihood
from sparsevae.modules import FactorModule, Observation
from sparsevae.persistence import load_estimator, save_estimator
from sparsevae.priors import calibrate_noise_scale
from sparsevae.training import Batches, Table
from sparsevae.validation import (
    check_columns_numeric,
    check_fraction,
    check_positive,
    check_support,
    column_moments,
    warn_about_rows,
)

__all__ = ["FactorEstimator", "FitData"]

_DRAWS = 16  # fixed draws of the factors behind score_samples
_ROWS_AT_ONCE = 4096


@dataclass
class FitData:
    """A checked table, cut into training and validation rows, with the randomness of one fit."""

    table: Table
    training: Batches
    validation: Batches | None
    everything: Batches
    feature_mean: Tensor
    noise_scale: Tensor
    constant: np.ndarray
    generator: torch.Generator
    random_state: np.random.RandomState
    batch_size: int

    @property
    def n_steps(self) -> int:
        """Gradient steps in an epoch."""
        return self.training.n_batches


class FactorEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators that fit a `FactorModule`; subclasses say how (`_fit_module`)."""

    module_: FactorModule

    # -- fitting -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        X = self._check_table(X, reset=True)
        data = self._prepare(X)
        with torch.random.fork_rng(devices=[]):
            module, history = self._fit_module(data)
        self._finish(module, history, data)
        return self

    @abstractmethod
    def _fit_module(self, data: FitData) -> tuple[FactorModule, pd.DataFrame]:
        """A fitted module without replicates, and its history."""

    def _check_parameters(self) -> None:
        check_positive("n_factors", self.n_factors, integer=True)
        for size in self.hidden_sizes:
            check_positive("hidden_sizes", size, integer=True)
        check_positive("batch_size", self.batch_size, integer=True)
        if self.max_epochs is not None:
            check_positive("max_epochs", self.max_epochs, integer=True)
        check_positive("learning_rate", self.learning_rate)
        check_fraction("validation_fraction", self.validation_fraction)

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        check_columns_numeric(X)
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
        )
        likelihood = self._likelihood(X.shape[1])
        for part, columns in likelihood.split(X.shape[1]):
            check_support(X, part.support, columns, part.name)
        return X

    def _likelihood(self, n_features: int) -> Likelihood:
        likelihood = self.likelihood
        if isinstance(likelihood, dict) and hasattr(self, "feature_names_in_"):
            position = {name: j for j, name in enumerate(self.feature_names_in_)}
            likelihood = {
                family: [position.get(column, column) for column in np.atleast_1d(columns).tolist()]
                for family, columns in likelihood.items()
            }
        return get_likelihood(likelihood, n_features)

    def _prepare(self, X: Any) -> FitData:
        random_state = check_random_state(self.random_state)
        generator = torch.Generator().manual_seed(int(random_state.randint(2**31 - 1)))
        likelihood = self._likelihood(X.shape[1])
        keep = np.ones(X.shape[0], dtype=bool)
        if all(part.support == "count" for part, _ in likelihood.split(X.shape[1])):
            keep = warn_about_rows(X)
            if keep.sum() < 2:
                raise DataError(
                    f"Expected at least 2 rows with counts; got {int(keep.sum())}. Check that the table is not empty."
                )
        kept = np.flatnonzero(keep)
        mean, variance = column_moments(X[kept] if len(kept) < len(keep) else X)
        constant = variance <= 1e-12 * np.maximum(1.0, mean**2)
        if constant.any():
            names = ", ".join(str(self._feature_names()[j]) for j in np.flatnonzero(constant)[:5])
            warnings.warn(
                f"{int(constant.sum())} of {len(constant)} features are constant ({names}{' ...' if constant.sum() > 5 else ''}): "
                "their rows of the mask stay empty.",
                DataWarning,
                stacklevel=3,
            )
        observation = self._observe(X, kept, likelihood, mean, variance, constant)
        device = self._device()
        table = Table(X, observation.to(device), device)
        rows = torch.as_tensor(random_state.permutation(kept))
        n_validation = min(round(self.validation_fraction * len(kept)), len(kept) - 1)
        batch = lambda r: Batches(table, r, self.batch_size, generator)  # noqa: E731
        real = observation.real_columns
        model_mean = np.where(real, 0.0, mean)
        if observation.size_columns.any():
            model_mean = np.where(observation.size_columns, mean, model_mean)
        noise_scale = np.full(X.shape[1], 0.05)
        if real.any() and not constant[real].all():
            xi = calibrate_noise_scale(variance[real & ~constant])
            noise_scale = np.where(real, xi / observation.scale.cpu().numpy() ** 2, noise_scale)
        return FitData(
            table=table,
            training=batch(rows[n_validation:]),
            validation=batch(rows[:n_validation]) if n_validation else None,
            everything=batch(rows),
            feature_mean=torch.as_tensor(model_mean, dtype=torch.float32, device=device),
            noise_scale=torch.as_tensor(noise_scale, dtype=torch.float32, device=device),
            constant=constant,
            generator=generator,
            random_state=random_state,
            batch_size=self.batch_size,
        )

    def _observe(
        self,
        X: Any,
        kept: np.ndarray,
        likelihood: Likelihood,
        mean: np.ndarray,
        variance: np.ndarray,
        constant: np.ndarray,
    ) -> Observation:
        n_features = X.shape[1]
        deviation = np.where(constant, 1.0, np.sqrt(variance))
        real = np.zeros(n_features, dtype=bool)
        size = np.zeros(n_features, dtype=bool)
        for part, columns in likelihood.split(n_features):
            real[columns] = part.support == "real"
            size[columns] = part.uses_size
        mean_total = float(mean[size].sum()) if size.any() else 1.0
        plain = Observation(
            likelihood,
            np.where(real, mean, 0.0),
            np.where(real, deviation, 1.0),
            np.zeros(n_features),
            np.ones(n_features),
            max(mean_total, 1e-12),
        )
        inputs = _encoder_moments(X, kept, plain)
        plain.input_location = torch.as_tensor(inputs[0], dtype=torch.float32)
        plain.input_scale = torch.as_tensor(
            np.where(inputs[1] > 1e-12, np.sqrt(inputs[1]), 1.0), dtype=torch.float32
        )
        return plain

    def _device(self) -> torch.device:
        device = getattr(self, "device", "auto")
        if device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(device)

    def _finish(self, module: FactorModule, history: pd.DataFrame, data: FitData) -> None:
        self.module_ = module.cpu().eval()
        self.module_.requires_grad_(False)
        self.history_ = history
        self.n_iter_ = len(history)
        self._n_features_out = self.n_factors

    # -- using a fit -------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Posterior means of the factors; columns of inactive factors are exactly zero.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_factors)
        """
        check_is_fitted(self)
        X = self._check_table(X, reset=False)
        Z = self._map_rows(X, lambda x: self.module_.encode(x)[0])
        empty = self._empty_rows(X)
        if empty is not None:
            Z[empty] = 0.0
        return Z.astype(X.dtype, copy=False)

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Expected data given factors, in the units of the table fitted.

        Parameters
        ----------
        Z : array of shape (n_samples, n_factors)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            For counts, of a row of average size.
        """
        check_is_fitted(self)
        Z = np.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != self.n_factors:
            raise DataError(
                f"Expected factors of shape (n_samples, {self.n_factors}), as transform returns; got {Z.shape}."
            )
        dtype = Z.dtype if Z.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        blocks = [self._expected(torch.as_tensor(block, dtype=torch.float32)) for block in _blocks(Z)]
        return torch.cat(blocks).numpy().astype(dtype, copy=False)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean ELBO per sample in the units of the table; higher is better."""
        return float(self.score_samples(X).mean())

    def score_samples(self, X: Any) -> np.ndarray:
        """ELBO of each row, at one fixed set of draws for all rows: a subset of rows gets the same values."""
        check_is_fitted(self)
        X = self._check_table(X, reset=False)
        module = self.module_
        generator = torch.Generator().manual_seed(0)
        half = torch.randn(_DRAWS // 2, module.n_factors, generator=generator)
        draws = torch.cat([half, -half])  # antithetic: the linear part of the integrand is exact

        def bound(x: Tensor) -> Tensor:
            mean, log_variance = module.encode(x)
            deviation = torch.exp(0.5 * log_variance)
            likelihood = sum(module.log_likelihood(x, module.decode(mean + deviation * draw)) for draw in draws)
            return likelihood / _DRAWS - module.kl(mean, log_variance)

        values = self._map_rows(X, bound)
        return values.astype(np.float64) + float(module.observation.log_jacobian())

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> np.ndarray:
        """Draw rows from the fitted model.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            For counts, rows of average size.
        """
        check_is_fitted(self)
        check_positive("n_samples", n_samples, integer=True)
        module, observation = self.module_, self.module_.observation
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        factor = torch.linalg.cholesky(module.factor_covariance)
        z = torch.randn(n_samples, module.n_factors, generator=generator) @ factor.mT
        with torch.no_grad():
            blocks = []
            for block in z.split(_ROWS_AT_ONCE):
                drawn = observation.likelihood.sample(
                    module.decode(block),
                    dispersion=module.dispersion(),
                    size=self._average_size(len(block)),
                    total=self._average_total(len(block)),
                    generator=generator,
                )
                blocks.append(observation.to_user_units(drawn))
        return torch.cat(blocks).numpy().astype(np.float64)

    def save(self, path: str | Path) -> Path:
        """Write the fitted estimator to a directory: safetensors and JSON, no pickle."""
        check_is_fitted(self)
        return save_estimator(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator that `save` wrote."""
        return load_estimator(cls, path)

    # -- helpers -----------------------------------------------------------------------------------------------

    def _expected(self, z: Tensor) -> Tensor:
        observation = self.module_.observation
        with torch.no_grad():
            mean = observation.likelihood.mean(
                self.module_.decode(z), size=self._average_size(len(z)), total=self._average_total(len(z))
            )
        return observation.to_user_units(mean)

    def _average_size(self, n_samples: int) -> Tensor | None:
        return torch.ones(n_samples) if self.module_.observation.size_columns.any() else None

    def _average_total(self, n_samples: int) -> Tensor | None:
        if not self.module_.observation.total_columns.any():
            return None
        return torch.full((n_samples,), float(round(self._mean_total())))

    def _mean_total(self) -> float:
        return float(getattr(self, "mean_total_", 1.0))

    def _map_rows(self, X: Any, function: Any) -> np.ndarray:
        table = Table(X, self.module_.observation)
        with torch.inference_mode():
            parts = [function(table.rows(rows)) for rows in torch.arange(X.shape[0]).split(_ROWS_AT_ONCE)]
        return torch.cat(parts).numpy().copy()

    def _empty_rows(self, X: Any) -> np.ndarray | None:
        if not self.module_.observation.count_columns.all():
            return None
        return np.asarray(X.sum(axis=1)).ravel() == 0

    def _feature_names(self) -> np.ndarray:
        if hasattr(self, "feature_names_in_"):
            return np.asarray(self.feature_names_in_, dtype=object)
        return np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        counts = self.likelihood in ("multinomial", "poisson", "negative_binomial", "bernoulli")
        tags.input_tags.positive_only = isinstance(self.likelihood, str) and counts
        tags.non_deterministic = False
        return tags


def _encoder_moments(X: Any, kept: np.ndarray, observation: Observation) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the encoder's inputs before their standardisation, in one pass over the rows."""
    table = Table(X, observation)
    total = np.zeros(X.shape[1])
    square = np.zeros(X.shape[1])
    for rows in torch.as_tensor(kept).split(_ROWS_AT_ONCE):
        inputs = observation.encoder_input(table.rows(rows)).double().numpy()
        total += inputs.sum(0)
        square += np.square(inputs).sum(0)
    mean = total / len(kept)
    return mean, np.maximum(square / len(kept) - mean**2, 0.0)


def _blocks(Z: np.ndarray) -> list[np.ndarray]:
    return np.array_split(Z, max(1, math.ceil(len(Z) / _ROWS_AT_ONCE)))


