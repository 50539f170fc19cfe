"""From a checked table to what a fit works on: units, encoder inputs, training and validation rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sparsevae.aliases import Matrix
from sparsevae.exceptions import DataError, DataWarning, ParameterError
from sparsevae.likelihoods import Likelihood, get_likelihood
from sparsevae.modules import LatentModule, Observation
from sparsevae.priors import calibrate_noise_scale
from sparsevae.training import Batches, RowSource
from sparsevae.validation import column_moments, constant_columns, resembles_counts, row_totals, shown

__all__ = ["FitData", "named_likelihood", "prepare"]

_CELLS_AT_ONCE = 1 << 22
_ROWS_AT_ONCE = (16, 4096)
_MOST_DROPPED = 0.1  # of an encoder's inputs in a training step
_MANY_INPUTS = 100  # from which on none of them is the only one that tells of its factor
_NOISE_SCALE = calibrate_noise_scale(np.ones(1))  # ξ of a standardised feature
_PLAIN_NOISE_SCALE = 0.05  # ξ of features without a noise variance, and of tables that do not vary
_FAR_APART = 100.0  # ratio of standard deviations from which on one noise prior does not suit all features


@dataclass
class FitData:
    """A checked table, cut into training and validation rows, with the randomness of one fit.

    Attributes
    ----------
    source : RowSource
    training, everything : Batches
        Rows without and with the held-out ones.
    validation : Batches or None
        Held-out rows.
    feature_mean, noise_scale : Tensor of shape (n_features,)
        Mean of each feature, and ξ of the noise prior, in the units of the model.
    constant : boolean array of shape (n_features,)
        Features that do not vary.
    generator, random_state
        All randomness of the fit.
    batch_size : int
    """

    source: RowSource
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

    @property
    def input_dropout(self) -> float:
        """Fraction of its inputs that an encoder does without in each training step.

        An encoder with many inputs and few rows overfits; the danger grows with their ratio. Where inputs are
        few, one that is left out would be missed, and noise variances come out too large.
        """
        n_features = self.source.n_features
        if n_features < _MANY_INPUTS:
            return 0.0
        return min(_MOST_DROPPED, n_features / self.training.n_rows)

    def calibrate_(self, module: LatentModule) -> None:
        """Give a new module the scale of the noise prior."""
        if "noise_scale" in module.nuisance.values():
            module.nuisance.values()["noise_scale"].copy_(self.noise_scale)


def prepare(
    X: Matrix,
    likelihood: Likelihood,
    *,
    feature_names: Sequence[object] | np.ndarray,
    validation_fraction: float,
    batch_size: int,
    random_state: np.random.RandomState,
    device: torch.device,
    raw_noise_scale: bool = False,
) -> FitData:
    """Measure a checked table and cut it into rows to train and rows to validate on.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    likelihood : Likelihood
    feature_names : sequence of length n_features
        For the warnings.
    validation_fraction : float
    batch_size : int
    random_state : RandomState
    device : torch.device
    raw_noise_scale : bool
        See `Recipe`.

    Returns
    -------
    FitData
    """
    generator = torch.Generator().manual_seed(int(random_state.randint(2**31 - 1)))
    kept = _rows_with_counts(X, likelihood)
    mean, variance = column_moments(X if len(kept) == X.shape[0] else X[kept])
    constant = constant_columns(mean, variance)
    if constant.any():
        names = shown([feature_names[int(j)] for j in np.flatnonzero(constant)])
        _warn(
            f"{int(constant.sum())} of {len(constant)} features are constant, or vary by less than a "
            f"millionth of their mean: {names}. Their rows of the mask stay empty.",
            depth=4,
        )
    _warn_of_counts(X, likelihood, mean, variance)
    observation = _observe(X, kept, likelihood, mean, variance, constant).to(device)
    source = RowSource(X, observation, device)
    rows = torch.as_tensor(random_state.permutation(kept))
    n_validation = min(round(validation_fraction * len(kept)), len(kept) - 1)

    held_out, kept_rows = rows[:n_validation], rows[n_validation:]
    means = np.where(observation.real_columns, 0.0, mean)
    noise_scale = np.full(len(mean), _NOISE_SCALE)
    if raw_noise_scale:
        noise_scale = _raw_noise_scale(observation, variance, constant)
    return FitData(
        source=source,
        training=Batches(source, kept_rows, batch_size, generator),
        validation=Batches(source, held_out, batch_size, generator) if n_validation else None,
        everything=Batches(source, rows, batch_size, generator),
        feature_mean=torch.as_tensor(means, dtype=torch.float32, device=device),
        noise_scale=torch.as_tensor(noise_scale, dtype=torch.float32, device=device),
        constant=constant,
        generator=generator,
        random_state=random_state,
        batch_size=batch_size,
    )


def named_likelihood(
    spec: object, n_features: int, feature_names: Sequence[object] | np.ndarray | None
) -> Likelihood:
    """The likelihood that a user asked for, with columns named or counted.

    Parameters
    ----------
    spec : str, Likelihood or mapping from likelihood to columns
    n_features : int
    feature_names : sequence of str or None
        None where the table has no names.
    """
    if not isinstance(spec, Mapping):
        return get_likelihood(spec, n_features)
    position = {name: j for j, name in enumerate(feature_names if feature_names is not None else ())}

    def resolve(columns: object) -> object:
        if isinstance(columns, slice):
            return columns
        wanted = [columns] if isinstance(columns, str) else list(columns)  # type: ignore[call-overload]
        unknown = [column for column in wanted if isinstance(column, str) and column not in position]
        if unknown:
            raise ParameterError(
                f"Expected likelihood to name columns of the table; got {shown(unknown)}. Use the names of "
                "a data frame's columns, or positions counted from 0."
            )
        return [position[column] if isinstance(column, str) else column for column in wanted]

    return get_likelihood({family: resolve(columns) for family, columns in spec.items()}, n_features)


def _rows_with_counts(X: Matrix, likelihood: Likelihood) -> np.ndarray:
    """Rows to fit; in a table of counts a row without any says nothing about the factors."""
    n_samples = X.shape[0]
    if any(part.support != "count" for part, _ in likelihood.split(X.shape[1])):
        return np.arange(n_samples)
    kept = np.flatnonzero(row_totals(X) > 0)
    if len(kept) < 2:
        raise DataError(
            f"Expected at least 2 rows with counts; got {len(kept)} of {n_samples}. Check that the table "
            "was read as it should."
        )
    if len(kept) < n_samples:
        _warn(
            f"{n_samples - len(kept)} of {n_samples} rows hold no counts at all: they are left out of the "
            "fit, and transform gives them the prior mean, zero.",
            depth=5,
        )
    return kept


def _warn_of_counts(X: Matrix, likelihood: Likelihood, mean: np.ndarray, variance: np.ndarray) -> None:
    """The likelihood is Gaussian unless another is asked for, which counts do not suit."""
    if any(part.support != "real" for part, _ in likelihood.split(X.shape[1])) or mean.min() < 0:
        return
    values = np.asarray(X.data if hasattr(X, "tocsr") else X)
    if values.size and _are_whole(values) and values.max() > 1 and resembles_counts(X, mean, variance):
        _warn(
            "The table looks like counts and is fitted as real values. For counts pass "
            "likelihood='negative_binomial' or 'poisson', for words in documents 'multinomial'.",
            depth=5,
        )


def _are_whole(values: np.ndarray) -> bool:
    """Whether all are whole numbers of 0 or more; most tables are told from a few of them."""
    few = values[: _ROWS_AT_ONCE[0]]
    return all(bool((part >= 0).all() and (part == np.rint(part)).all()) for part in (few, values))


def _observe(
    X: Matrix,
    kept: np.ndarray,
    likelihood: Likelihood,
    mean: np.ndarray,
    variance: np.ndarray,
    constant: np.ndarray,
) -> Observation:
    blank = Observation.blank(likelihood, X.shape[1])
    real = blank.real_columns
    location = np.where(real, mean, 0.0)
    scale = np.where(real & ~constant, np.sqrt(variance), 1.0)
    totals = mean[blank.size_columns].sum() or 1.0, mean[blank.total_columns].sum() or 1.0
    observation = Observation(likelihood, location, scale, np.zeros(X.shape[1]), np.ones(X.shape[1]), *totals)
    observation.standardise_inputs_(*_encoder_moments(X, kept, observation))
    return observation


def _encoder_moments(X: Matrix, kept: np.ndarray, observation: Observation) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the encoder's inputs before their standardisation, in one pass over the rows."""
    source = RowSource(X, observation)
    total, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    step = int(np.clip(_CELLS_AT_ONCE // X.shape[1], *_ROWS_AT_ONCE))
    for rows in torch.as_tensor(kept).split(step):
        inputs = source.batch(rows).inputs.double().numpy()
        total += inputs.sum(0)
        square += np.square(inputs).sum(0)
    mean = total / len(kept)
    return mean, np.maximum(square / len(kept) - mean**2, 0.0)


def _raw_noise_scale(observation: Observation, variance: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """ξ_j = ξ / s_j², with ξ calibrated on the variances of the features as they are, as in the paper."""
    real = observation.real_columns & ~constant
    if not real.any():
        return np.full(len(real), _PLAIN_NOISE_SCALE)
    xi = calibrate_noise_scale(variance[real])
    deviations = np.sqrt(variance[real])
    if deviations.max() > _FAR_APART * deviations.min():
        _warn(
            f"The standard deviations of the features reach from {deviations.min():.3g} to "
            f"{deviations.max():.3g}, and this recipe has one noise prior for all: features in small units "
            "are taken for noise. "
            "Standardise the table, or use recipe='default', in which units do not matter.",
            depth=4,
        )
    return np.where(real, xi / np.where(constant, 1.0, variance), _PLAIN_NOISE_SCALE)


def _warn(message: str, *, depth: int) -> None:
    """Warn at the line of the user's call of fit, which is ``depth`` calls above the one that warns."""
    warnings.warn(message, DataWarning, stacklevel=depth + 2)
