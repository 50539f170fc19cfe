"""Models that only reconstruct: a likelihood at their reconstruction, without a charge for their codes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import Matrix, State, TableLike
from sparsevae.annotations.missing import has_missing
from sparsevae.annotations.weights import check_weights
from sparsevae.estimators.base import TableEstimator
from sparsevae.estimators.schema import check_state
from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods import Likelihood
from sparsevae.metrics import log_likelihood
from sparsevae.metrics.likelihood import CLOSED_FORMS
from sparsevae.summaries import column_moments, dense_table

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

    def _learn_kinds(self, X: Matrix) -> None:
        super()._learn_kinds(X)
        for part, _ in self.resolved_likelihood().split(X.shape[1]):
            if part.support == "level":
                raise ParameterError(
                    f"Expected a likelihood whose mean is a reconstruction; got {part.name!r}. Use "
                    "SparseVAE, VAE, VSC or OIVAE for levels, or likelihood='gaussian' for numbers."
                )

    @abstractmethod
    def _reconstruct(self, X: Matrix) -> np.ndarray:
        """Expected data of each row of a checked table, in float64: shape (n_samples, n_features)."""

    def reconstruct(self, X: TableLike) -> np.ndarray:
        """Expected data of each row from the row itself, in float64: shape (n_samples, n_features)."""
        check_is_fitted(self, self._fitted)
        return self._reconstruct(self._check_table(X, reset=False))

    def impute(self, X: TableLike, *, observed: ArrayLike | None = None) -> np.ndarray | pd.DataFrame:
        """Fill missing values with the reconstruction of their rows.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        observed : boolean array of shape (n_samples, n_features), optional
            Which cells count.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            A data frame gives a data frame.
        """
        table = self.check_table(X, observed)
        dense = np.asarray(dense_table(table), dtype=np.float64)
        filled = np.where(np.isnan(dense), self._reconstruct(table), dense)
        if isinstance(X, pd.DataFrame):
            return pd.DataFrame(filled, index=X.index, columns=X.columns)
        return filled

    def score_samples(
        self, X: TableLike, *, sample_weight: ArrayLike | None = None, observed: ArrayLike | None = None
    ) -> np.ndarray:
        """Log likelihood of what is observed of each row at its own reconstruction, in the table's units.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        sample_weight : array of shape (n_samples,), optional
            Each value is multiplied by the weight of its row.
        observed : boolean array of shape (n_samples, n_features), optional
            Which cells count.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        checked = self.check_table(X, observed)
        weight = check_weights(sample_weight, checked)
        scores = np.concatenate([self._score_rows(x) for x in _blocks(checked)])
        return scores if weight is None else scores * weight

    def score(
        self,
        X: TableLike,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        observed: ArrayLike | None = None,
    ) -> float:
        """Mean log likelihood per sample at its own reconstruction; higher is better, and not a bound."""
        return super().score(X, y, sample_weight=sample_weight, observed=observed)

    def _score_rows(self, X: Matrix) -> np.ndarray:
        mean = self._reconstruct(X)
        total = np.zeros(X.shape[0])
        for part, columns in self.resolved_likelihood().split(X.shape[1]):
            possible = part.possible(mean[:, columns])
            if part.name in CLOSED_FORMS and not has_missing(X):
                total += log_likelihood(
                    X[:, columns],
                    possible,
                    likelihood=part.name,
                    noise_variance=self.noise_variance_[columns],
                    inverse_dispersion=self.inverse_dispersion_[columns],
                )
            else:
                own = {name: values[columns] for name, values in self.likelihood_parameters_.items()}
                own["noise_variance"] = self.noise_variance_[columns]
                own["log_dispersion"] = np.log(self.inverse_dispersion_[columns])
                total += _log_prob(part, X[:, columns], possible, own)
        return total

    def _learn_spread(self, X: Matrix, weight: np.ndarray | None = None) -> None:
        """Noise variances, and inverse dispersions of counts, from what the reconstruction leaves."""
        n_features = X.shape[1]
        left, sums, squares = np.zeros((3, n_features))  # squared errors; sums of the means and their squares
        n_samples: Any = X.shape[0] if weight is None and not has_missing(X) else np.zeros(n_features)
        begin = 0
        for x in _blocks(X):
            mean = self._reconstruct(x)
            dense = dense_table(x)
            share = 1.0 if weight is None else weight[begin : begin + len(dense), None]
            begin += len(dense)
            if isinstance(n_samples, np.ndarray):
                there = ~np.isnan(dense) * share
                n_samples += there.sum(0)
                left += (np.square(np.nan_to_num(dense) - mean) * there).sum(0)
                sums += (mean * there).sum(0)
                squares += (np.square(mean) * there).sum(0)
            else:
                left += np.square(dense - mean).sum(0)
                sums += mean.sum(0)
                squares += np.square(mean).sum(0)
        spread = {name: np.full(n_features, np.nan) for name in ("noise_variance", "inverse_dispersion")}
        variances = column_moments(X, weight)[1]
        for part, columns in self.resolved_likelihood().split(n_features):
            found = part.parameters_from_residuals(
                left[columns],
                sums[columns],
                squares[columns],
                n_samples[columns] if isinstance(n_samples, np.ndarray) else n_samples,
                variances[columns],
            )
            for name, values in found.items():
                spread.setdefault(name, np.full(n_features, np.nan))[columns] = values
        self.noise_variance_ = spread.pop("noise_variance")
        self.inverse_dispersion_ = spread.pop("inverse_dispersion")
        self.likelihood_parameters_ = spread

    def saved_state(self) -> State:
        """What fit has found."""
        parameters = self.get_params(deep=False)
        return {name: value for name, value in vars(self).items() if name not in parameters}

    def restore_state(self, state: State) -> None:
        """Become the fitted estimator that `saved_state` described."""
        check_state(state, type(self))
        self.__dict__.update(state)


def _log_prob(
    likelihood: Likelihood, X: Matrix, mean: np.ndarray, found: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Log density at given means, of a likelihood without a closed form in numpy."""
    x = torch.as_tensor(dense_table(X), dtype=torch.float64)
    output = likelihood.initial_output(torch.as_tensor(mean, dtype=torch.float64))
    parameters = {k: v.detach().double() for k, v in likelihood.initial_parameters(x.shape[1]).items()}
    parameters |= {k: torch.as_tensor(v) for k, v in found.items() if k in parameters}
    observed = ~x.isnan()
    with torch.no_grad():
        values = likelihood.log_prob(x, output, parameters, observed=None if observed.all() else observed)
    return values.numpy()


def _blocks(X: Matrix) -> Iterator[Matrix]:
    """Rows in blocks whose dense form is small, so that a sparse table is never made dense as a whole."""
    step = max(1, _BLOCK // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield X[start : start + step]
