"""What every estimator of the package does alike: checks, transform, score, sample, names, save and load."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pandas as pd
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from sparsevae.aliases import Matrix, TableLike
from sparsevae.decoder.threads import mind_fork
from sparsevae.estimators.names import NamesMixin
from sparsevae.estimators.schema import check_state
from sparsevae.exceptions import (
    ConvergenceWarning,
    DataError,
    DataTypeError,
    DivergenceError,
    OutOfMemoryError,
    ParameterError,
)
from sparsevae.fitting import FitData, get_recipe, named_likelihood, prepare
from sparsevae.inspection.codes import Codes, block_size, fixed_draws, in_blocks, row_bounds
from sparsevae.inspection.outputs import expected_rows
from sparsevae.inspection.simulation import draw_rows
from sparsevae.likelihoods import LIKELIHOODS, Likelihood
from sparsevae.modules import LatentModule, Observation
from sparsevae.modules.compatibility import upgrade_saved_module
from sparsevae.persistence import load_estimator, save_estimator
from sparsevae.training.callbacks import Callback, calling
from sparsevae.training.interrupt import stop_requested
from sparsevae.validation import (
    canonical_csr,
    check_columns_numeric,
    check_finite,
    check_fraction,
    check_in_memory,
    check_positive,
    check_support,
    extreme_cell,
    reveal_missing,
)

__all__ = ["FactorEstimator", "FeatureNames", "TableEstimator", "new_random_state"]

FeatureNames: TypeAlias = Sequence[object] | np.ndarray
"""Names of the columns of a table."""

_EXTREME = 1e4  # times its usual size: a number that is the cause of a failure, not a long tail

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
    # What belongs to the table as a whole is not cut into folds.
    __metadata_request__fit: ClassVar[dict[str, str]] = {"feature_names": UNUSED}

    # -- tables ---------------------------------------------------------------------------------------------

    def check_table(self, X: TableLike) -> Matrix:
        """The table as an array or CSR matrix, checked against the one that fit saw."""
        check_is_fitted(self, self._fitted)
        return self._check_table(X, reset=False)

    def _check_table(self, X: TableLike, *, reset: bool, feature_names: FeatureNames | None = None) -> Matrix:
        check_in_memory(X)
        check_columns_numeric(X)
        X = reveal_missing(X)
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
        return self._check_values(X)

    def _check_values(self, X: Matrix) -> Matrix:
        check_finite(X, self.feature_names())
        for part, columns in self.resolved_likelihood().split(X.shape[1]):
            check_support(X, part.support, columns, part.name)
        return X

    def resolved_likelihood(self) -> Likelihood:
        """The likelihood as an object, with the columns of the table that fit saw."""
        return named_likelihood(
            self.likelihood, self.n_features_in_, getattr(self, "feature_names_in_", None)
        )

    # -- using a fit ----------------------------------------------------------------------------------------

    @abstractmethod
    def score_samples(self, X: TableLike) -> np.ndarray:
        """Quality of each row, in the units of the table."""

    @abstractmethod
    def reconstruct(self, X: TableLike) -> np.ndarray:
        """Expected data of each row from the row itself: shape (n_samples, n_features)."""

    def score(self, X: TableLike, y: object = None) -> float:
        """Mean ELBO per sample in the units of the table; higher is better."""
        return float(self.score_samples(X).mean())

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
    def saved_state(self) -> dict[str, Any]:
        """What fit has found: arrays, tensors, data frames and plain values, for `restore_state`."""

    @abstractmethod
    def restore_state(self, state: dict[str, Any]) -> None:
        """Become the fitted estimator that `saved_state` described."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        kind = LIKELIHOODS.get(self.likelihood) if isinstance(self.likelihood, str) else None
        tags.input_tags.positive_only = kind is not None and kind.support != "real"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FactorEstimator(TableEstimator):
    """Base of the estimators that fit a module; a subclass says how in `_fit_module`.

    Attributes
    ----------
    module_ : LatentModule
        The fitted network, on the CPU and without gradients.
    history_ : DataFrame
        A row per epoch, a column per term of the objective.
    n_iter_ : int
        Epochs.
    n_features_in_, feature_names_in_
        Of the table fitted; names where it had them.
    """

    module_: LatentModule
    _module_class: ClassVar[type[LatentModule]]
    __metadata_request__fit: ClassVar[dict[str, str]] = {"callbacks": UNUSED}

    # -- fitting --------------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: object = None,
        *,
        feature_names: FeatureNames | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        feature_names : sequence of length n_features, optional
            Names of the columns, for tables that carry none, such as a sparse matrix.
        callbacks : list of callable, optional
            Called after each epoch with its record, a dict: ``step`` (epochs so far), ``phase``, the terms of
            the objective, ``n_nonzero``, ``n_active`` and ``validation``, the held-out bound where there is
            one. A callback that returns True ends the fit with the best model so far. One that raises ends
            it too, and its exception comes out of ``fit`` after that model is in place.

        Returns
        -------
        self
        """
        self.fit_codes(X, feature_names=feature_names, callbacks=callbacks)
        return self

    def fit_transform(self, X: TableLike, y: object = None, **fit_params: Any) -> np.ndarray:
        """Fit the model and return the factors of the rows: as ``fit(X).transform(X)``, encoded once.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        **fit_params
            Further arguments of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_factors)
        """
        codes = self.fit_codes(X, **fit_params)
        return codes.means().astype(codes.X.dtype, copy=False)

    def fit_codes(
        self,
        X: TableLike,
        *,
        feature_names: FeatureNames | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Codes:
        """Fit the model and return the codes of the table fitted, as ``fit(X).codes(X)``, checked once.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        feature_names, callbacks
            As in ``fit``.

        Returns
        -------
        Codes
        """
        mind_fork()
        if stop_requested():  # during an earlier fit, by someone who will not want to wait for this one
            raise KeyboardInterrupt
        data = self._prepare(X, feature_names=feature_names)
        explained = self._explained_failures(data.source.X)
        with calling(callbacks) as calls, torch.random.fork_rng(devices=[]), explained:
            module, history = self._fit_module(data)
        if stop_requested() or calls.stopped:
            _say_stopped(len(history), "a callback" if calls.stopped else "the user")
        self.module_ = module.cpu().eval().requires_grad_(False)
        if module.mask is not None:
            rates = module.mask.rates()
            module.mask.set_rates(
                **{k: r.detach().cpu() if isinstance(r, Tensor) else r for k, r in rates.items()}
            )
        self.history_ = _tidy(history)
        self.n_iter_ = len(history)
        self._n_features_out = module.n_factors
        codes = Codes(self.module_, data.source.X)
        self._finish(codes, data)
        calls.raise_error()
        return codes

    def _prepare(self, X: TableLike, *, feature_names: FeatureNames | None = None) -> FitData:
        """Check parameters and table, and cut its rows into those to train and those to validate on."""
        self.check_parameters()
        self.__dict__.pop("module_", None)  # a fit that fails leaves an estimator that says it is not fitted
        return prepare(
            self._check_table(X, reset=True, feature_names=feature_names),
            self.resolved_likelihood(),
            feature_names=self.feature_names(),
            validation_fraction=self.validation_fraction,
            batch_size=self.batch_size,
            random_state=new_random_state(self.random_state),
            device=self._device(),
            raw_noise_scale=get_recipe(self.recipe).raw_noise_scale,
        )

    @contextmanager
    def _explained_failures(self, X: Matrix) -> Iterator[None]:
        """Say what of the table or the parameters makes a fit diverge, or take all memory."""
        try:
            yield
        except DivergenceError as error:
            row, column, value, ratio = extreme_cell(X)
            if ratio < _EXTREME:
                raise
            raise DivergenceError(
                f"Expected numbers of comparable size in each column; got {value:g} in row {row + 1} of "
                f"{self.feature_names()[column]!r}, {ratio:.0e} times what is usual there, and the fit "
                "did not stay finite. Check this cell, or leave out its row."
            ) from error
        except (MemoryError, RuntimeError) as error:
            if not (isinstance(error, MemoryError) or "allocate memory" in str(error)):
                raise
            raise OutOfMemoryError(
                f"Expected a model that fits into memory; got a network with n_factors={self.n_factors} and "
                f"hidden_sizes={self.hidden_sizes!r} for {X.shape[0]} rows of {X.shape[1]} features. Take "
                "fewer or narrower layers, a smaller batch_size, or a smaller table."
            ) from error

    @abstractmethod
    def _fit_module(self, data: FitData) -> tuple[LatentModule, pd.DataFrame]:
        """Return a fitted module without replicates, and its history."""

    @abstractmethod
    def _finish(self, codes: Codes, data: FitData) -> None:
        """Set the fitted attributes, given the codes of the table fitted."""

    def check_parameters(self) -> None:
        """Refuse parameters of the constructor that make no sense."""
        self._device()
        new_random_state(self.random_state)
        check_positive("n_factors", self.n_factors, integer=True)
        if not np.iterable(self.hidden_sizes) or isinstance(self.hidden_sizes, str):
            raise ParameterError(
                f"Expected hidden_sizes to be a tuple of widths, one per layer; got {self.hidden_sizes!r}. "
                "Pass (64, 64) for two layers, () for the linear model."
            )
        for size in self.hidden_sizes:
            check_positive("hidden_sizes", size, integer=True)
        check_positive("batch_size", self.batch_size, integer=True)
        if self.max_epochs is not None:
            check_positive("max_epochs", self.max_epochs, integer=True)
        check_positive("learning_rate", self.learning_rate)
        check_fraction("validation_fraction", self.validation_fraction)

    def _device(self) -> torch.device:
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            device = torch.device(wanted if self.device == "auto" else self.device)
            torch.empty(0, device=device)
        except (RuntimeError, TypeError, AssertionError) as error:
            raise ParameterError(
                f"Expected device to be 'auto', 'cpu' or a device that torch finds here; got {self.device!r} "
                f"({str(error).splitlines()[0]}). Pass device='auto'."
            ) from error
        return device

    # -- using a fit ----------------------------------------------------------------------------------------

    def codes(self, X: TableLike) -> Codes:
        """Posteriors of the rows of a table: checked once, each row encoded once.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        Codes
            What `transform`, `score_samples` and the certificate are made from.
        """
        check_is_fitted(self, "module_")
        mind_fork()
        return Codes(self.module_, self._check_table(X, reset=False))

    def transform(self, X: TableLike) -> np.ndarray:
        """Posterior means of the factors; columns of inactive factors are exactly zero.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_factors)
        """
        codes = self.codes(X)
        return codes.means().astype(codes.X.dtype, copy=False)

    def inverse_transform(self, Z: TableLike) -> np.ndarray:
        """Expected data given factors, in the units of the table fitted.

        Parameters
        ----------
        Z : array of shape (n_samples, n_factors)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            For counts, of a row of average size; for binary features, probabilities.
        """
        check_is_fitted(self, "module_")
        Z = np.asarray(Z)
        n_factors = self.module_.n_factors
        if Z.ndim != 2 or Z.shape[1] != n_factors:
            raise DataError(
                f"Expected factors of shape (n_samples, {n_factors}), as transform returns; got {Z.shape}. "
                "Pass all columns that transform returned."
            )
        dtype = Z.dtype if Z.dtype in (np.float32, np.float64) else np.dtype(np.float64)
        z = torch.as_tensor(np.array(Z, dtype=np.float32))
        check_finite(z.numpy(), self.get_feature_names_out())
        means = in_blocks(lambda rows: self._expected(z[rows]), len(z), block_size(self.module_))
        return means.numpy().astype(dtype, copy=False)

    def score_samples(self, X: TableLike) -> np.ndarray:
        """ELBO of each row in the units of the table.

        All rows share one fixed set of draws of the factors, so that the result is deterministic and a
        subset of rows gets the same values.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self.codes(X)
        return row_bounds(self.module_, codes.X, self.score_draws(), codes.moments())

    def reconstruct(self, X: TableLike) -> np.ndarray:
        """Expected data at the posterior means of the factors; for counts, of a row of average size."""
        return self.inverse_transform(self.transform(X))

    def score_draws(self) -> Tensor:
        """Fixed draws of the noise behind `score_samples`: (n_draws, n_noise)."""
        return fixed_draws(self.module_.n_noise)

    def sample(
        self, n_samples: int = 1, *, random_state: int | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Draw rows from the fitted model.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            In the units of the table; for counts, rows of average size.
        """
        check_is_fitted(self, "module_")
        check_positive("n_samples", n_samples, integer=True)
        return draw_rows(self.module_, n_samples, _generator(new_random_state(random_state)))[1]

    # -- on disk --------------------------------------------------------------------------------------------

    def saved_state(self) -> dict[str, Any]:
        """What fit has found; the module by its settings and tensors."""
        parameters = self.get_params(deep=False)
        fitted = {name: value for name, value in vars(self).items() if name not in parameters}
        module = fitted.pop("module_")
        return {"fitted": fitted, "module": module.to_dict()}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Become the fitted estimator that `saved_state` described, also one of version 0.1.

        Sizes are compared with those of the arrays before anything is built.
        """
        check_state(state["fitted"], type(self))
        self.__dict__.update(state["fitted"])
        saved = upgrade_saved_module(state["module"], self._module_class)
        observation = Observation.blank(self.resolved_likelihood(), self.n_features_in_)
        module = self._module_class.from_dict(saved, observation)
        self.module_ = module.eval().requires_grad_(False)

    # -- helpers --------------------------------------------------------------------------------------------

    def _expected(self, z: Tensor) -> Tensor:
        """Expected data in the units of the table."""
        with torch.no_grad():
            return expected_rows(self.module_, self.module_.decode(z))


def _say_stopped(n_epochs: int, who: str) -> None:
    warnings.warn(
        f"Stopped by {who} after {n_epochs} epochs: this is the best model so far, not a finished fit. "
        "Let a fit run to its end before you conclude anything from it.",
        ConvergenceWarning,
        stacklevel=4,
    )


def _tidy(history: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers as numbers, where replicates have left arrays of one element among them."""
    mixed = [name for name in history.columns if history[name].dtype == object]
    return history.assign(**{name: np.array([np.asarray(v).item() for v in history[name]]) for name in mixed})


def new_random_state(seed: int | np.random.RandomState | None) -> np.random.RandomState:
    """A generator of one's own: numpy's global one is neither read nor moved, also without a seed."""
    try:
        return np.random.RandomState() if seed is None else check_random_state(seed)
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"Expected random_state to be a whole number from 0, a RandomState or None; got {seed!r}. Pass "
            "random_state=0."
        ) from error


def _generator(random_state: np.random.RandomState) -> torch.Generator:
    return torch.Generator().manual_seed(int(random_state.randint(2**31 - 1)))
