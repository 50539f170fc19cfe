"""What features with a few levels have in common: numbers of levels, chances, draws."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
import torch
from torch import Generator, Tensor

from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods.base import Factorised, Parameters

__all__ = ["Levels", "log_shares"]

_PSEUDO_COUNT = 0.5  # of a level that no sample has, so that its chance is not zero


class Levels(Factorised):
    """Features whose values are levels 0, 1, ..., C - 1 in the units of the model.

    Parameters
    ----------
    n_levels : int
        The largest number of levels of any feature; the parameter ``n_levels`` has that of each.
    """

    support = "level"

    def __init__(self, n_levels: int = 5) -> None:
        if n_levels < 2:
            raise ParameterError(
                f"Expected at least 2 levels for the {self.name} likelihood; got {n_levels}. Leave out "
                "features that do not vary."
            )
        self.n_levels = int(n_levels)

    def with_levels(self, n_levels: np.ndarray) -> Self:
        return type(self)(int(np.max(n_levels, initial=2)))

    @abstractmethod
    def probabilities(self, output: Tensor, parameters: Parameters) -> Tensor:
        """Chance of each level: shape (n_levels, ..., n_samples, n_features)."""

    @abstractmethod
    def parameters_from_counts(self, counts: Tensor) -> dict[str, Tensor]:
        """Parameters at which an output of zero gives each level its share.

        Parameters
        ----------
        counts : Tensor of shape (n_levels, n_features)
            How often each level occurs.
        """

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        """Expected values at the first parameters; `expectation` has those of others."""
        first = self.initial_parameters(output.shape[-1])
        return self.expectation(output, {name: value.detach().to(output) for name, value in first.items()})

    def sample(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        chances = self.probabilities(output, parameters)
        uniform = torch.rand(chances.shape[1:], dtype=output.dtype, device=output.device, generator=generator)
        levels = (uniform > chances.cumsum(0)[:-1]).sum(0).to(output.dtype)
        return torch.minimum(levels, parameters["n_levels"] - 1.0)  # rounding may leave a sum below one

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return torch.zeros_like(feature_mean)

    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        """At an output of zero, where features have the shares that their parameters were made from."""
        return self.information_at(torch.zeros_like(feature_mean).unsqueeze(-2), parameters).squeeze(-2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_levels})"


def log_shares(counts: Tensor) -> Tensor:
    """Logarithm of the share of each level; one that never occurs, between others, has a small one."""
    last = torch.where(counts > 0, torch.arange(len(counts)).unsqueeze(-1), 0).amax(0)
    within = torch.arange(len(counts)).unsqueeze(-1) <= last
    filled = torch.where(within, counts.clamp_min(_PSEUDO_COUNT), 0.0)
    return torch.log(filled / filled.sum(0))
