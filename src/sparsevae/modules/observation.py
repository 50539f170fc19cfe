"""Between the user's table and the network: units, encoder inputs and size factors, fixed before training."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sparsevae.likelihoods import Likelihood

__all__ = ["Observation"]


class Observation(nn.Module):
    """How one table is observed: the likelihood, the units of the model, and what the encoder sees.

    Real-valued features are modelled in units of their own mean and standard deviation. Counts and binary features
    are modelled as they are; the encoder sees the logarithm of one plus the count, standardised.

    Parameters
    ----------
    likelihood : Likelihood
    location, scale : array of shape (n_features,)
        Units of the model, ``(x - location) / scale``; 0 and 1 for features that are not real-valued.
    input_location, input_scale : array of shape (n_features,)
        Standardisation of the encoder's inputs.
    mean_total : float
        Average row total, the unit of the size factors.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        location: np.ndarray,
        scale: np.ndarray,
        input_location: np.ndarray,
        input_scale: np.ndarray,
        mean_total: float = 1.0,
    ) -> None:
        super().__init__()
        self.likelihood = likelihood
        self.n_features = len(location)
        for name, value in (
            ("location", location),
            ("scale", scale),
            ("input_location", input_location),
            ("input_scale", input_scale),
        ):
            self.register_buffer(name, torch.as_tensor(np.asarray(value), dtype=torch.float32))
        self.register_buffer("mean_total", torch.tensor(float(mean_total)))
        parts = likelihood.split(self.n_features)
        self.real_columns = _columns(parts, lambda part: part.support == "real", self.n_features)
        self.count_columns = _columns(parts, lambda part: part.support == "count", self.n_features)
        self.size_columns = _columns(parts, lambda part: part.uses_size, self.n_features)
        self.dispersed_columns = _columns(parts, lambda part: part.has_dispersion and part.support == "count", self.n_features)
        self.total_columns = _columns(parts, lambda part: not part.factorised, self.n_features)

    def to_model_units(self, x: Tensor) -> Tensor:
        """The table in the units of the model."""
        return (x - self.location) / self.scale if self.real_columns.any() else x

    def to_user_units(self, mean: Tensor) -> Tensor:
        """Expected values back in the units of the table."""
        return mean * self.scale + self.location if self.real_columns.any() else mean

    def log_jacobian(self) -> Tensor:
        """What the change of units adds to a log density in the units of the table."""
        return -self.scale.log().sum()

    def size(self, x: Tensor) -> Tensor | None:
        """Size factor of each row, 1 for an average row; None where the likelihood has no use for it."""
        if not self.size_columns.any():
            return None
        counted = x if self.size_columns.all() else x[..., self._index(self.size_columns, x)]
        return (counted.sum(-1) / self.mean_total).clamp_min(1e-6)

    def total(self, x: Tensor) -> Tensor | None:
        """Row totals that a multinomial conditions on; None for other likelihoods."""
        if not self.total_columns.any():
            return None
        return x[..., self._index(self.total_columns, x)].sum(-1)

    def encoder_input(self, x: Tensor) -> Tensor:
        """What the encoder sees of rows in model units: logarithms of counts, everything standardised."""
        if self.count_columns.all():
            size = self.size(x)
            x = torch.log1p(x if size is None else x / size.unsqueeze(-1))
        elif self.count_columns.any():
            size = self.size(x)
            scaled = x if size is None else x / size.unsqueeze(-1)
            counts = torch.as_tensor(self.count_columns, device=x.device)
            x = torch.where(counts, torch.log1p(scaled.clamp_min(0.0)), x)
        return (x - self.input_location) / self.input_scale

    def _index(self, columns: np.ndarray, x: Tensor) -> Tensor:
        return torch.as_tensor(np.flatnonzero(columns), device=x.device)


def _columns(parts: list, wanted, n_features: int) -> np.ndarray:
    chosen = np.zeros(n_features, dtype=bool)
    for part, columns in parts:
        if wanted(part):
            chosen[columns] = True
    return chosen
