"""What a step takes: rows of a table with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Batch"]


class Batch(NamedTuple):
    """Rows of a table as a module takes them; `Observation.batch` makes one.

    Attributes
    ----------
    x : Tensor of shape (..., n_rows, n_features)
        Values in the units of the model.
    inputs : Tensor of shape (..., n_rows, n_features)
        What the encoder sees.
    size : Tensor of shape (..., n_rows), optional
        Size factors, where the likelihood has a use for them.
    total : Tensor of shape (..., n_rows), optional
        Row totals that a multinomial conditions on.
    observed : boolean Tensor of shape (..., n_rows, n_features), optional
        Which entries count in the likelihood; all by default.
    weight : Tensor of shape (..., n_rows), optional
        How often each row counts; once by default.
    group : integer Tensor of shape (..., n_rows), optional
        Study or batch of each row, for models that know of groups.
    features : integer Tensor, optional
        Features of this step's reconstruction; all by default.
    """

    x: Tensor
    inputs: Tensor
    size: Tensor | None = None
    total: Tensor | None = None
    observed: Tensor | None = None
    weight: Tensor | None = None
    group: Tensor | None = None
    features: Tensor | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.x.shape[-2]

    def rows(self, index: Tensor | slice) -> Batch:
        """Some of the rows."""
        return Batch(
            self.x[..., index, :],
            self.inputs[..., index, :],
            None if self.size is None else self.size[..., index],
            None if self.total is None else self.total[..., index],
            None if self.observed is None else self.observed[..., index, :],
            None if self.weight is None else self.weight[..., index],
            None if self.group is None else self.group[..., index],
            self.features,
        )

    def split(self, size: int) -> Iterator[Batch]:
        """Parts of at most so many rows."""
        for start in range(0, self.n_rows, size):
            yield self.rows(slice(start, start + size))

    def repeated(self, times: int) -> Batch:
        """All rows several times, one copy after the other."""
        return self.rows(torch.arange(self.n_rows, device=self.x.device).repeat(times))

    def copied(self) -> Batch:
        """The same values in tensors of their own."""
        return Batch(*(None if value is None else value.clone() for value in self))  # type: ignore[arg-type]

    @property
    def total_weight(self) -> Tensor | int:
        """Number of rows, each as often as its weight says."""
        return self.n_rows if self.weight is None else self.weight.sum(-1)

    def row_sum(self, values: Tensor) -> Tensor:
        """Sum over the rows, each as often as its weight says, of values of shape (..., n_rows, n)."""
        if self.weight is None:
            return values.sum(-2)
        return (values * self.weight.unsqueeze(-1)).sum(-2)

    def row_mean(self, values: Tensor) -> Tensor:
        """Mean of one value per row over the rows, each as often as its weight says."""
        if self.weight is None:
            return values.mean(-1)
        return (values * self.weight).sum(-1) / self.weight.sum(-1)
