"""What the estimators that fit a module do alike: fit, transform, score, impute, sample."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sparsevae.aliases import Matrix, State, TableLike
from sparsevae.annotations.groups import check_groups, number_groups
from sparsevae.annotations.missing import columns_with_holes
from sparsevae.annotations.weights import check_exposure, check_weights, note_large_weights
from sparsevae.decoder.threads import mind_fork
from sparsevae.estimators.base import FeatureNames, TableEstimator, mean_score
from sparsevae.estimators.schema import check_state
from sparsevae.exceptions import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    DivergenceError,
    OutOfMemoryError,
    ParameterError,
)
from sparsevae.fitting import FitData, get_recipe, prepare
from sparsevae.fitting.checkpoint import checkpoint_in, describe, fingerprint
from sparsevae.inspection.codes import Codes, block_size, fixed_draws, in_blocks
from sparsevae.inspection.imputation import (
    draw_cells,
    expect_cells,
    hidden_log_density,
    hide_cells,
)
from sparsevae.inspection.leftover import Leftover, fill_cells, find_leftover
from sparsevae.inspection.outputs import expected_rows
from sparsevae.inspection.row_groups import settle_groups_
from sparsevae.inspection.simulation import draw_rows
from sparsevae.inspection.streams import StoredCodes, array_on_disk
from sparsevae.modules import LatentModule, Observation
from sparsevae.modules.compatibility import upgrade_saved_module
from sparsevae.stored import is_stored
from sparsevae.summaries import EXTREME, dense_table, extreme_cell
from sparsevae.training.callbacks import Callback, calling
from sparsevae.training.interrupt import stop_requested
from sparsevae.training.journal import keeping
from sparsevae.training.processes import joined_fit
from sparsevae.validation import (
    check_choice,
    check_finite,
    check_fraction,
    check_positive,
)

__all__ = ["FactorEstimator", "new_random_state"]

_ROWS_OF_GROUPS = 4000  # behind the variances of factors in groups
# An epoch of a large table has a hundred steps: fewer, larger ones are quicker in several processes.
_BATCH, _STEPS_OF_AN_EPOCH = (128, 1024), 100
_LARGEST_STEP = 1e30  # learning rate beyond which a step overflows


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
    __metadata_request__fit: ClassVar[dict[str, str]] = {
        "callbacks": UNUSED,
        "checkpoint": UNUSED,
        "checkpoint_every": UNUSED,
    }
    _takes_groups: ClassVar[bool] = False
    _takes_stored: ClassVar[bool] = True
    _finds_n_factors: ClassVar[bool] = False  # whether n_factors may be "auto"

    # -- fitting --------------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: object = None,
        *,
        feature_names: FeatureNames | None = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float | str = "5m",
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, data frame, sparse matrix or table on disk of shape (n_samples, n_features)
            Memory-mapped arrays from 512 MB on, arrays of h5py, zarr and dask, backed ``adata.X`` and what
            `sparsevae.open_rows` opens are read block by block and never held (docs/explanation/scaling.md).
            NaN, pandas' NA and masked cells are missing values, which are left out of the likelihood.
        y : ignored
        feature_names : sequence of length n_features, optional
            Names of the columns, for tables that carry none, such as a sparse matrix.
        callbacks : list of callable, optional
            Called after each epoch with its record, a dict: ``step`` (epochs so far), ``phase``, the terms of
            the objective, ``n_nonzero``, ``n_active`` and ``validation``, the held-out bound where there is
            one. A callback that returns True ends the fit with the best model so far. One that raises ends
            it too, and its exception comes out of ``fit`` after that model is in place.
        checkpoint : str or Path, optional
            A directory. The fit is kept there at the end of each stage, from time to time inside a stage, and
            when Ctrl-C or a callback ends it; and if an unfinished fit of the same table with the same
            parameters is there, this one goes on where that one stopped, to the same end to the last bit. The
            last checkpoint stays when the fit is complete.
        checkpoint_every : float or str
            Time between two checkpoints inside a stage: seconds, or text such as "30s", "5m" or "1h30m".
        sample_weight : array of shape (n_samples,), optional
            How often each row counts; weights are not normalised.
        groups : array of shape (n_samples,), optional
            Study, batch or country of each row, for `SparseVAE` and `VAE`: what differs between groups is
            kept out of the factors.
        observed : boolean array of shape (n_samples, n_features), optional
            Which cells count; False for further missing values, of a sparse table for instance.
        exposure : array of shape (n_samples,), optional
            Known size of each row of counts, such as hours watched or people at risk; by default its total.

        Returns
        -------
        self
        """
        self.fit_codes(
            X,
            feature_names=feature_names,
            callbacks=callbacks,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            sample_weight=sample_weight,
            groups=groups,
            observed=observed,
            exposure=exposure,
        )
        self._announce()
        return self

    def _announce(self) -> None:
        """Print what the caller should know of the fit, where that was asked for."""

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
        self._announce()
        return codes.means().astype(codes.X.dtype, copy=False)

    def fit_codes(
        self,
        X: TableLike,
        *,
        feature_names: FeatureNames | None = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float | str = "5m",
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Codes:
        """Fit the model and return the codes of the table fitted, as ``fit(X).codes(X)``, checked once.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        feature_names, callbacks, checkpoint, checkpoint_every, sample_weight, groups, observed, exposure
            As for `fit`.

        Returns
        -------
        Codes
        """
        mind_fork()
        if stop_requested():  # during an earlier fit, by someone who will not want to wait for this one
            raise KeyboardInterrupt
        with joined_fit() as group, checkpoint_in(checkpoint, checkpoint_every, group) as kept:
            random_state = None if kept is None else kept.begin(new_random_state(self.random_state))
            if group is not None:
                random_state = group.from_first(random_state or new_random_state(self.random_state))
            data = self._prepare(
                X,
                random_state=random_state,
                feature_names=feature_names,
                sample_weight=sample_weight,
                groups=groups,
                observed=observed,
                exposure=exposure,
            )
            if group is not None:
                group.check_alike((describe(self), fingerprint(data)), "table and parameters")
            with (
                self._explained_failures(data.source.X),
                torch.random.fork_rng(devices=[]),
                calling(callbacks) as calls,
                keeping(None) if kept is None else kept.keeping(self, data, calls),
            ):
                module, history = self._fit_module(data)
            stopped = stop_requested() or calls.stopped
        if stopped:
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
        if module.row_groups is not None:
            settle_groups_(self.module_, data.everything.first(_ROWS_OF_GROUPS))

        def codes_of(own: FitData, kind: type[Codes] = Codes) -> Codes:
            sides = (own.weight, own.source.group, own.source.exposure)
            arrays = (None if side is None else side.numpy() for side in sides)
            weight, group, exposure = arrays
            return kind(self.module_, own.source.X, weight, group, exposure, own.positions)

        codes = read = codes_of(data.in_memory)
        if data.sample is not None:
            codes = codes_of(data, StoredCodes)
            vars(codes)["in_memory"] = read  # the rows that are there already
        self._finish(read, data.in_memory)
        self._learn_leftover(read)
        calls.raise_error()
        return codes

    def _prepare(
        self,
        X: TableLike,
        *,
        random_state: np.random.RandomState | None = None,
        feature_names: FeatureNames | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> FitData:
        """Check parameters and table, and cut its rows into those to train and those to validate on."""
        self.check_parameters()
        self.__dict__.pop("module_", None)  # a fit that fails leaves an estimator that says it is not fitted
        table = self.check_new_table(X, observed, feature_names)
        weight, labels = check_weights(sample_weight, table), check_groups(groups, table)
        sizes = check_exposure(exposure, table)
        note_large_weights(weight, depth=4)
        self._learn_exposure(sizes)
        if weight is not None and not weight.all() and not is_stored(table):
            self._learn_kinds(table[weight > 0][:, : self.n_features_in_])  # a row of weight zero is absent
        group = self._learn_groups(labels, weight)
        return prepare(
            table,
            self.resolved_likelihood(),
            feature_names=self.feature_names(),
            validation_fraction=self.validation_fraction,
            batch_size=self._rows_per_step(table.shape[0]),
            random_state=new_random_state(self.random_state) if random_state is None else random_state,
            device=self._device(),
            weight=weight,
            group=group,
            exposure=sizes,
            size_factors=self.size_factors,
            group_shifts=getattr(self, "group_effects", "shifts") == "shifts",
            levels=self._padded_levels(),
            raw_noise_scale=get_recipe(self.recipe).raw_noise_scale,
        )

    def _rows_per_step(self, n_rows: int) -> int:
        """Rows of a gradient step: the given number, or by default more where the table has more."""
        if self.batch_size != "auto":
            return int(self.batch_size)
        fewest, most = _BATCH
        grows = get_recipe(self.recipe).rates is None  # the paper's arithmetic depends on it
        return int(np.clip(n_rows // _STEPS_OF_AN_EPOCH, fewest, most)) if grows else fewest

    def _learn_leftover(self, codes: Codes) -> None:
        """What `impute` knows beyond the factors, of a table with holes."""
        for name in ("leftover_", "leftover_shares_", "leftover_bounds_"):
            self.__dict__.pop(name, None)
        found = find_leftover(codes)
        if found is not None:
            self.leftover_, self.leftover_shares_, self.leftover_bounds_ = found

    @contextmanager
    def _explained_failures(self, X: Matrix) -> Iterator[None]:
        """Say what of the table or the parameters makes a fit diverge, or take all memory."""
        try:
            yield
        except DivergenceError as error:
            row, column, value, ratio = extreme_cell(X)
            if ratio < EXTREME:
                raise
            place = "a row" if row < 0 else f"row {row + 1}"
            raise DivergenceError(
                f"Expected numbers of comparable size in each column; got {value:g} in {place} of "
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
        if not (self._finds_n_factors and isinstance(self.n_factors, str)):
            check_positive("n_factors", self.n_factors, integer=True)
        if not np.iterable(self.hidden_sizes) or isinstance(self.hidden_sizes, str):
            raise ParameterError(
                f"Expected hidden_sizes to be a tuple of widths, one per layer; got {self.hidden_sizes!r}. "
                "Pass (64, 64) for two layers, () for the linear model."
            )
        for size in self.hidden_sizes:
            check_positive("hidden_sizes", size, integer=True)
        if self.batch_size != "auto":
            check_positive("batch_size", self.batch_size, integer=True)
        if self.max_epochs is not None:
            check_positive("max_epochs", self.max_epochs, integer=True)
        check_positive("learning_rate", self.learning_rate)
        if float(self.learning_rate) > _LARGEST_STEP:
            raise ParameterError(
                f"Expected learning_rate of at most {_LARGEST_STEP:g}; got {self.learning_rate:g}. Pass for "
                "example 0.003."
            )
        check_fraction("validation_fraction", self.validation_fraction)
        check_choice("missing", self.missing, ("ignorable", "informative"))
        if not isinstance(self.size_factors, bool | np.bool_):
            raise ParameterError(
                f"Expected size_factors to be True or False; got {self.size_factors!r}. Pass False where row "
                "totals carry meaning."
            )

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

    def codes(
        self,
        X: TableLike,
        *,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Codes:
        """Posteriors of the rows of a table: checked once, each row encoded once.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        groups : array of shape (n_samples,), optional
            Groups of the rows, for a model fitted with groups. Groups that fit did not see are taken together
            as a new one, whose shifts are found from its rows; so are all rows where no groups are given.
        observed, exposure : array, optional
            See `fit`.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts where something is averaged over the rows.

        Returns
        -------
        Codes
            What `transform`, `score_samples` and the certificate are made from.
        """
        mind_fork()
        table = self.check_table(X, observed)
        return (StoredCodes if is_stored(table) else Codes)(
            self.module_,
            table,
            check_weights(sample_weight, table),
            group=self._group_numbers(groups, table),
            exposure=self._row_sizes(exposure, table),
        )

    def _learn_exposure(self, sizes: np.ndarray | None) -> None:
        """Whether fit was given sizes of the rows."""
        self.__dict__.pop("has_exposure_", None)
        if sizes is not None:
            self.has_exposure_ = True

    def _row_sizes(self, exposure: ArrayLike | None, X: Matrix) -> np.ndarray | None:
        """Sizes of the rows as an array; given where fit was given some."""
        sizes = check_exposure(exposure, X)
        if hasattr(self, "has_exposure_") != (sizes is not None):
            wanted, got = ("sizes of the rows", "None") if sizes is None else ("None", "sizes of rows")
            raise DataError(
                f"Expected exposure to be {wanted}, as in fit; got {got}. Describe rows as they were in fit."
            )
        return sizes

    def _learn_absences(self, X: Matrix) -> None:
        self.__dict__.pop("absent_columns_", None)
        if self.missing == "informative":
            columns = columns_with_holes(X)
            if not len(columns):
                warnings.warn(
                    "missing='informative' has nothing to model: the table has no missing value.",
                    DataWarning,
                    stacklevel=8,
                )
                return
            self.absent_columns_ = columns

    def _padded_levels(self) -> np.ndarray | None:
        """Levels of the columns, NaN for absences."""
        if not hasattr(self, "levels_"):
            return None
        more = len(getattr(self, "absent_columns_", ()))
        return np.concatenate([self.levels_, np.full((more, 3), np.nan)])

    def _learn_groups(self, labels: np.ndarray | None, weight: np.ndarray | None) -> np.ndarray | None:
        """Number of each row's group; the labels are kept."""
        self.__dict__.pop("groups_", None)
        if labels is None:
            return None
        if not self._takes_groups:
            raise ParameterError(
                f"Expected no groups for {type(self).__name__}, which has one prior for all rows; got some. "
                "Use SparseVAE or VAE."
            )
        self.groups_ = np.unique(labels if weight is None else labels[weight > 0])
        return number_groups(labels, self.groups_, depth=5)

    def _group_numbers(self, groups: ArrayLike | None, X: Matrix) -> np.ndarray | None:
        """Number of each row's group among those that fit saw, -1 for a new one."""
        labels = check_groups(groups, X)
        if not hasattr(self, "groups_"):
            if labels is not None:
                raise DataError(
                    "Expected no groups, as in fit; got some. Fit with groups=, or leave them out here."
                )
            return None
        if labels is None:
            warnings.warn(
                "The model was fitted with groups and none are given here: all rows are taken as one new "
                "group, whose shift of each feature is estimated from them. Pass groups=.",
                DataWarning,
                stacklevel=4,
            )
            return np.full(X.shape[0], -1)
        return number_groups(labels, self.groups_, depth=4)

    def transform(
        self,
        X: TableLike,
        *,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        return_std: bool = False,
        out: str | Path | None = None,
    ) -> Any:
        """Posterior means of the factors; columns of inactive factors are exactly zero.

        Parameters
        ----------
        X : array, data frame, sparse matrix or table on disk of shape (n_samples, n_features)
            May have missing values, whether or not the table fitted had.
        groups : array of shape (n_samples,), optional
            See `codes`.
        observed, exposure : array, optional
            See `fit`.
        out : str or Path, optional
            An NPY file to write the factors to, block by block; it is then returned as a mapped array.
        return_std : bool
            Whether to return the posterior standard deviations too: how well a row tells its factors.

        Returns
        -------
        ndarray of shape (n_samples, n_factors)
            Two of them with ``return_std``. An inactive factor has its prior's deviation, one.
        """
        codes = self.codes(X, groups=groups, observed=observed, exposure=exposure)
        if out is None:
            means = codes.means().astype(codes.X.dtype, copy=False)
            if not return_std:
                return means
            return means, codes.deviations().astype(codes.X.dtype, copy=False)
        if return_std:
            raise ParameterError(
                "Expected return_std=False where factors go to a file; got out and return_std. Write "
                "the factors first, and ask for the deviations of the rows that matter."
            )
        with array_on_disk(out, (codes.X.shape[0], self.module_.n_factors), codes.X.dtype) as append:
            for _, means in codes.blocks_of_means():
                append(means)
        return np.load(out, mmap_mode="r")

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
        return means.numpy()[:, : self.n_features_in_].astype(dtype, copy=False)

    def score_samples(
        self,
        X: TableLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> np.ndarray:
        """ELBO of each row in the units of the table, of what is observed of it.

        All rows share one fixed set of draws of the factors, so that the result is deterministic and a
        subset of rows gets the same values.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        sample_weight : array of shape (n_samples,), optional
            Each value is multiplied by the weight of its row.
        groups : array of shape (n_samples,), optional
            See `codes`.
        observed, exposure : array, optional
            See `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self.codes(X, groups=groups, observed=observed, exposure=exposure)
        weight = check_weights(sample_weight, codes.X)
        bounds = codes.bounds(self.score_draws())
        return bounds if weight is None else bounds * weight

    def score(
        self,
        X: TableLike,
        y: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> float:
        """Mean ELBO per sample in the units of the table, of what is observed of it; higher is better.

        Parameters
        ----------
        X, sample_weight, groups, observed, exposure
            As for `score_samples`; the mean is weighted.
        y : ignored
        """
        scores = self.score_samples(X, groups=groups, observed=observed, exposure=exposure)
        return mean_score(scores, check_weights(sample_weight, scores))

    def reconstruct(self, X: TableLike) -> np.ndarray:
        """Expected data at the posterior means of the factors; for counts, of a row of average size."""
        return self.inverse_transform(self.transform(X))

    def impute(
        self,
        X: TableLike,
        *,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        n_draws: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        out: str | Path | None = None,
    ) -> np.ndarray | pd.DataFrame:
        """Fill missing values with what the model expects of them, or with draws.

        A model of real numbers that was fitted to a table with holes also uses what its factors leave over of
        the correlations between features, and fills in nothing beyond an end of a feature's range that many
        values are at (`inspection.leftover`).

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        groups : array of shape (n_samples,), optional
            See `codes`.
        observed, exposure : array, optional
            See `fit`.
        n_draws : int, optional
            Draws of each missing value from its distribution given the rest of the row, for multiple
            imputation; by default its expected value (for categories without an order, the most probable
            one).
        random_state : int, RandomState or None
            Of the draws.
        out : str or Path, optional
            An NPY file to write the expected values to, block by block, which a table on disk needs; it is
            then returned as a mapped array.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_draws, n_samples, n_features)
            The table, dense, with observed values as they are. A data frame gives a data frame, unless draws
            are asked for.
        """
        codes = self.codes(X, groups=groups, observed=observed, exposure=exposure)
        n_features = self.n_features_in_
        leftover = None
        if hasattr(self, "leftover_"):
            bounds = getattr(self, "leftover_bounds_", None)  # models of before have none
            leftover = Leftover(self.leftover_, self.leftover_shares_, bounds)
        if out is not None or is_stored(codes.X):
            if out is None or n_draws is not None:
                raise ParameterError(
                    "Expected out=, the path of an NPY file, and no n_draws, to fill a table by blocks; got "
                    f"out={out!r}, n_draws={n_draws!r}. Pass out='filled.npy'."
                )
            with array_on_disk(out, (codes.X.shape[0], n_features), np.dtype(np.float64)) as append:
                for _, part in codes.blocks_of_codes():
                    values = dense_table(part.X)[:, :n_features].astype(np.float64)
                    holes = np.isnan(values)
                    if holes.any():
                        values = np.where(holes, fill_cells(part, leftover)[:, :n_features], values)
                    append(values)
            return np.load(out, mmap_mode="r")
        table = dense_table(codes.X)[:, :n_features].astype(np.float64)
        missing = np.isnan(table)
        if n_draws is not None:
            check_positive("n_draws", n_draws, integer=True)
            generator = _generator(new_random_state(random_state))
            draws = draw_cells(codes, n_draws, generator)
            if leftover is not None and missing.any():  # draws are about the value that is filled in
                draws += fill_cells(codes, leftover) - expect_cells(codes)
            return np.where(missing, draws[..., :n_features], table)
        filled = table
        if missing.any():
            filled = np.where(missing, fill_cells(codes, leftover)[:, :n_features], table)
        if isinstance(X, pd.DataFrame):
            return pd.DataFrame(filled, index=X.index, columns=X.columns)
        return filled

    def masked_score(
        self,
        X: TableLike,
        y: object = None,
        *,
        fraction: float = 0.1,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        observed: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> float:
        """Mean log density of hidden cells given the rest of their rows; higher is better.

        It needs no bound and charges nothing for factors: settings and numbers of factors may be compared by
        it, also on the table fitted if that had the cells hidden.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
        y : ignored
        fraction : float
            Of the observed cells that are hidden, at random.
        sample_weight : array of shape (n_samples,), optional
            How often each row counts.
        groups : array of shape (n_samples,), optional
            See `codes`.
        observed, exposure : array, optional
            See `fit`.
        random_state : int, RandomState or None
            Of the choice of cells.

        Returns
        -------
        float
            Per hidden cell, in the units of the table.
        """
        check_fraction("fraction", fraction)
        table = self.check_table(X, observed)
        if is_stored(table):
            raise DataError(
                f"Expected a table in memory, to hide cells of; got {table.where}. Pass some of its rows: "
                "X.rows(index)."
            )
        weight = check_weights(sample_weight, table)
        seen, hidden = hide_cells(table, fraction, new_random_state(random_state), self.n_features_in_)
        if not hidden.any():
            raise DataError(
                f"Expected some cells to hide; got none at fraction={fraction:g} in a table of shape "
                f"{table.shape}. Raise fraction, or pass more rows."
            )
        codes = Codes(
            self.module_,
            seen,
            group=self._group_numbers(groups, table),
            exposure=self._row_sizes(exposure, table),
        )
        density = hidden_log_density(codes, table, hidden)
        rows = np.ones(len(density)) if weight is None else weight
        return float((rows * density).sum() / (rows * hidden.sum(1)).sum())

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
        rows = draw_rows(self.module_, n_samples, _generator(new_random_state(random_state)))[1]
        return rows[:, : self.n_features_in_]

    # -- on disk --------------------------------------------------------------------------------------------

    def saved_state(self) -> State:
        """What fit has found; the module by its settings and tensors."""
        parameters = self.get_params(deep=False)
        fitted = {name: value for name, value in vars(self).items() if name not in parameters}
        module = fitted.pop("module_")
        return {"fitted": fitted, "module": module.to_dict()}

    def restore_state(self, state: State) -> None:
        """Become the fitted estimator that `saved_state` described, also one of version 0.1.

        Sizes are compared with those of the arrays before anything is built.
        """
        check_state(state["fitted"], type(self))
        self.__dict__.update(state["fitted"])
        saved = upgrade_saved_module(state["module"], self._module_class)
        n_groups = len(getattr(self, "groups_", ()))
        n_features = self.n_features_in_ + len(getattr(self, "absent_columns_", ()))
        observation = Observation.blank(self.resolved_likelihood(), n_features, n_groups, self.size_factors)
        module = self._module_class.from_dict(saved, observation)
        self.module_ = module.eval().requires_grad_(False)

    # -- helpers --------------------------------------------------------------------------------------------

    def _expected(self, z: Tensor) -> Tensor:
        """Expected data in the units of the table."""
        with torch.no_grad():
            return expected_rows(self.module_, self.module_.decode(z))


def _say_stopped(n_epochs: int, who: str) -> None:
    epochs = "1 epoch" if n_epochs == 1 else f"{n_epochs} epochs"
    warnings.warn(
        f"Stopped by {who} after {epochs}: this is the best model so far, not a finished fit. "
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
