"""PCA, factor analysis, LDA and EASE with just enough of an interface to stand in a comparison."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from scipy.special import digamma, gammaln
from sklearn.base import TransformerMixin
from sklearn.decomposition import PCA, FactorAnalysis, LatentDirichletAllocation
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import Matrix, TableLike
from sparsevae.estimators.plug_in import PlugInEstimator
from sparsevae.exceptions import DataError
from sparsevae.metrics import log_likelihood
from sparsevae.principal import RandomState
from sparsevae.summaries import column_moments, constant_columns, dense_table, row_totals
from sparsevae.validation import check_positive

__all__ = ["EASE", "FactorAnalysisAdapter", "LDAAdapter", "PCAAdapter"]


class _Adapter(PlugInEstimator):
    """A model of another library; a subclass makes it and reconstructs with it."""

    _fitted: ClassVar[str] = "model_"

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        random_state: RandomState = None,
    ) -> None:
        self.n_factors = n_factors
        self.likelihood = likelihood
        self.random_state = random_state

    def fit(self, X: TableLike, y: object = None) -> Self:
        """Fit the model to a table."""
        check_positive("n_factors", self.n_factors, integer=True)
        X = self._check_table(X, reset=True)
        self.model_ = self._make(min(self.n_factors, *X.shape)).fit(self._input(X))
        self._n_features_out = min(self.n_factors, *X.shape)
        self.active_factors_ = np.arange(self._n_features_out)
        self._learn_spread(X)
        return self

    def transform(self, X: TableLike) -> np.ndarray:
        """Codes of each row: shape (n_samples, n_factors)."""
        check_is_fitted(self, self._fitted)
        return self.model_.transform(self._input(self._check_table(X, reset=False)))

    def log_evidence(self, X: TableLike) -> np.ndarray | None:
        """Log p(x) of each row, or a bound on it; None where the likelihood asked for is not the model's."""
        return None

    @abstractmethod
    def _make(self, n_factors: int) -> TransformerMixin:
        """The other library's model, not yet fitted; a subclass with a `fit` of its own needs none."""

    def _input(self, X: Matrix) -> Matrix:
        return X

    def _seed(self) -> int | np.random.RandomState:
        # None means numpy's global generator to scikit-learn, which is not ours to move.
        return np.random.RandomState() if self.random_state is None else self.random_state


class _Gaussian(_Adapter):
    """A linear model of dense tables with normal noise, which knows log p(x).

    With ``standardise``, features are taken in units of their standard deviation, so that none rules the
    factors by its scale alone; what comes out is in the table's units either way.
    """

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        standardise: bool = False,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(n_factors, likelihood=likelihood, random_state=random_state)
        self.standardise = standardise

    def fit(self, X: TableLike, y: object = None) -> Self:
        """Fit the model to a table."""
        mean, variance = column_moments(self._check_table(X, reset=True))
        # Constant columns stay as they are: their deviations are rounding errors.
        varying = self.standardise & ~constant_columns(mean, variance)
        self.scale_ = np.where(varying, np.sqrt(variance), 1.0)
        return super().fit(X, y)

    def log_evidence(self, X: TableLike) -> np.ndarray | None:
        if self.likelihood != "gaussian":
            return None
        X = self._check_table(X, reset=False)
        return self.model_.score_samples(self._input(X)) - np.log(self.scale_).sum()

    def _input(self, X: Matrix) -> np.ndarray:
        dense = dense_table(X)
        return (dense / self.scale_).astype(dense.dtype, copy=False) if self.standardise else dense

    def _output(self, mean: np.ndarray) -> np.ndarray:
        return mean.astype(np.float64) * self.scale_


class PCAAdapter(_Gaussian):
    """Principal component analysis; its likelihood is that of probabilistic PCA."""

    def _make(self, n_factors: int) -> PCA:
        return PCA(n_factors, random_state=self._seed())

    def _reconstruct(self, X: Matrix) -> np.ndarray:
        return self._output(self.model_.inverse_transform(self.model_.transform(self._input(X))))


class FactorAnalysisAdapter(_Gaussian):
    """Gaussian factor analysis by maximum likelihood."""

    def _make(self, n_factors: int) -> FactorAnalysis:
        return FactorAnalysis(n_factors, random_state=self._seed())

    def _reconstruct(self, X: Matrix) -> np.ndarray:
        codes = self.model_.transform(self._input(X))
        return self._output(codes @ self.model_.components_ + self.model_.mean_)


class LDAAdapter(_Adapter):
    """Latent Dirichlet allocation, of counts."""

    def log_evidence(self, X: TableLike) -> np.ndarray | None:
        r"""The ELBO of each row, with the topics for parameters, as a decoder's weights are.

        .. math:: \log\binom{n_i}{x_i} + \sum_j x_{ij} \log \sum_k e^{E_q \log\theta_{ik}} \beta_{kj}
            - D_{KL}[q(\theta_i) \,\|\, \mathrm{Dir}(\alpha)], \qquad q(\theta_i) = \mathrm{Dir}(\gamma_i)
        """
        if self.likelihood != "multinomial":
            return None
        X = self._check_table(X, reset=False)
        gamma = self.model_.transform(X, normalize=False).astype(np.float64)
        log_theta = digamma(gamma) - digamma(gamma.sum(1, keepdims=True))
        weights = np.exp(log_theta) @ self._topics()  # which the likelihood makes to sum to one
        fit = log_likelihood(X, weights, likelihood="multinomial") + row_totals(X) * np.log(weights.sum(1))
        alpha = np.full_like(gamma, self.model_.doc_topic_prior_)
        return fit - _log_beta(alpha) + _log_beta(gamma) - ((gamma - alpha) * log_theta).sum(1)

    def _make(self, n_factors: int) -> LatentDirichletAllocation:
        return LatentDirichletAllocation(n_factors, random_state=self._seed())

    def _topics(self) -> np.ndarray:
        return self.model_.components_ / self.model_.components_.sum(1, keepdims=True)

    def _reconstruct(self, X: Matrix) -> np.ndarray:
        return self.model_.transform(X) @ self._topics() * row_totals(X)[:, None]

    def _check_values(self, X: Matrix) -> Matrix:
        return _non_negative(super()._check_values(X), "LDA")


class EASE(_Adapter):
    r"""Embarrassingly shallow autoencoder (Steck 2019): each feature from all others, by ridge regression.

    .. math:: B = I - P\,\mathrm{diag}(P)^{-1}, \qquad P = (X^\top X + \lambda I)^{-1}

    There are no factors: ``n_factors`` is taken, so that it can stand beside the others, and not used.
    """

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        penalty: float = 100.0,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(n_factors, likelihood=likelihood, random_state=random_state)
        self.penalty = penalty

    def fit(self, X: TableLike, y: object = None) -> Self:
        """Fit the model to a table."""
        check_positive("penalty", self.penalty)
        X = self._check_table(X, reset=True)
        gram = dense_table(X.T @ X).astype(np.float64)
        precision = np.linalg.inv(gram + self.penalty * np.eye(len(gram)))
        self.model_ = np.eye(len(gram)) - precision / np.diag(precision)
        self.active_factors_ = np.arange(0)
        self._learn_spread(X)
        return self

    def transform(self, X: TableLike) -> np.ndarray:
        """The reconstruction itself: there are no codes."""
        check_is_fitted(self, self._fitted)
        return self._reconstruct(self._check_table(X, reset=False))

    def _reconstruct(self, X: Matrix) -> np.ndarray:
        return np.asarray(X @ self.model_)


def _log_beta(concentration: np.ndarray) -> np.ndarray:
    """Log of the multivariate beta function of each row."""
    return gammaln(concentration).sum(1) - gammaln(concentration.sum(1))


def _non_negative(X: Matrix, name: str) -> Matrix:
    if X.min() < 0:
        raise DataError(
            f"Expected no Negative values in data passed to {name}; got {X.min():g}. Leave it out."
        )
    return X
