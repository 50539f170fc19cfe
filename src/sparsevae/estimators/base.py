"""What every estimator of the package does alike: checks, transform, score, sample, names, save and load."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from sparsevae.estimators.evaluating import block_size, fixed_draws, in_blocks, map_rows
from sparsevae.estimators.posterior import posterior, row_bounds, row_moments
from sparsevae.estimators.preparing import FitData, named_likelihood, prepare
from sparsevae.exceptions import ConvergenceWarning, DataError, ParameterError
from sparsevae.likelihoods import Likelihood
from sparsevae.modules import FactorModule, Observation
from sparsevae.persistence import load_estimator, save_estimator
from sparsevae.training.interrupt import stop_requested
from sparsevae.validation import (
    check_columns_numeric,
    check_finite,
    check_fraction,
    check_positive,
    check_support,
    row_totals,
)

__all__ = ["FactorEstimator", "FitData", "TableEstimator"]

# What to do about scikit-learn's refusals, by what they say.
_REMEDIES = {
    "sample(s)": "Check that the table was read, and that no filter has taken its rows.",
    "feature(s)": "Check that the table was read, and that no filter has taken its columns.",
    "is expecting": "Pass the columns that fit saw, in the same order.",
    "feature names should match": "Pass the columns that fit saw, in the same order.",
    "could not convert": "Drop the columns of text, or encode them as numbers.",
}


class TableEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all estimators: checks of tables, names of features, score, save and load."""

    _fitted: ClassVar[str] = "module_"  # the attribute without which nothing has been fitted

    # -- tables ---------------------------------------------------------------------------------------------

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        check_columns_numeric(X)
        try:
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
        return self._check_values(X)

    def _check_values(self, X: Any) -> Any:
        check_finite(X, self._feature_names())
        for part, columns in self._likelihood().split(X.shape[1]):
            check_support(X, part.support, columns, part.name)
        return X

    def _likelihood(self) -> Likelihood:
        return named_likelihood(
            self.likelihood, self.n_features_in_, getattr(self, "feature_names_in_", None)
        )

    def _feature_names(self) -> np.ndarray:
        if hasattr(self, "feature_names_in_"):
            return np.asarray(self.feature_names_in_, dtype=object)
        return np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)

    # -- using a fit ----------------------------------------------------------------------------------------

    @abstractmethod
    def score_samples(self, X: Any) -> np.ndarray:
        """Quality of each row, in the units of the table."""

    def score(self, X: Any, y: Any = None) -> float:
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
    def _state(self) -> dict[str, Any]:
        """What fit has found, as arrays, tensors, data frames and plain values; `_restore` takes it back."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Become the fitted estimator that `_state` described."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = isinstance(self.likelihood, str) and self.likelihood != "gaussian"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class FactorEstimator(TableEstimator):
    """Base of the estimators that fit a module; a subclass says how in `_fit_module`.

    Attributes
    ----------
    module_ : FactorModule
        The fitted network, on the CPU and without gradients.
    history_ : DataFrame
        A row per epoch, a column per term of the objective.
    n_iter_ : int
        Epochs.
    n_features_in_, feature_names_in_
        Of the table fitted; names where it had them.
    """

    module_: FactorModule
    _module_class: ClassVar[Callable[..., FactorModule]] = FactorModule

    # -- fitting --------------------------------------------------------------------------------------------

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
        if stop_requested():  # during an earlier fit, by someone who will not want to wait for this one
            raise KeyboardInterrupt
        data = self._prepare(X)
        with torch.random.fork_rng(devices=[]):
            module, history = self._fit_module(data)
        if stop_requested():
            _say_stopped(len(history))
        self._finish(module, history, data)
        return self

    def _prepare(self, X: Any) -> FitData:
        """Check parameters and table, and cut its rows into those to train and those to validate on."""
        self._check_parameters()
        self.__dict__.pop("module_", None)  # a fit that fails leaves an estimator that says it is not fitted
        return prepare(
            self._check_table(X, reset=True),
            self._likelihood(),
            feature_names=self._feature_names(),
            validation_fraction=self.validation_fraction,
            batch_size=self.batch_size,
            random_state=_random_state(self.random_state),
            device=self._device(),
        )

    @abstractmethod
    def _fit_module(self, data: FitData) -> tuple[FactorModule, pd.DataFrame]:
        """Return a fitted module without replicates, and its history."""

    def _finish(self, module: FactorModule, history: pd.DataFrame, data: FitData) -> None:
        """Keep the module and set the fitted attributes."""
        self.module_ = module.cpu().eval().requires_grad_(False)
        for name in ("spike_rate", "slab_rate"):
            rate = getattr(module, name)
            setattr(module, name, rate.detach().cpu() if isinstance(rate, Tensor) else rate)
        self.history_ = _tidy(history)
        self.n_iter_ = len(history)
        self._n_features_out = module.n_factors

    def _check_parameters(self) -> None:
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
        self._device()

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

    def transform(self, X: Any) -> np.ndarray:
        """Posterior means of the factors; columns of inactive factors are exactly zero.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_factors)
        """
        check_is_fitted(self, "module_")
        X = self._check_table(X, reset=False)
        Z = map_rows(self.module_, X, lambda module, x: posterior(module, x)[0])
        if self.module_.observation.count_columns.all():
            Z[row_totals(X) == 0] = 0.0
        return Z.astype(X.dtype, copy=False)

    def inverse_transform(self, Z: Any) -> np.ndarray:
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

    def score_samples(self, X: Any) -> np.ndarray:
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
        check_is_fitted(self, "module_")
        X = self._check_table(X, reset=False)
        return row_bounds(self.module_, X, self._draws(), row_moments(self.module_, X))

    def _draws(self) -> Tensor:
        """Draws of the noise behind `score_samples`: (n_draws, n_noise)."""
        return fixed_draws(self.module_.n_noise)

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> np.ndarray:
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
        module, observation = self.module_, self.module_.observation
        generator = _generator(_random_state(random_state))
        blocks = []
        for block in module.draw_prior(n_samples, generator).split(block_size(self.module_)):
            drawn = observation.likelihood.sample(
                module.decode(block),
                dispersion=module.dispersion(),
                generator=generator,
                **observation.average_rows(len(block), whole=True),
            )
            blocks.append(observation.to_user_units(drawn))
        return torch.cat(blocks).numpy().astype(np.float64)

    # -- on disk --------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        fitted = {name: value for name, value in vars(self).items() if name not in parameters}
        module = fitted.pop("module_")
        return {
            "fitted": fitted,
            "module": {
                "config": module.config,
                "spike_rate": module.spike_rate,
                "slab_rate": module.slab_rate,
                "tensors": dict(module.state_dict()),
            },
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["fitted"])
        saved = state["module"]
        observation = Observation.blank(self._likelihood(), self.n_features_in_)
        module = self._module_class(observation, generator=torch.Generator(), **saved["config"])
        module.load_state_dict(saved["tensors"])
        module.spike_rate, module.slab_rate = saved["spike_rate"], saved["slab_rate"]
        self.module_ = module.eval().requires_grad_(False)

    # -- helpers --------------------------------------------------------------------------------------------

    def _expected(self, z: Tensor) -> Tensor:
        """Expected data in the units of the table."""
        with torch.no_grad():
            return self._expected_of(self.module_.decode(z))

    def _expected_of(self, output: Tensor) -> Tensor:
        """Expected data in the units of the table, given what the decoder puts out."""
        observation = self.module_.observation
        means = observation.likelihood.mean(output, **observation.average_rows(len(output)))
        return observation.to_user_units(means)


def _say_stopped(n_epochs: int) -> None:
    warnings.warn(
        f"Stopped by the user after {n_epochs} epochs: this is the best model so far, not a finished fit. "
        "Let a fit run to its end before you conclude anything from it.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _tidy(history: pd.DataFrame) -> pd.DataFrame:
    """Columns of numbers as numbers, where replicates have left arrays of one element among them."""
    mixed = [name for name in history.columns if history[name].dtype == object]
    return history.assign(**{name: np.array([np.asarray(v).item() for v in history[name]]) for name in mixed})


def _random_state(seed: Any) -> np.random.RandomState:
    """A generator of one's own: numpy's global one is neither read nor moved, also without a seed."""
    return np.random.RandomState() if seed is None else check_random_state(seed)


def _generator(random_state: np.random.RandomState) -> torch.Generator:
    return torch.Generator().manual_seed(int(random_state.randint(2**31 - 1)))
