"""What a likelihood is: densities, means, draws, and the parameters beside the decoder's output.

A new likelihood is a subclass of `Likelihood` or `Factorised` in a file of its own, and a line in
`registry.LIKELIHOODS`; nothing above asks for a likelihood's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
import torch
from torch import Generator, Tensor

from sparsevae.exceptions import ParameterError

__all__ = ["SMALLEST_MEAN", "Factorised", "Likelihood", "Parameters", "per_feature"]

SMALLEST_MEAN = 1e-7
"""A feature that is always zero starts at a finite output."""

Parameters = Mapping[str, Tensor]
"""Parameters of a likelihood by name; features are the last dimension of each."""

_FLOOR = (
    1e-6  # smallest mean, probability or fraction of words of a reconstruction: that of the released code
)


class Likelihood(ABC):
    """How a sample is distributed given the decoder's output; the package's docstring has the shapes.

    The objects hold no tensors: one of them serves any device, any dtype, and any number of replicates.

    Attributes
    ----------
    name : str
        What a user types.
    support : str
        Which numbers may occur: "real", "count", "binary", "level" (a few, evenly spaced), or "mixed" where
        that depends on the column.
    factorised : bool
        Whether features are independent given the output, so that a subset of them has a density of its own.
    uses_size : bool
        Whether a size factor multiplies the mean.
    ordered : bool
        Whether values are numbers; the expectation of categories without an order is a chance.
    shared : frozenset of str
        Parameters that all replicates have in common.
    """

    name: str
    support: str
    factorised: bool = True
    uses_size: bool = False
    ordered: bool = True
    shared: frozenset[str] = frozenset()

    # -- the distribution -----------------------------------------------------------------------------------

    @abstractmethod
    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        parameters: Parameters,
        *,
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
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """One draw of the data: shape (..., n_samples, n_features)."""

    @abstractmethod
    def initial_output(self, feature_mean: Tensor) -> Tensor:
        """The output with these feature means (of ``x / size`` where there is a size): (..., n_features)."""

    @abstractmethod
    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        """Fisher information of one sample about each output, at these feature means: (..., n_features)."""

    def expectation(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        """Expected data where parameters beside the output may matter: shape (..., n_samples, n_features)."""
        return self.mean(output, size=size, total=total)

    def information_at(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        """Fisher information of each entry about its output: shape (..., n_samples, n_features)."""
        return self.information(self.expectation(output, parameters, size=size, total=total), parameters)

    def response(self, x: Tensor) -> Tensor:
        """What `expectation` is the mean of: the data, unless they are categories without an order."""
        return x

    def fill(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        """What stands best for a missing entry: its expectation, unless that has no meaning."""
        return self.expectation(output, parameters, size=size, total=total)

    # -- parameters beside the output -----------------------------------------------------------------------

    def initial_parameters(self, n_features: int, replicates: tuple[int, ...] = ()) -> dict[str, Tensor]:
        """First values of the parameters: an ``nn.Parameter`` follows gradients, a plain tensor `update`."""
        return {}

    def statistics(
        self, x: Tensor, output: Tensor, observed: Tensor | None = None, weight: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Sums over samples that `update` needs, features last; they add up over batches.

        ``weight``, of shape (..., n_samples), says how often each sample counts.
        """
        return {}

    def update(self, parameters: Parameters, sums: Parameters, n_samples: float) -> dict[str, Tensor]:
        """New values of the parameters that have a closed form, given `statistics` of all samples."""
        return {}

    def log_prior(self, parameters: Parameters) -> Tensor | None:
        """Log prior of the parameters that have a closed form: shape of the replicates; None for none."""
        return None

    def noise_variance(self, parameters: Parameters) -> Tensor | None:
        """Variance of the noise of real-valued features: shape (..., n_features); None for other features."""
        return None

    # -- reconstructions that come from elsewhere -----------------------------------------------------------

    def possible(self, mean: np.ndarray) -> np.ndarray:
        """Means of a reconstruction, moved to where nothing that may occur is impossible."""
        return mean if self.support == "real" else np.maximum(mean, _FLOOR)

    def parameters_from_residuals(
        self,
        squares: np.ndarray,
        means: np.ndarray,
        squared_means: np.ndarray,
        n_samples: int | np.ndarray,
        spread: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Parameters by moments, from a reconstruction's squared errors: arrays of shape (n_features,).

        Parameters
        ----------
        squares, means, squared_means : ndarray of shape (n_features,)
            Sums over samples of the squared errors, of the reconstructed means and of their squares.
        n_samples : int, or ndarray of shape (n_features,)
            Samples behind the sums.
        spread : ndarray of shape (n_features,)
            Variances of the features.
        """
        return {}

    # -- columns --------------------------------------------------------------------------------------------

    def with_levels(self, n_levels: np.ndarray) -> Likelihood:
        """The same likelihood for columns with so many levels, where it knows of levels."""
        return self

    def split(self, n_features: int) -> list[tuple[Likelihood, np.ndarray]]:
        """Each simple likelihood with the columns that it describes; a single pair unless columns differ."""
        return [(self, np.arange(n_features))]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Factorised(Likelihood):
    """A likelihood whose features are independent given the output: a sum of elementwise log densities."""

    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        if observed is None:
            return self.log_density(x, output, parameters, size).sum(-1)
        # Filled before as well as masked after: a NaN in x would otherwise reach the gradient as 0 · NaN.
        log_density = self.log_density(torch.where(observed, x, 0.0), output, parameters, size)
        return torch.where(observed, log_density, 0.0).sum(-1)

    @abstractmethod
    def log_density(self, x: Tensor, output: Tensor, parameters: Parameters, size: Tensor | None) -> Tensor:
        """Log density of each entry: shape (..., n_samples, n_features)."""


def per_feature(parameters: Parameters, name: str, likelihood: Likelihood) -> Tensor:
    """A parameter of shape (..., n_features) with a dimension for the samples."""
    if name not in parameters:
        raise ParameterError(
            f"Expected {name}, one number per feature, for the {likelihood.name} likelihood; got "
            f"{', '.join(parameters) or 'no parameters'}. Pass parameters={{'{name}': ...}}, of shape "
            "(n_features,)."
        )
    return parameters[name].unsqueeze(-2)
