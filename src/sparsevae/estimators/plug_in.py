"""Models that only reconstruct: a likelihood at their reconstruction, without a charge for their codes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import Matrix, TableLike
from sparsevae.estimators.base import TableEstimator
from sparsevae.estimators.schema import check_state
from sparsevae.likelihoods import Likelihood
from sparsevae.metrics import log_likelihood
from sparsevae.metrics.likelihood import CLOSED_FORMS
from sparsevae.validation import column_moments

__all__ = ["PlugInEstimator"]

_BLOCK = 1 << 22  # entries that are dense at a time


class PlugInEstimator(TableEstimator):
    """Base of estimators without a distribution of their own.

    Attributes
    ----------
    noise_variance_ : ndarray of shape (n_features,)
        σ² of real-valued features under the noise prior of the other estimators, NaN for others.
    inverse_dispersion_ : ndarray of shape (n_features,)
        Of overdispersed counts, by moments; NaN for others.
    likelihood_parameters_ : dict
        Further parameters of likelihoods that have any, by moments.
    """

    @abstractmethod
    def _reconstruct(self, X: Matrix) -> np.ndarray:
        """Expected data of each row of a checked table, in float64: shape (n_samples, n_features)."""

    def reconstruct(self, X: TableLike) -> np.ndarray:
        """Expected data of each row from the row itself, in float64: shape (n_samples, n_features)."""
        check_is_fitted(self, self._fitted)
        return self._reconstruct(self._check_table(X, reset=False))

    def score_samples(self, X: TableLike) -> np.ndarray:
        """Log likelihood of each row at its own reconstruction, in the units of the table.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, self._fitted)
        checked = self._check_table(X, reset=False)
        return np.concatenate([self._score_rows(x) for x in _blocks(checked)])

    def score(self, X: TableLike, y: object = None) -> float:
        """Mean log likelihood per sample at its own reconstruction; higher is better, and not a bound."""
        return super().score(X, y)

    def _score_rows(self, X: Matrix) -> np.ndarray:
        mean = self._reconstruct(X)
        total = np.zeros(X.shape[0])
        for part, columns in self.resolved_likelihood().split(X.shape[1]):
            possible = part.possible(mean[:, columns])
            if part.name in CLOSED_FORMS:
                total += log_likelihood(
                    X[:, columns],
                    possible,
                    likelihood=part.name,
                    noise_variance=self.noise_variance_[columns],
                    inverse_dispersion=self.inverse_dispersion_[columns],
                )
            else:
                own = {name: values[columns] for name, values in self.likelihood_parameters_.items()}
                total += _log_prob(part, X[:, columns], possible, own)
        return total

    def _learn_spread(self, X: Matrix) -> None:
        """Noise variances, and inverse dispersions of counts, from what the reconstruction leaves."""
        n_samples, n_features = X.shape
        left, sums, squares = np.zeros((3, n_features))  # squared errors; sums of the means and their squares
        for x in _blocks(X):
            mean = self._reconstruct(x)
            left += np.square((x.toarray() if hasattr(x, "toarray") else x) - mean).sum(0)
            sums += mean.sum(0)
            squares += np.square(mean).sum(0)
        spread = {name: np.full(n_features, np.nan) for name in ("noise_variance", "inverse_dispersion")}
        variances = column_moments(X)[1]
        for part, columns in self.resolved_likelihood().split(n_features):
            found = part.parameters_from_residuals(
                left[columns], sums[columns], squares[columns], n_samples, variances[columns]
            )
            for name, values in found.items():
                spread.setdefault(name, np.full(n_features, np.nan))[columns] = values
        self.noise_variance_ = spread.pop("noise_variance")
        self.inverse_dispersion_ = spread.pop("inverse_dispersion")
        self.likelihood_parameters_ = spread

    def saved_state(self) -> dict[str, Any]:
        """What fit has found."""
        parameters = self.get_params(deep=False)
        return {name: value for name, value in vars(self).items() if name not in parameters}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Become the fitted estimator that `saved_state` described."""
        check_state(state, type(self))
        self.__dict__.update(state)


def _log_prob(
    likelihood: Likelihood, X: Matrix, mean: np.ndarray, found: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Log density at given means, of a likelihood without a closed form in numpy."""
    x = torch.as_tensor(X.toarray() if hasattr(X, "toarray") else np.asarray(X), dtype=torch.float64)
    output = likelihood.initial_output(torch.as_tensor(mean, dtype=torch.float64))
    parameters = {k: v.detach().double() for k, v in likelihood.initial_parameters(x.shape[1]).items()}
    parameters |= {k: torch.as_tensor(v) for k, v in found.items() if k in parameters}
    with torch.no_grad():
        values = likelihood.log_prob(x, output, parameters)
    return values.numpy()


def _blocks(X: Matrix) -> Iterator[Matrix]:
    """Rows in blocks whose dense form is small, so that a sparse table is never made dense as a whole."""
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]
