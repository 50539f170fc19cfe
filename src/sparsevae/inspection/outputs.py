"""Decoder outputs of a fitted module: expected values, slopes, and the order and sign of the factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sparsevae.modules import LatentModule, SparseVAEModule

__all__ = [
    "Outputs",
    "average_slopes",
    "expected_rows",
    "order_factors_",
    "strongest_features",
    "weighted_mean",
]

_STEP = 0.1  # of a central difference, in standard deviations of a factor: an average slope, not a kink's


class Outputs:
    """Decoder outputs of some samples, and what becomes of them when one factor changes.

    Only the features that use the factor are decoded again: all factors together cost what the mask has
    non-zeros, not features times factors.

    Parameters
    ----------
    module : LatentModule
        Fitted, without replicates.
    z : Tensor of shape (n_samples, n_factors)
    weight : Tensor of shape (n_samples,), optional
        How often each sample counts.
    """

    def __init__(self, module: LatentModule, z: Tensor, weight: Tensor | None = None) -> None:
        self.module, self.z, self.weight = module, z, weight
        self.support = module.support()
        with torch.no_grad():
            self.given = module.decode(z)
        self.active = torch.nonzero(module.active()).ravel().tolist()

    @torch.no_grad()
    def changed(self, factor: int, values: Tensor | float) -> Tensor:
        """Outputs with other values of a factor: shape (n_samples, n_features)."""
        z = self.z.clone()
        z[:, factor] = values
        users = self.support[:, factor]
        if users.all():
            return self.module.decode(z)
        features = torch.nonzero(users).ravel()
        return self.given.index_copy(1, features, self.module.decode(z, features))


@torch.no_grad()
def expected_rows(module: LatentModule, output: Tensor) -> Tensor:
    """Expected data in the units of the table, given decoder outputs; for counts, of rows of average size."""
    observation = module.observation
    rows = observation.average_rows(len(output))
    means = observation.likelihood.expectation(output, module.nuisance.values(), **rows)
    return observation.expected_in_user_units(means)


def average_slopes(outputs: Outputs, *functions: Callable[[Tensor], Tensor]) -> list[np.ndarray]:
    r"""Signed average slope of each feature on each factor, for each function of the decoder's outputs.

    .. math:: \frac1N \sum_i \frac{m_j(z_i + h e_k) - m_j(z_i - h e_k)}{2h}

    Parameters
    ----------
    outputs : Outputs
        At the samples over which slopes are averaged.
    *functions : callable
        From outputs of shape (n_samples, n_features) to values of that shape.

    Returns
    -------
    list of ndarray of shape (n_features, n_factors)
    """
    n_features, n_factors = outputs.given.shape[1], outputs.z.shape[1]
    slopes = [np.zeros((n_features, n_factors)) for _ in functions]
    for k in outputs.active:
        up, down = (outputs.changed(k, outputs.z[:, k] + step) for step in (_STEP, -_STEP))
        for slope, function in zip(slopes, functions, strict=True):
            slope[:, k] = (weighted_mean(function(up) - function(down), outputs.weight) / (2 * _STEP)).numpy()
    return slopes


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Mean over samples, each as often as its weight says: (n_samples, n) to (n,)."""
    return values.mean(0) if weight is None else weight.to(values) @ values / weight.to(values).sum()


def order_factors_(
    module: SparseVAEModule,
    explained: np.ndarray,
    effects: np.ndarray,
    strength: np.ndarray,
    named: Sequence[int] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Put factors in order of variance explained, each signed so that its strongest anchor rises with it.

    The strongest anchor is the one with the largest average slope relative to its scale: an anchor that falls
    and rises again, such as z², has a large entry in the mask and no direction. A factor without anchors is
    signed by its strongest feature. Inactive factors come last.

    Parameters
    ----------
    module : SparseVAEModule
        Reordered in place.
    explained : ndarray of shape (n_factors,)
        Variance that each factor explains.
    effects : ndarray of shape (n_features, n_factors)
        Average slopes in the units of the table, whose signs are read.
    strength : ndarray of shape (n_features, n_factors)
        Average slopes relative to each feature's scale, as the decoder's outputs are.
    named : sequence of int
        Factors that the user has named by their position, which keep it.

    Returns
    -------
    order : ndarray of shape (n_factors,)
        The old position of each factor.
    sign : ndarray of shape (n_factors,)
        -1 for a factor that was turned round.
    """
    active = module.active().numpy().astype(bool)
    ranked = np.lexsort((-explained, ~active))
    order = np.arange(len(explained))
    free = ~np.isin(order, named)
    order[free] = ranked[free[ranked]]
    used = module.support().numpy() & (effects != 0)
    anchors = used & (module.support().sum(1) == 1).numpy()[:, None]
    sign = np.ones(len(order), dtype=np.float32)
    for new, k in enumerate(order):
        candidates = anchors[:, k] if anchors[:, k].any() else used[:, k]
        if candidates.any():
            strongest = np.where(candidates, np.abs(strength[:, k]), -1.0).argmax()
            sign[new] = np.sign(effects[strongest, k])
    module.permute_factors_(torch.as_tensor(order), torch.as_tensor(sign))
    return order, sign


def strongest_features(
    strength: np.ndarray,
    n: int,
    factors: Sequence[object] | np.ndarray,
    features: Sequence[object] | np.ndarray,
    **values: np.ndarray,
) -> pd.DataFrame:
    """The n strongest features of each factor, strongest first; features of strength zero are left out.

    Parameters
    ----------
    strength : ndarray of shape (n_features, n_factors)
    n : int
    factors, features : sequence
        Names.
    **values : ndarray of shape (n_features, n_factors)
        What further columns show.

    Returns
    -------
    DataFrame
        Columns: factor, rank, feature, and those of ``values``.
    """
    rows = [
        (factors[k], rank, features[j], *(value[j, k] for value in values.values()))
        for k in range(len(factors))
        for rank, j in enumerate(np.argsort(-strength[:, k], kind="stable")[:n], start=1)
        if strength[j, k] > 0
    ]
    return pd.DataFrame(rows, columns=["factor", "rank", "feature", *values])
