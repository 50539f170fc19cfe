"""Non-negative matrix factorisation behind the interface of the other estimators."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, redirect_stdout
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.decomposition import NMF as MatrixFactorization
from sklearn.decomposition import non_negative_factorization
from sklearn.utils.validation import check_is_fitted

from sparsevae.aliases import Matrix, TableLike
from sparsevae.annotations.missing import has_missing
from sparsevae.annotations.weights import check_weights, note_large_weights
from sparsevae.estimators.base import FeatureNames
from sparsevae.estimators.masked_factorisation import factorise_masked, first_components, solve_codes
from sparsevae.estimators.plug_in import PlugInEstimator
from sparsevae.exceptions import ConvergenceWarning, DataError
from sparsevae.inspection.outputs import strongest_features
from sparsevae.principal import RandomState
from sparsevae.summaries import dense_table, row_totals
from sparsevae.validation import check_fraction, check_positive

__all__ = ["NMF"]

_MOST_COPIES = 8  # of the rows of a table, up to which whole weights are copies of rows
_SWEEPS = 4000  # to solve for codes, more than it takes
_SOLVED = 1e-10  # codes are solved for to this accuracy, so that they do not depend on the rows beside


class NMF(PlugInEstimator):
    r"""Non-negative matrix factorisation, scored by the likelihoods of the other estimators.

    .. math:: \min_{Z, H \ge 0}\; \tfrac12\|X - Z H\|_F^2
        + \tfrac{\alpha}{2}\left(\|Z\|_F^2 + \|H\|_F^2\right)

    Parameters
    ----------
    n_factors : int
    likelihood : str or dict
        What `score` is computed with: the product :math:`ZH` is taken as the mean (of real values and
        counts), as probabilities (of zeros and ones), or as weights of words (multinomial). The fit is the
        least-squares fit whatever the likelihood.
    alpha : float
        Weight of the penalties; 0 for none. The paper's ``alpha=1.0`` of scikit-learn before 1.2, which is
        ``alpha_W=alpha/n_features, alpha_H=alpha/n_samples`` there today.
    l1_ratio : float
        Share of the penalty that is on absolute values instead of squares.
    max_iter : int
        Sweeps of coordinate descent.
    random_state : int, RandomState or None
        Of the start, where there are more factors than samples or features.
    verbose : int
        1 prints scikit-learn's progress to stderr.

    Attributes
    ----------
    components_ : ndarray of shape (n_factors, n_features)
        H, with exact zeros.
    mask_ : ndarray of shape (n_features, n_factors)
        The same transposed.
    noise_variance_ : ndarray of shape (n_features,)
        σ² of real-valued features under the noise prior of the other estimators, NaN for others.
    active_factors_ : ndarray of int
        Factors with a weight on any feature.
    history_ : DataFrame
        One row: sweeps and the final objective.
    n_features_in_, feature_names_in_, n_iter_

    Notes
    -----
    `score` is the log likelihood of a row at its own codes. There is no prior on the codes and nothing is
    charged for them: it is not a bound on log p(x), and it is comparable with the *reconstruction* of the
    other estimators, not with their score. There is no model to draw from either, hence no ``sample``.
    """

    _fitted: ClassVar[str] = "components_"

    def __init__(
        self,
        n_factors: int = 10,
        *,
        likelihood: str | Mapping[str, object] = "gaussian",
        alpha: float = 1.0,
        l1_ratio: float = 0.0,
        max_iter: int = 400,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.likelihood = likelihood
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: TableLike,
        y: object = None,
        *,
        feature_names: FeatureNames | None = None,
        sample_weight: ArrayLike | None = None,
        observed: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features), non-negative
            NaN, pandas' NA and masked cells are missing values, which are left out of the sum of squares.
        y : ignored
        feature_names : sequence of length n_features, optional
            Names of the columns, for tables that carry none, such as a sparse matrix.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts; weights are not normalised.
        observed : boolean array of shape (n_samples, n_features), optional
            Which cells count.

        Returns
        -------
        self
        """
        self.check_parameters()
        self.__dict__.pop("components_", None)  # a fit that fails leaves an estimator that is not fitted
        table = self.check_new_table(X, observed, feature_names)
        weight = check_weights(sample_weight, table)
        note_large_weights(weight, depth=2)
        if weight is not None:
            table, weight = _copies(table, weight)
        if weight is None and not has_missing(table):
            codes, objective = self._factorise(table)
        else:
            codes, objective = self._factorise_with_care(table, weight)
        # A factor that no row uses stays where it started in scikit-learn; the penalty would have it at zero.
        self.components_[~(codes != 0).any(0)] = 0.0
        if self.n_iter_ >= self.max_iter and self.components_.any():
            warnings.warn(
                f"The factorisation was still changing after {self.n_iter_} sweeps. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.mask_ = np.ascontiguousarray(self.components_.T)
        self.active_factors_ = np.flatnonzero((self.components_ != 0).any(1))
        self.history_ = pd.DataFrame({"epoch": [self.n_iter_], "objective": [objective]})
        self._n_features_out = self.n_factors
        self._learn_spread(table, weight)
        return self

    def fit_transform(
        self, X: TableLike, y: object = None, *, observed: ArrayLike | None = None, **fit_params: Any
    ) -> np.ndarray:
        """Fit the model and return the codes of the rows; parameters as for `fit`."""
        return self.fit(X, observed=observed, **fit_params).transform(X, observed=observed)

    def _factorise(self, table: Matrix) -> tuple[np.ndarray, float]:
        """Components by scikit-learn; codes and objective."""
        n_samples, n_features = table.shape
        model = MatrixFactorization(
            self.n_factors,
            alpha_W=self.alpha / n_features,
            alpha_H=self.alpha / n_samples,
            l1_ratio=float(self.l1_ratio),
            max_iter=self.max_iter,
            # None means numpy's global generator to scikit-learn, which is not ours to move.
            random_state=np.random.RandomState() if self.random_state is None else self.random_state,
            verbose=self.verbose,
        )
        to_stderr = redirect_stdout(sys.stderr) if self.verbose else nullcontext()
        with warnings.catch_warnings(), to_stderr:
            warnings.simplefilter("ignore", ConvergenceWarning)
            codes = model.fit_transform(table)
        # In one order of memory, so that products round the same before and after a round trip to disk.
        self.components_ = np.ascontiguousarray(model.components_)
        self.n_iter_ = int(model.n_iter_)
        return codes, float(model.reconstruction_err_)

    def _factorise_with_care(self, table: Matrix, weight: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Components of a table with holes or weights; codes and objective."""
        dense = np.asarray(dense_table(table), dtype=np.float64)
        rows = np.ones(len(dense)) if weight is None else weight
        codes, components, self.n_iter_, objective = factorise_masked(
            dense,
            rows,
            first_components(dense, rows, self.n_factors),
            alpha=float(self.alpha),
            l1_ratio=float(self.l1_ratio),
            max_iter=self.max_iter,
        )
        self.components_ = np.ascontiguousarray(components.astype(table.dtype))
        return codes, objective

    def transform(self, X: TableLike, *, observed: ArrayLike | None = None) -> np.ndarray:
        """Codes of each row: the non-negative least-squares solution given the components.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        observed : boolean array of shape (n_samples, n_features), optional
            Which cells count.

        Returns
        -------
        ndarray of shape (n_samples, n_factors)
        """
        return self._codes(self.check_table(X, observed))

    def inverse_transform(self, Z: TableLike) -> np.ndarray:
        """The product of codes and components.

        Parameters
        ----------
        Z : array of shape (n_samples, n_factors)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, self._fitted)
        codes = np.asarray(Z)
        if codes.ndim != 2 or codes.shape[1] != self.n_factors:
            raise DataError(
                f"Expected factors of shape (n_samples, {self.n_factors}), as transform returns; got "
                f"{codes.shape}. Pass all columns that transform returned."
            )
        return codes @ self.components_

    def loadings(self) -> pd.DataFrame:
        """The components with names: a row per feature, a column per active factor."""
        check_is_fitted(self, self._fitted)
        names = self.get_feature_names_out()[self.active_factors_]
        return pd.DataFrame(self.mask_[:, self.active_factors_], index=self.feature_names(), columns=names)

    def effects(self) -> pd.DataFrame:
        """Slope of each feature on each factor: for a linear model, the loadings."""
        return self.loadings()

    def top_features(self, n: int = 10) -> pd.DataFrame:
        """The features with the largest weights of each active factor.

        Columns: factor, rank, feature, loading.
        """
        check_is_fitted(self, self._fitted)
        check_positive("n", n, integer=True)
        loadings = self.mask_[:, self.active_factors_]
        factors = self.get_feature_names_out()[self.active_factors_]
        return strongest_features(loadings, n, factors, self.feature_names(), loading=loadings)

    # -- helpers --------------------------------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Refuse parameters of the constructor that make no sense."""
        check_positive("n_factors", self.n_factors, integer=True)
        check_positive("max_iter", self.max_iter, integer=True)
        if self.alpha != 0:
            check_positive("alpha", self.alpha)
        if self.l1_ratio != 1:
            check_fraction("l1_ratio", self.l1_ratio)

    def _check_values(self, X: Matrix) -> Matrix:
        X = super()._check_values(X)
        lowest = np.nanmin(X.data if sparse.issparse(X) else X) if 0 not in X.shape else 0.0
        if lowest < 0:
            raise DataError(
                f"Expected no Negative values in data passed to NMF; got a minimum of {lowest:g}. Use VAE or "
                "SparseVAE for tables with negative values."
            )
        return X

    def _codes(self, X: Matrix) -> np.ndarray:
        """Codes, zero for rows without anything in them."""
        if not self.components_.any():
            return np.zeros((X.shape[0], self.n_factors), dtype=X.dtype)
        if has_missing(X):
            return self._codes_with_holes(X)
        codes, _, _ = non_negative_factorization(
            X,
            H=self.components_.astype(X.dtype, copy=False),
            n_components=self.n_factors,
            update_H=False,
            alpha_W=self.alpha / X.shape[1],
            l1_ratio=float(self.l1_ratio),
            tol=_SOLVED,
            max_iter=_SWEEPS,
        )
        codes[row_totals(X) == 0] = 0.0
        return codes

    def _codes_with_holes(self, X: Matrix) -> np.ndarray:
        """Codes of a table with missing values; rows without any get those that `_codes` gives them."""
        dense = dense_table(X)
        whole = ~np.isnan(dense).any(1)
        codes = np.zeros((len(dense), self.n_factors), dtype=X.dtype)
        if whole.any():
            codes[whole] = self._codes(dense[whole])
        codes[~whole] = solve_codes(
            dense[~whole],
            self.components_.astype(np.float64),
            alpha=float(self.alpha),
            l1_ratio=float(self.l1_ratio),
            max_iter=_SWEEPS,
            tolerance=_SOLVED,
        )
        return codes

    def _reconstruct(self, X: Matrix) -> np.ndarray:
        return self._codes(X).astype(np.float64) @ self.components_.astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def _copies(table: Matrix, weight: np.ndarray) -> tuple[Matrix, np.ndarray | None]:
    """Rows as often as their weights say, where these are small whole numbers; else those that count."""
    kept = weight > 0
    if kept.sum() < 2:
        raise DataError(
            f"Expected at least 2 rows with a weight above 0; got {int(kept.sum())}. Give more rows a weight."
        )
    if np.array_equal(weight, np.rint(weight)) and weight.sum() <= _MOST_COPIES * len(weight):
        return table[np.repeat(np.arange(len(weight)), weight.astype(np.intp))], None
    return table[kept], weight[kept]
