"""From a checked table to what a fit works on: units, encoder inputs, training and validation rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.random import sample_without_replacement
from torch import Tensor

from sparsevae.aliases import Matrix, State
from sparsevae.annotations.levels import count_levels
from sparsevae.annotations.missing import empty_rows, has_missing
from sparsevae.annotations.weights import are_large
from sparsevae.exceptions import DataError, DataWarning, ParameterError
from sparsevae.likelihoods import Levels, Likelihood
from sparsevae.modules import LatentModule, Observation
from sparsevae.priors import calibrate_noise_scale
from sparsevae.stored import StoredTable, is_stored
from sparsevae.summaries import (
    EXTREME,
    column_moments,
    constant_columns,
    dense_table,
    lone_cell,
    resembles_counts,
    row_totals,
)
from sparsevae.training import Batches, RowSource, StoredBatches
from sparsevae.validation import shown

Positions: TypeAlias = np.ndarray | range
"""Rows of a table; all rows of a table on disk are a range."""

__all__ = ["FitData", "linear_inputs", "prepare"]

_CELLS_AT_ONCE = 1 << 22
_ROWS_AT_ONCE = (16, 4096)
_MOST_DROPPED = 0.1  # of an encoder's inputs in a training step
_MANY_INPUTS = 100  # from which on none of them is the only one that tells of its factor
_NOISE_SCALE = calibrate_noise_scale(np.ones(1))  # ξ of a standardised feature
_PLAIN_NOISE_SCALE = 0.05  # ξ of features without a noise variance, and of tables that do not vary
_MOST_SAMPLED = 50_000  # rows of a table on disk that are in memory, for axes, starts and readings
_MOST_HELD_OUT = 20_000  # rows of a table on disk to validate on; more would not tell more
_SAMPLED_CELLS, _FEWEST_SAMPLED = 1 << 24, 2000  # of the sample, whatever the number of features
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
    observed_fraction : Tensor of shape (n_features,) or None
        Fraction of the rows that have a value of each feature, by weight; None where nothing is missing.
    first_parameters : dict from str to Tensor
        Of the likelihood, where the table says where to begin: features last, NaN where it does not.
    group_shift : Tensor of shape (n_groups, n_features) or None
        Where the shifts of groups begin, in units of the decoder's output.
    generator, random_state
        All randomness of the fit.
    batch_size : int
    sample : FitData or None
        Of a table on disk: some of its rows, drawn at random, in memory. Axes, starts and what is read off a
        fit come from these; the gradient phases go over all rows.
    weight : Tensor of shape (n_samples,) or None
        How often each row of the table counts. The rows of a fit have these weights too, or come as often.
    positions : integer ndarray or None
        Of a sample: where its rows are in the table.
    passes : float
        How often the rows come in as many steps as all rows of the table take: above 1 of a sample.
    """

    source: RowSource
    training: Batches
    validation: Batches | None
    everything: Batches
    feature_mean: Tensor
    noise_scale: Tensor
    constant: np.ndarray
    observed_fraction: Tensor | None
    first_parameters: dict[str, Tensor]
    group_shift: Tensor | None
    generator: torch.Generator
    random_state: np.random.RandomState
    batch_size: int
    weight: Tensor | None = None
    sample: FitData | None = None
    positions: np.ndarray | None = None
    passes: float = 1.0

    def rows_to_read(self, most: int) -> np.ndarray:
        """Positions of at most so many rows, each once, in the order of the fit."""
        rows = self.everything.rows[:most].numpy()
        return rows[np.sort(np.unique(rows, return_index=True)[1])]

    @property
    def in_memory(self) -> FitData:
        """The rows that are in memory: all, or the sample of a table on disk."""
        return self if self.sample is None else self.sample

    @property
    def holes(self) -> float:
        """Fraction of the table that is missing."""
        return 0.0 if self.observed_fraction is None else 1.0 - float(self.observed_fraction.mean())

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
        return min(_MOST_DROPPED, n_features / self.training.n_samples)

    def calibrate_(self, module: LatentModule) -> None:
        """Give a new module the scale of the noise prior, and levels the shares that they have."""
        values = module.nuisance.values()
        if "noise_scale" in values:
            values["noise_scale"].copy_(self.noise_scale)
        with torch.no_grad():
            for name, first in self.first_parameters.items():
                values[name].copy_(torch.where(first.isnan(), values[name], first.to(values[name])))
            groups = module.row_groups
            if groups is not None and groups.shifts and self.group_shift is not None:
                groups.shift.copy_(self.group_shift)


def prepare(
    X: Matrix,
    likelihood: Likelihood,
    *,
    feature_names: Sequence[object] | np.ndarray,
    validation_fraction: float,
    batch_size: int,
    random_state: np.random.RandomState,
    device: torch.device,
    weight: np.ndarray | None = None,
    group: np.ndarray | None = None,
    group_shifts: bool = True,
    exposure: np.ndarray | None = None,
    size_factors: bool = True,
    levels: np.ndarray | None = None,
    raw_noise_scale: bool = False,
) -> FitData:
    """Measure a checked table and cut it into rows to train and rows to validate on.

    Parameters
    ----------
    X : ndarray, CSR matrix or StoredTable of shape (n_samples, n_features)
        NaN for what is missing.
    likelihood : Likelihood
    feature_names : sequence of length n_features
        For the warnings.
    validation_fraction : float
    batch_size : int
    random_state : RandomState
    device : torch.device
    weight : ndarray of shape (n_samples,), optional
        How often each row counts. Whole numbers of at most two on average let rows come as often.
    group : integer ndarray of shape (n_samples,), optional
        Group of each row, numbered from 0.
    group_shifts : bool
        Whether features have levels of their own in each group.
    exposure : ndarray of shape (n_samples,), optional
        Known size of each row of counts.
    size_factors : bool
        Whether the mean of a count is relative to the size of its row.
    levels : ndarray of shape (n_features, 3), optional
        As `annotations.levels.find_levels` returns them, where columns have levels.
    raw_noise_scale : bool
        See `Recipe`.

    Returns
    -------
    FitData
    """
    generator = torch.Generator().manual_seed(int(random_state.randint(2**31 - 1)))
    kept = _rows_to_fit(X, likelihood, weight, sized=size_factors and exposure is None)
    given = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
    all_rows = len(kept) == X.shape[0]
    if weight is not None and not is_stored(X) and _are_few_copies(weight):
        kept, weight, all_rows = np.repeat(kept, weight[kept].astype(np.intp)), None, False
    if is_stored(X):
        mean, variance = column_moments(X, _shares(X, kept, weight))
    else:
        own = None if weight is None else weight[kept]
        mean, variance = column_moments(X if all_rows else X[kept], own)
    constant = constant_columns(mean, variance)
    if constant.any():
        names = shown([feature_names[int(j)] for j in np.flatnonzero(constant)])
        _warn(
            f"{int(constant.sum())} of {len(constant)} features are constant, or vary by less than a "
            f"millionth of their mean: {names}. Their rows of the mask stay empty.",
            depth=4,
        )
    _warn_of_counts(X, likelihood, mean, variance)
    observation = _observe(
        X, kept, likelihood, mean, variance, constant, levels, weight, exposure, size_factors
    ).to(device)
    n_groups = 0 if group is None else int(group.max()) + 1
    shift = None
    if group is not None:
        observation = _with_groups(observation, n_groups).to(device)
        if group_shifts:
            shift = _group_shifts(X, kept, observation, group, weight, mean)
    _warn_of_lone_cell(X, mean, variance, observation, feature_names)
    source = RowSource(X, observation, device, weight=weight, group=group, exposure=exposure)
    means = np.where(observation.real_columns | observation.level_columns, 0.0, mean)
    noise_scale = np.full(len(mean), _NOISE_SCALE)
    if raw_noise_scale:
        noise_scale = _raw_noise_scale(observation, variance, constant)
    known: State = {
        "feature_mean": torch.as_tensor(means, dtype=torch.float32, device=device),
        "noise_scale": torch.as_tensor(noise_scale, dtype=torch.float32, device=device),
        "constant": constant,
        "observed_fraction": _observed_fraction(X, kept, weight).to(device) if source.has_missing else None,
        "first_parameters": {} if levels is None else _level_parameters(X, kept, likelihood, levels, weight),
        "group_shift": None if shift is None else shift.to(device),
        "weight": given,
        "generator": generator,
        "random_state": random_state,
        "batch_size": batch_size,
    }
    if is_stored(X):
        return _cut_stored(source, kept, validation_fraction, known)
    rows = torch.as_tensor(random_state.permutation(kept))
    n_validation = min(round(validation_fraction * len(kept)), len(kept) - 1)

    held_out, kept_rows = rows[:n_validation], rows[n_validation:]
    return FitData(
        source=source,
        training=Batches(source, kept_rows, batch_size, generator),
        validation=Batches(source, held_out, batch_size, generator) if n_validation else None,
        everything=Batches(source, rows, batch_size, generator),
        **known,
    )


def linear_inputs(batches: Batches, max_rows: int = 10_000) -> np.ndarray:
    """What the encoder sees of some rows, for linear analyses: (n_rows, n_features), NaN where it is missing.

    They come in the order of the table, and of many rows the same are drawn each time, so that what is found
    in all rows does not depend on the seed. Rows with weights come as often as these say, rounded so that the
    total is right; whole numbers are exact. Of a table on disk they are among those in memory.
    """
    if isinstance(batches, StoredBatches):
        batches = batches.sample
    rows = batches.rows.sort().values
    if batches.source.weight is not None:
        share = batches.source.weight[rows].double().numpy()
        share = share * min(1.0, max_rows / share.sum())
        times = np.diff(np.floor(np.cumsum(share) + 0.5), prepend=0.0).astype(np.intp)
        chosen = rows[torch.as_tensor(np.repeat(np.arange(len(times)), times))]
    else:
        chosen = rows
        if len(rows) > max_rows:
            drawn = np.random.default_rng(0).choice(len(rows), max_rows, replace=False)
            chosen = rows[torch.as_tensor(np.sort(drawn))]
    blocks = []
    for positions in chosen.split(int(np.clip(_CELLS_AT_ONCE // batches.source.n_features, *_ROWS_AT_ONCE))):
        batch = batches.source.batch(positions)
        inputs = batch.inputs.cpu().numpy()
        if batch.observed is not None:
            inputs = np.where(batch.observed.cpu().numpy(), inputs, np.float32(np.nan))
        blocks.append(inputs)
    return np.concatenate(blocks)


def _cut_stored(source: RowSource, kept: Positions, validation_fraction: float, known: State) -> FitData:
    """Rows to validate on, in memory and at most so many as say enough; a sample; the others stay on disk."""
    X: StoredTable = source.X
    generator, random_state, batch_size = known["generator"], known["random_state"], known["batch_size"]
    cells = X.shape[1] if not X.is_sparse else max(1, 2 * X.survey.n_nonzero // X.shape[0])
    most = max(_FEWEST_SAMPLED, _SAMPLED_CELLS // cells)
    n_validation = min(round(validation_fraction * len(kept)), len(kept) - 1, _MOST_HELD_OUT, most // 2)
    n_sample = min(len(kept) - n_validation, _MOST_SAMPLED, most)
    chosen = sample_without_replacement(len(kept), n_validation + n_sample, random_state=random_state)
    chosen = random_state.permutation(chosen)
    rows = chosen if isinstance(kept, range) else kept[chosen]
    positions, place = np.unique(rows, return_inverse=True)

    def side(values: Tensor | None) -> np.ndarray | None:
        return None if values is None else values[torch.as_tensor(positions)].numpy()

    local = RowSource(
        X.rows(positions),
        source.observation,
        source.device,
        weight=side(source.weight),
        group=side(source.group),
        exposure=side(source.exposure),
        holes=source.has_missing,
    )
    own = torch.as_tensor(place)
    sample = FitData(
        source=local,
        training=Batches(local, own[n_validation:], batch_size, generator),
        validation=Batches(local, own[:n_validation], batch_size, generator) if n_validation else None,
        everything=Batches(local, own, batch_size, generator),
        positions=positions,
        passes=(len(kept) - n_validation) / n_sample,
        **{**known, "weight": local.weight},
    )
    left_out = np.zeros(X.shape[0], dtype=bool)
    if not isinstance(kept, range):
        left_out[:] = True
        left_out[kept] = False
    held_out = left_out.copy()
    held_out[rows[:n_validation]] = True
    return FitData(
        source=source,
        training=StoredBatches(source, held_out, batch_size, generator, sample.training),
        validation=sample.validation,
        everything=StoredBatches(source, left_out, batch_size, generator, sample.everything),
        sample=sample,
        **known,
    )


def _shares(X: StoredTable, kept: Positions, weight: np.ndarray | None) -> np.ndarray | None:
    """How often each row of a table on disk counts, those that are left out not at all; None for once."""
    if isinstance(kept, range):
        return weight
    shares = np.zeros(X.shape[0], dtype=np.float32 if weight is None else np.float64)
    shares[kept] = 1.0 if weight is None else weight[kept]
    return shares


def _rows_to_fit(X: Matrix, likelihood: Likelihood, weight: np.ndarray | None, *, sized: bool) -> Positions:
    """Rows that say something about the factors, and count.

    Rows without counts say something where their size is known, or where totals carry meaning.
    """
    words = any(not part.factorised for part, _ in likelihood.split(X.shape[1]))
    if is_stored(X) and weight is None and len(X) > 1 and not (len(X.survey.empty) or len(X.survey.silent)):
        return range(len(X))
    kept = _rows_with_counts(X, likelihood) if sized or words else np.arange(X.shape[0])
    empty = empty_rows(X)
    if empty.any():
        _warn(
            f"{int(empty.sum())} of {X.shape[0]} rows hold no value at all: they are left out of the fit, "
            "and transform gives them the prior mean.",
            depth=5,
        )
    kept = kept[~empty[kept]]
    kept = kept if weight is None else kept[weight[kept] > 0]
    if len(kept) < 2:
        raise DataError(
            f"Expected at least 2 rows with values and a weight above 0; got {len(kept)} of {X.shape[0]}. "
            "Check that the table was read as it should."
        )
    return kept


def _are_few_copies(weight: np.ndarray) -> bool:
    """Whether weights are those of a table whose rows are repeated, a few times each.

    Such a fit is then, step by step, that of the repeated table: the same rows are held out and in each half.
    With many copies all halves would have the same rows, and whatever they show would seem to return.
    """
    return bool((weight == np.rint(weight)).all()) and not are_large(weight)


def _rows_with_counts(X: Matrix, likelihood: Likelihood) -> np.ndarray:
    """In a table of counts a row without any says nothing about the factors."""
    n_samples = X.shape[0]
    if any(part.support != "count" for part, _ in likelihood.split(X.shape[1])):
        return np.arange(n_samples)
    if is_stored(X):
        kept = np.delete(np.arange(n_samples), X.survey.silent)
    else:
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
            depth=6,
        )
    return kept


def _warn_of_counts(X: Matrix, likelihood: Likelihood, mean: np.ndarray, variance: np.ndarray) -> None:
    """The likelihood is Gaussian unless another is asked for, which counts do not suit."""
    if any(part.support != "real" for part, _ in likelihood.split(X.shape[1])) or mean.min() < 0:
        return
    if is_stored(X):
        values = np.concatenate([X.survey.maximum, X.survey.fraction, X.survey.minimum])
    else:
        values = np.asarray(X.data if hasattr(X, "tocsr") else X)
    if has_missing(values):
        values = values[~np.isnan(values)]
    if values.size and _are_whole(values) and values.max() > 1 and resembles_counts(X, mean, variance):
        _warn(
            "The table looks like counts and is fitted as real values. For counts pass "
            "likelihood='negative_binomial' or 'poisson', for words in documents 'multinomial'.",
            depth=5,
        )


def _warn_of_lone_cell(
    X: Matrix,
    mean: np.ndarray,
    variance: np.ndarray,
    observation: Observation,
    feature_names: Sequence[object] | np.ndarray,
) -> None:
    """One wrong number makes a column that says nothing else, and the fit goes well."""
    # Counts that are not zero are 1 or more, so few columns can have one that is far above the others.
    large = X.shape[0] * variance >= EXTREME**2 / 2
    named = observation.real_columns | (observation.count_columns & large)
    found = lone_cell(X, mean, np.where(named, variance, 0.0))
    if found is not None:
        row, column, value, ratio = found
        place = "One row" if row < 0 else f"Row {row + 1}"
        _warn(
            f"{place} of {str(feature_names[column])!r} has {value:g}, {ratio:.0e} times what is usual "
            "there. Beside it the rest of the column counts for nothing, and the number of factors may come "
            "out wrong. Check this cell.",
            depth=5,
        )


def _are_whole(values: np.ndarray) -> bool:
    """Whether all are whole numbers of 0 or more; most tables are told from a few of them."""
    few = values[: _ROWS_AT_ONCE[0]]
    return all(bool((part >= 0).all() and (part == np.rint(part)).all()) for part in (few, values))


def _observe(
    X: Matrix,
    kept: Positions,
    likelihood: Likelihood,
    mean: np.ndarray,
    variance: np.ndarray,
    constant: np.ndarray,
    levels: np.ndarray | None,
    weight: np.ndarray | None,
    exposure: np.ndarray | None,
    size_factors: bool,
) -> Observation:
    blank = Observation.blank(likelihood, X.shape[1], size_factors=size_factors)
    real = blank.real_columns
    location = np.where(real, mean, 0.0)
    deviation = np.sqrt(variance)
    # Of numbers around 1e9 a deviation of 100 is none; in units of 1 it would drown all other columns.
    scale = np.where(real, np.where(constant, np.maximum(deviation, 1.0), deviation), 1.0)
    if levels is not None:
        location = np.where(blank.level_columns, levels[:, 0], location)
        scale = np.where(blank.level_columns, levels[:, 1], scale)
    totals = mean[blank.size_columns].sum() or 1.0, mean[blank.total_columns].sum() or 1.0
    if exposure is not None:
        if not blank.size_columns.any():
            raise ParameterError(
                "Expected no exposure where no count is relative to it; got one. Leave it out, or use "
                "likelihood='poisson' or 'negative_binomial' with size_factors=True."
            )
        own = None if weight is None else weight[kept]
        totals = float(np.average(exposure[kept], weights=own)), totals[1]
    observation = Observation(
        likelihood,
        location,
        scale,
        np.zeros(X.shape[1]),
        np.ones(X.shape[1]),
        *totals,
        feature_mean=mean,
        size_factors=size_factors,
    )
    observation.standardise_inputs_(*_encoder_moments(X, kept, observation, weight, exposure))
    return observation


def _level_parameters(
    X: Matrix, kept: Positions, likelihood: Likelihood, levels: np.ndarray, weight: np.ndarray | None
) -> dict[str, Tensor]:
    """Parameters of features with levels, at which an output of zero gives each level its share."""
    if is_stored(X):
        weight = _shares(X, kept, weight)
    else:
        X, weight = X[kept], None if weight is None else weight[kept]
    found: dict[str, Tensor] = {}
    for part, columns in likelihood.split(X.shape[1]):
        if not isinstance(part, Levels):
            continue
        counts = torch.zeros(part.n_levels, len(columns))
        for c, j in enumerate(columns):
            own = torch.as_tensor(count_levels(X, levels, int(j), weight))
            counts[: len(own), c] = own.float()
        first = part.parameters_from_counts(counts)
        first["n_levels"] = torch.as_tensor(levels[columns, 2], dtype=torch.float32)
        for name, values in first.items():
            whole = found.setdefault(name, torch.full((*values.shape[:-1], X.shape[1]), torch.nan))
            whole[..., columns] = values
    return found


def _encoder_moments(
    X: Matrix,
    kept: Positions,
    observation: Observation,
    weight: np.ndarray | None,
    exposure: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the encoder's inputs before their standardisation, in one pass over the rows."""
    source = RowSource(X, observation, weight=weight, exposure=exposure)
    total, square = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    count: np.ndarray | float = 0.0
    step = int(np.clip(_CELLS_AT_ONCE // X.shape[1], *_ROWS_AT_ONCE))
    for begin in range(0, len(kept), step):
        batch = source.batch(torch.as_tensor(np.asarray(kept[begin : begin + step])))
        inputs = batch.inputs.double().numpy()  # zero where nothing is observed
        share = 1.0 if batch.weight is None else batch.weight.double().numpy()[:, None]
        total += (inputs * share).sum(0)
        square += (np.square(inputs) * share).sum(0)
        if batch.observed is None:
            count = count + float(batch.total_weight)
        else:
            count = count + (batch.observed.numpy() * share).sum(0)
    count = np.maximum(count, 1e-12)
    mean = total / count
    return mean, np.maximum(square / count - mean**2, 0.0)


def _with_groups(observation: Observation, n_groups: int) -> Observation:
    """The same observation, of rows in groups."""
    sizes = bool(observation.size_columns.any())
    other = Observation.blank(observation.likelihood, observation.n_features, n_groups, sizes)
    state = observation.state_dict() | {"group_inputs": other.group_inputs}
    other.load_state_dict(state)
    return other


def _group_shifts(
    X: Matrix,
    kept: Positions,
    observation: Observation,
    group: np.ndarray,
    weight: np.ndarray | None,
    mean: np.ndarray,
) -> Tensor:
    """Where shifts begin: each group at its own feature means; the encoder sees inputs relative to them."""
    location, scale = observation.location.cpu().double().numpy(), observation.scale.cpu().double().numpy()
    likelihood = observation.likelihood
    shifts, inputs = [], []
    for g in range(observation.n_groups):
        own = np.asarray(kept)[group[kept] == g]
        if is_stored(X):
            average = column_moments(X, _shares(X, own, weight))[0]
        else:
            average = column_moments(X[own], None if weight is None else weight[own])[0]
        level = (average - location) / scale
        overall = (mean - location) / scale
        at = [likelihood.initial_output(torch.as_tensor(values)) for values in (level, overall)]
        shifts.append((at[0] - at[1]).float())
        inputs.append(_encoder_moments(X, own, observation, weight)[0])
    observation.group_inputs.copy_(torch.as_tensor(np.array(inputs)))
    return torch.stack(shifts)


def _observed_fraction(X: Matrix, kept: Positions, weight: np.ndarray | None) -> Tensor:
    """Fraction of the rows with a value of each feature."""
    if is_stored(X):
        shares = _shares(X, kept, weight)
        missing = X.survey.n_missing if shares is None else _weighted_holes(X, shares)
        return torch.as_tensor(1.0 - missing / (len(X) if shares is None else shares.sum())).float()
    X, weight = X[kept], None if weight is None else weight[kept]
    if sparse.issparse(X):
        missing = np.zeros(X.shape[1])
        holes = X.tocoo()  # type: ignore[union-attr]
        where = np.isnan(holes.data)
        shares = np.ones(where.sum()) if weight is None else weight[holes.row[where]]
        np.add.at(missing, holes.col[where], shares)
        fraction = 1.0 - missing / (X.shape[0] if weight is None else weight.sum())
    else:
        fraction = np.average(~np.isnan(X), axis=0, weights=weight)
    return torch.as_tensor(fraction, dtype=torch.float32)


def _weighted_holes(X: StoredTable, shares: np.ndarray) -> np.ndarray:
    """Weight of the rows of a table on disk that lack each feature."""
    missing = np.zeros(X.shape[1])
    for begin, block in X.blocks():
        own = shares[begin : begin + block.shape[0]]
        missing += own @ np.isnan(dense_table(block))
    return missing


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
