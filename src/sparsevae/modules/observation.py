"""Between the user's table and the network: units, encoder inputs and size factors, fixed before training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from sparsevae.likelihoods import Likelihood
from sparsevae.modules.batch import Batch

__all__ = ["Observation"]


class Observation(nn.Module):
    """How one table is observed: the likelihood, the units of the model, and what the encoder sees.

    Real-valued features are modelled in units of their own mean and standard deviation. Counts and binary
    features are modelled as they are; the encoder sees the logarithm of one plus the count, standardised.

    Parameters
    ----------
    likelihood : Likelihood
    location, scale : array of shape (n_features,)
        Units of the model, ``(x - location) / scale``; the first level and the step between two of features
        with levels; 0 and 1 for counts and zeros and ones.
    input_location, input_scale : array of shape (n_features,)
        Standardisation of the encoder's inputs.
    mean_total : float
        Average row total of the columns that have size factors, which is the unit of these.
    mean_words : float
        Average row total of the multinomial columns, the length of an average document.
    feature_mean : array of shape (n_features,), optional
        Average of each feature in the units of the table: what a row that lacks some is compared with.
    n_groups : int
        Groups of rows; the encoder sees inputs relative to the average of their group.
    size_factors : bool
        Whether the mean of a count is relative to the size of its row.

    Attributes
    ----------
    real_columns, count_columns, level_columns : boolean array of shape (n_features,)
        Features with real values; with counts of any kind; with levels, in order or not.
    ordered_columns : boolean array of shape (n_features,)
        Features whose values are numbers, not categories without an order.
    size_columns, total_columns : boolean array of shape (n_features,)
        Counts whose mean a size factor multiplies; counts that share a total.
    """

    location: Tensor
    scale: Tensor
    input_location: Tensor
    input_scale: Tensor
    mean_total: Tensor
    mean_words: Tensor
    group_inputs: Tensor

    def __init__(
        self,
        likelihood: Likelihood,
        location: ArrayLike | Tensor,
        scale: ArrayLike | Tensor,
        input_location: ArrayLike | Tensor,
        input_scale: ArrayLike | Tensor,
        mean_total: float = 1.0,
        mean_words: float = 1.0,
        feature_mean: ArrayLike | None = None,
        n_groups: int = 0,
        size_factors: bool = True,
    ) -> None:
        super().__init__()
        self.likelihood = likelihood
        self.n_features = int(np.shape(location)[0])
        for name, value in (
            ("location", location),
            ("scale", scale),
            ("input_location", input_location),
            ("input_scale", input_scale),
            ("mean_total", mean_total),
            ("mean_words", mean_words),
        ):
            self.register_buffer(name, torch.as_tensor(value, dtype=torch.float32).clone())
        self.n_groups = n_groups
        if n_groups:
            self.register_buffer("group_inputs", torch.zeros(n_groups, self.n_features))
        # Units in full precision, which a change of the module's dtype leaves alone: the same table in other
        # units is then the same numbers to the model.
        means = np.zeros(self.n_features) if feature_mean is None else np.asarray(feature_mean)
        self._units = np.array([np.asarray(location), np.asarray(scale), means], dtype=np.float64)
        parts = likelihood.split(self.n_features)

        def columns(wanted: Callable[[Likelihood], bool]) -> np.ndarray:
            chosen = np.zeros(self.n_features, dtype=bool)
            for part, where in parts:
                chosen[where] = wanted(part)
            return chosen

        self.real_columns = columns(lambda part: part.support == "real")
        self.count_columns = columns(lambda part: part.support == "count")
        self.level_columns = columns(lambda part: part.support == "level")
        self.ordered_columns = columns(lambda part: part.ordered)
        self.size_columns = columns(lambda part: part.uses_size and size_factors)
        self.total_columns = columns(lambda part: not part.factorised)
        # Asked for in every step: kept as plain values.
        self._any_units = bool((self.real_columns | self.level_columns).any())
        self._any_count = bool(self.count_columns.any())
        self._any_size, self._any_total = bool(self.size_columns.any()), bool(self.total_columns.any())

    @classmethod
    def blank(
        cls, likelihood: Likelihood, n_features: int, n_groups: int = 0, size_factors: bool = True
    ) -> Observation:
        """An observation in the table's own units, to be filled in."""
        zeros, ones = np.zeros(n_features), np.ones(n_features)
        return cls(likelihood, zeros, ones, zeros, ones, n_groups=n_groups, size_factors=size_factors)

    def standardise_inputs_(self, mean: np.ndarray, variance: np.ndarray) -> None:
        """Let the encoder see inputs with these moments in units of their deviation."""
        self.input_location.copy_(torch.as_tensor(mean))
        self.input_scale.copy_(torch.as_tensor(np.where(variance > 1e-12, np.sqrt(variance), 1.0)))

    def batch(
        self,
        x: Tensor,
        *,
        observed: Tensor | None = None,
        weight: Tensor | None = None,
        group: Tensor | None = None,
        exposure: Tensor | None = None,
    ) -> Batch:
        """What a module takes of rows in model units.

        Parameters
        ----------
        x : Tensor of shape (..., n_rows, n_features)
            Zero where it is not observed.
        observed, weight, group : Tensor, optional
            See `Batch`.
        exposure : Tensor of shape (..., n_rows), optional
            What the size of each row is known to be, in units of the table; its total by default.
        """
        size = self.size(x, observed)
        if exposure is not None and size is not None:
            size = (exposure / self.mean_total).to(x)
        inputs = self.encoder_input(x, size)
        if group is not None and self.n_groups:
            inputs = inputs - self.group_inputs[group]
        if observed is not None:
            inputs = torch.where(observed, inputs, 0.0)  # the mean of a standardised input
        return Batch(x, inputs, size, self.total(x), observed, weight, group)

    def to_model_units(self, block: np.ndarray) -> Tensor:
        """Rows of the table in the units of the model, computed in float64 and rounded once."""
        if self._any_units:
            location, scale, _ = self._units
            block = (block.astype(np.float64) - location) / scale
        # torch has no read-only tensors and warns where it would share such memory.
        return torch.as_tensor(np.require(block, requirements=["C", "W"])).to(self.location)

    def get_extra_state(self) -> Tensor:
        """Units in full precision, for `state_dict`."""
        return torch.as_tensor(self._units.copy())

    def set_extra_state(self, state: Tensor) -> None:
        """Take back what `get_extra_state` gave."""
        self._units = state.detach().cpu().double().numpy()

    def to_user_units(self, x: Tensor) -> Tensor:
        """Values back in the units of the table."""
        return x * self.scale + self.location if self._any_units else x

    def expected_in_user_units(self, mean: Tensor) -> Tensor:
        """Expected values in the units of the table; chances, of categories without an order, as they are."""
        if self.ordered_columns.all():
            return self.to_user_units(mean)
        return torch.where(torch.as_tensor(self.ordered_columns), self.to_user_units(mean), mean)

    def log_jacobian(self) -> Tensor:
        """What the change of units adds to a log density in the units of the table."""
        return torch.as_tensor(self.log_jacobians().sum(), device=self.scale.device)

    def log_jacobians(self) -> np.ndarray:
        """The same for each feature: shape (n_features,)."""
        return -np.log(np.where(self.level_columns, 1.0, self._units[1]))  # chances of levels have no units

    def size(self, x: Tensor, observed: Tensor | None = None) -> Tensor | None:
        """Size factor of each row, 1 for an average row; None where the likelihood has no use for it.

        A row with holes is compared with an average row that has the same ones.
        """
        if not self._any_size:
            return None
        columns = self._index(self.size_columns, x)
        counted = x if self.size_columns.all() else x[..., columns]
        if observed is None:
            return (counted.sum(-1) / self.mean_total).clamp_min(1e-6)
        mean = torch.as_tensor(self._units[2, self.size_columns]).to(x)
        if not mean.any():  # not known
            mean = self.mean_total.to(x) / len(mean) * torch.ones_like(mean)
        expected = (observed[..., columns] * mean).sum(-1)
        size = (counted.sum(-1) / expected.clamp_min(1e-12)).clamp_min(1e-6)
        return torch.where(expected > 0, size, 1.0)

    def total(self, x: Tensor) -> Tensor | None:
        """Row totals that a multinomial conditions on; None for other likelihoods."""
        if not self._any_total:
            return None
        return x[..., self._index(self.total_columns, x)].sum(-1)

    def average_rows(self, n_samples: int, *, whole: bool = False) -> dict[str, Tensor | None]:
        """Size and total of rows of average size, as `Likelihood.mean` and `Likelihood.sample` take them.

        Parameters
        ----------
        n_samples : int
        whole : bool
            Round the total to a whole number of words, to draw them.
        """
        words = self.mean_words.round().clamp_min(1.0) if whole else self.mean_words
        return {
            "size": self.mean_total.new_ones(n_samples) if self._any_size else None,
            "total": words.expand(n_samples) if self._any_total else None,
        }

    def encoder_input(self, x: Tensor, size: Tensor | None) -> Tensor:
        """What the encoder sees of rows in model units: logarithms of counts, everything standardised.

        Counts with size factors are divided by them first, so that the factors do not have to explain how
        large a row is.
        """
        if self._any_count:
            counts = torch.as_tensor(self.count_columns, device=x.device)
            scaled = x if size is None else x / size.unsqueeze(-1)
            x = torch.where(counts, torch.log1p(scaled.clamp_min(0.0)), x)
        return (x - self.input_location) / self.input_scale

    def _index(self, columns: np.ndarray, x: Tensor) -> Tensor:
        return torch.as_tensor(np.flatnonzero(columns), device=x.device)
