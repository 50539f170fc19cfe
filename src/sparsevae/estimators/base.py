"""What every estimator of the package does alike: checks of tables, names, score, save and load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from sparsevae.aliases import Matrix, State, TableLike
from sparsevae.annotations.levels import check_levels, find_levels
from sparsevae.annotations.missing import add_absences, check_columns_seen, with_nan
from sparsevae.annotations.views import flatten_columns
from sparsevae.annotations.weights import check_weights
from sparsevae.estimators.names import NamesMixin
from sparsevae.exceptions import (
    DataError,
    DataTypeError,
)
from sparsevae.io.suggestion import suggest_likelihood
from sparsevae.likelihoods import LIKELIHOODS, Bernoulli, Likelihood, Mixed, get_likelihood
from sparsevae.persistence import load_estimator, save_estimator
from sparsevae.stored import StoredTable, is_stored
from sparsevae.validation import (
    canonical_csr,
    check_columns_numeric,
    check_finite,
    check_in_memory,
    check_support,
)

__all__ = ["FeatureNames", "TableEstimator", "mean_score"]

FeatureNames: TypeAlias = Sequence[object] | np.ndarray
"""Names of the columns of a table."""

# What to do about scikit-learn's refusals, by what they say.
_REMEDIES = {
    "sample(s)": "Check that the table was read, and that no filter has taken its rows.",
    "feature(s)": "Check that the table was read, and that no filter has taken its columns.",
    "is expecting": "Pass the columns that fit saw, in the same order.",
    "feature names should match": "Pass the columns that fit saw, in the same order.",
    "could not convert": "Drop the columns of text, or encode them as numbers.",
}


class TableEstimator(NamesMixin, TransformerMixin, BaseEstimator):
    """Base of all estimators: checks of tables, names of features, score, save and load."""

    _fitted: ClassVar[str] = "module_"  # the attribute without which nothing has been fitted
    _takes_stored: ClassVar[bool] = False  # whether tables may stay on disk
    # What belongs to the table as a whole is not cut into folds.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"feature_names": UNUSED}

    # -- tables ---------------------------------------------------------------------------------------------

    def check_table(self, X: TableLike, observed: ArrayLike | None = None) -> Matrix:
        """The table as an array or CSR matrix, checked against the one that fit saw; NaN for what is missing.

        ``observed`` says which cells count, where that is not all but NaN.
        """
        check_is_fitted(self, self._fitted)
        return self._check_table(X, observed, reset=False)

    def check_new_table(
        self, X: TableLike, observed: ArrayLike | None = None, feature_names: FeatureNames | None = None
    ) -> Matrix:
        """The same of a table to fit: its features become those of the estimator."""
        return self._check_table(X, observed, reset=True, feature_names=feature_names)

    def _check_table(
        self,
        X: TableLike,
        observed: ArrayLike | None = None,
        *,
        reset: bool,
        feature_names: FeatureNames | None = None,
    ) -> Matrix:
        X = with_nan(X, observed)
        if is_stored(X):
            return self._check_stored(X, reset=reset, feature_names=feature_names)
        X, views = flatten_columns(X)
        check_in_memory(X)
        check_columns_numeric(X)
        if sparse.issparse(X) and getattr(X, "ndim", 2) == 2:
            X = canonical_csr(X)
        if reset:
            self._forget_names()
        try:
            with self._allowing_nameless(X):
                X = validate_data(
                    self,
                    X,
                    reset=reset,
                    accept_sparse="csr",
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,  # `check_finite` says in which columns
                    ensure_min_samples=2 if reset else 1,
                )
        except ValueError as error:
            remedy = next((words for sign, words in _REMEDIES.items() if sign in str(error)), "")
            raise DataError(f"{str(error).strip()} {remedy}".strip()) from error
        except TypeError as error:
            raise DataTypeError(f"Expected a number in every cell; {str(error).strip()}.") from error
        if feature_names is not None:
            self._take_feature_names(feature_names)
        if reset and views is not None:
            self.views_ = np.array(views, dtype=object)
        return self._check_cells(X, reset=reset)

    def _check_stored(
        self, table: StoredTable, *, reset: bool, feature_names: FeatureNames | None = None
    ) -> Matrix:
        """The same of a table on disk, in one pass over its rows, which stay there."""
        if not self._takes_stored:
            raise DataError(
                f"Expected a table in memory for {type(self).__name__}; got {table.where}, which is on "
                "disk. Use SparseVAE, VAE, VSC or OIVAE, or load it: X[:]."
            )
        if reset:
            self._forget_names()
            if len(table) < 2:
                raise DataError(f"Expected at least 2 rows in {table.where}; got {len(table)}.")
            self.n_features_in_ = table.shape[1]
            names = table.feature_names if feature_names is None else feature_names
            if names is not None:
                self._take_feature_names(names)
        elif table.shape[1] != self.n_features_in_:
            raise DataError(
                f"Expected {self.n_features_in_} features, as in fit; got {table.shape[1]} in {table.where}. "
                "Pass the columns that fit saw, in the same order."
            )
        elif table.feature_names is not None and hasattr(self, "feature_names_in_"):
            moved = np.flatnonzero(np.asarray(table.feature_names, dtype=object) != self.feature_names_in_)
            if len(moved):
                raise DataError(
                    f"Expected the features of fit in their order; column {moved[0] + 1} of {table.where} is "
                    f"{str(table.feature_names[moved[0]])!r} where fit had "
                    f"{str(self.feature_names_in_[moved[0]])!r}. Put the columns in that order."
                )
        return self._check_cells(cast(Matrix, table), reset=reset)

    def _check_cells(self, X: Matrix, *, reset: bool) -> Matrix:
        """Refuse cells that a fit cannot have; learn what kinds of columns there are."""
        check_finite(X, self.feature_names(), may_be_missing=True)
        if reset:
            check_columns_seen(X, self.feature_names())
            self._learn_kinds(X)
            self._learn_absences(X)
        return self._with_absences(self._check_values(X))

    def _learn_kinds(self, X: Matrix) -> None:
        """The likelihood, if it is to be found, and the levels of the columns that have some."""
        for name in ("likelihood_", "likelihood_reason_", "levels_"):
            self.__dict__.pop(name, None)
        if isinstance(self.likelihood, str) and self.likelihood == "auto":
            self.likelihood_, self.likelihood_reason_ = suggest_likelihood(X)
        parts = self._table_likelihood().split(X.shape[1])
        with_levels = [columns for part, columns in parts if part.support == "level"]
        if with_levels:
            self.levels_ = find_levels(X, np.concatenate(with_levels), self.feature_names())

    def _learn_absences(self, X: Matrix) -> None:
        """Which columns have absences that are modelled: none, unless a subclass says so."""

    def _with_absences(self, X: Matrix) -> Matrix:
        """The table with a column of zeros and ones for each column whose absences are modelled."""
        absent = getattr(self, "absent_columns_", None)
        if absent is not None and is_stored(X):
            raise DataError(
                "Expected missing='ignorable' for a table on disk; got 'informative', which adds columns. "
                "Add them to the table, or load it: X[:]."
            )
        return X if absent is None else add_absences(X, absent)

    def _check_values(self, X: Matrix) -> Matrix:
        for part, columns in self._table_likelihood().split(X.shape[1]):
            check_support(X, part.support, columns, part.name)
        if hasattr(self, "levels_"):
            check_levels(X, self.levels_, self.feature_names())
        return X

    def resolved_likelihood(self) -> Likelihood:
        """The likelihood as an object, with the columns of the table that fit saw."""
        own, absent = self._table_likelihood(), getattr(self, "absent_columns_", None)
        if absent is None:
            return own
        n_features = self.n_features_in_
        added = np.arange(n_features, n_features + len(absent))
        return Mixed([*own.split(n_features), (Bernoulli(), added)])

    def _table_likelihood(self) -> Likelihood:
        """The same, of the columns of the table alone."""
        spec = getattr(self, "likelihood_", self.likelihood)
        likelihood = get_likelihood(spec, self.n_features_in_, getattr(self, "feature_names_in_", None))
        return likelihood.with_levels(self.levels_[:, 2]) if hasattr(self, "levels_") else likelihood

    # -- using a fit ----------------------------------------------------------------------------------------

    @abstractmethod
    def score_samples(
        self, X: TableLike, *, sample_weight: ArrayLike | None = None, observed: ArrayLike | None = None
    ) -> np.ndarray:
        """Quality of each row, in the units of the table, times its weight if there are weights."""

    @abstractmethod
    def reconstruct(self, X: TableLike) -> np.ndarray:
        """Expected data of each row from the row itself: shape (n_samples, n_features)."""

    def score(
        self,
        X: TableLike,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        observed: ArrayLike | None = None,
    ) -> float:
        """Mean ELBO per sample in the units of the table, of what is observed of it; higher is better."""
        scores = self.score_samples(X, observed=observed)
        return mean_score(scores, check_weights(sample_weight, scores))

    # -- on disk --------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> Path:
        """Write the fitted estimator to a directory: safetensors and JSON, no pickle.

        Parameters
        ----------
        path : str or Path
            The directory. One that holds a saved model is replaced; any other that is not empty is refused.

        Returns
        -------
        Path
        """
        check_is_fitted(self, self._fitted)
        return save_estimator(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read an estimator that `save` wrote; it transforms, scores and samples to the last bit the same."""
        return load_estimator(cls, path)

    @abstractmethod
    def saved_state(self) -> State:
        """What fit has found: arrays, tensors, data frames and plain values, for `restore_state`."""

    @abstractmethod
    def restore_state(self, state: State) -> None:
        """Become the fitted estimator that `saved_state` described."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        kind = LIKELIHOODS.get(self.likelihood) if isinstance(self.likelihood, str) else None
        tags.input_tags.positive_only = kind is not None and kind.support != "real"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def mean_score(scores: np.ndarray, weight: np.ndarray | None) -> float:
    """Mean over rows, each as often as its weight says."""
    return float(scores.mean() if weight is None else np.average(scores, weights=weight))
