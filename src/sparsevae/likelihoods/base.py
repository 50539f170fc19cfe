"""What every likelihood offers, so that nothing above has to ask for a likelihood's name."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from torch import Generator, Tensor

__all__ = ["Likelihood"]


class Likelihood(ABC):
    """How a sample is distributed given the decoder's output; the package's docstring has the shapes.

    The objects hold no tensors: one of them serves any device, any dtype, and any number of replicates.

    Attributes
    ----------
    name : str
        What a user types.
    support : str
        Which numbers may occur: "real", "count", "binary", or "mixed" where that depends on the column.
    factorised : bool
        Whether features are independent given the output, so that a subset of them has a density of its own.
    has_dispersion : bool
        Whether `log_prob` and `sample` need one dispersion per feature.
    uses_size : bool
        Whether a size factor multiplies the mean.
    """

    name: str
    support: str
    factorised: bool = True
    has_dispersion: bool = False
    uses_size: bool = False

    @abstractmethod
    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        """Log density of each sample, summed over features: shape (..., n_samples)."""

    @abstractmethod
    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        """Expected data: shape (..., n_samples, n_features)."""

    @abstractmethod
    def sample(
        self,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """One draw of the data: shape (..., n_samples, n_features)."""

    @abstractmethod
    def initial_output(self, feature_mean: Tensor) -> Tensor:
        """The output with these feature means (of ``x / size`` where there is a size): (..., n_features)."""

    @abstractmethod
    def information(self, feature_mean: Tensor, *, dispersion: Tensor | None = None) -> Tensor:
        """Fisher information of one sample about each output, at these feature means: (..., n_features)."""

    def split(self, n_features: int) -> list[tuple[Likelihood, np.ndarray]]:
        """Each simple likelihood with the columns that it describes; a single pair unless columns differ."""
        return [(self, np.arange(n_features))]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
