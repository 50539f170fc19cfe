"""Models that only reconstruct: a likelihood at their reconstruction, without a charge for their codes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from sparsevae.estimators.base import TableEstimator
from sparsevae.metrics import log_likelihood
from sparsevae.priors import calibrate_noise_scale, map_noise_variance
from sparsevae.validation import column_moments

__all__ = ["PlugInEstimator"]

_NU = 3.0  # degrees of freedom of the noise prior, as for the other estimators
_BLOCK = 1 << 22  # entries that are dense at a time
_FLOOR = 1e-6  # smallest share of a word, rate or probability: the released code's
_DISPERSION = (1e-3, 1e6)  # range of the inverse dispersion; above it a count is Poisson


class PlugInEstimator(TableEstimator):
    """Base of estimators without a distribution of their own.

    Attributes
    ----------
    noise_variance_ : ndarray of shape (n_features,)
        σ² of real-valued features under the noise prior of the other estimators, NaN for others.
    inverse_dispersion_ : ndarray of shape (n_features,)
        Of overdispersed counts, by moments; NaN for others.
    """

    @abstractmethod
    def _reconstruct(self, X: Any) -> np.ndarray:
        """Expected data of each row from the row itself, in float64: shape (n_samples, n_features)."""

    def score_samples(self, X: Any) -> np.ndarray:
        """Log likelihood of each row at its own reconstruction, in the units of the table.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, self._fitted)
        X = self._check_table(X, reset=False)
        return np.concatenate([self._score_rows(x) for x in _blocks(X)])

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log likelihood per sample at its own reconstruction; higher is better, and not a bound."""
        return super().score(X, y)

    def _score_rows(self, X: Any) -> np.ndarray:
        mean = self._reconstruct(X)
        total = np.zeros(X.shape[0])
        for part, columns in self._likelihood().split(X.shape[1]):
            total += log_likelihood(
                X[:, columns],
                _possible(mean[:, columns], part.name),
                likelihood=part.name,
                noise_variance=self.noise_variance_[columns],
                inverse_dispersion=self.inverse_dispersion_[columns],
            )
        return total

    def _learn_spread(self, X: Any) -> None:
        """Noise variances, and inverse dispersions of counts, from what the reconstruction leaves."""
        n_samples, n_features = X.shape
        left, sums, squares = np.zeros((3, n_features))  # squared errors; sums of the means and their squares
        for x in _blocks(X):
            mean = self._reconstruct(x)
            left += np.square((x.toarray() if hasattr(x, "toarray") else x) - mean).sum(0)
            sums += mean.sum(0)
            squares += np.square(mean).sum(0)
        self.noise_variance_ = np.full(n_features, np.nan)
        self.inverse_dispersion_ = np.full(n_features, np.nan)
        variances = column_moments(X)[1]
        for part, columns in self._likelihood().split(n_features):
            if part.support == "real":
                xi = calibrate_noise_scale(variances[columns]) if variances[columns].any() else 1.0
                residual = torch.as_tensor(left[columns])
                self.noise_variance_[columns] = map_noise_variance(residual, n_samples, _NU, xi).numpy()
            elif part.has_dispersion:
                # Var(x) = m + m²/r.
                excess = np.maximum(left[columns] - sums[columns], 0.0)
                ratio = np.full(len(columns), np.inf)
                np.divide(squares[columns], excess, out=ratio, where=excess > 0)
                self.inverse_dispersion_[columns] = np.clip(ratio, *_DISPERSION)

    def _state(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        return {name: value for name, value in vars(self).items() if name not in parameters}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _blocks(X: Any) -> Iterator[Any]:
    """Rows in blocks whose dense form is small, so that a sparse table is never made dense as a whole."""
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]


def _possible(mean: np.ndarray, likelihood: str) -> np.ndarray:
    """Means that leave nothing impossible: zeros lifted to the floor, probabilities below one."""
    if likelihood == "gaussian":
        return mean
    if likelihood == "multinomial":
        weights = np.maximum(mean, 0.0)
        sums = weights.sum(1, keepdims=True)
        return np.where(sums > 0, weights / np.where(sums > 0, sums, 1.0), 1.0 / mean.shape[1]) + _FLOOR
    return np.clip(mean, _FLOOR, 1.0 - _FLOOR if likelihood == "bernoulli" else None)
