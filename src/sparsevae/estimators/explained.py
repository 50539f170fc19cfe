r"""How much of a table the factors explain: by factor, by feature and in all.

Shares are of the variance of a feature: for a real-valued one, of its fitted means and noise together; for
counts and yes/no answers, of the squared deviations from what a row of its size would hold without any
factor. All are taken at posterior means of the factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from sparsevae.estimators.reading import Outputs
from sparsevae.modules import FactorModule

__all__ = ["Explained", "communalities", "order_features", "signed_strength", "variance_shares"]


class Explained:
    """Adds to an estimator with a mask what its factors explain."""

    def communalities(self: Any) -> pd.Series:
        """Share of the variance of each feature that the factors explain; their mean is that of the table.

        For a real-valued feature, one less the noise variance over the variance of the feature in the table
        fitted. For counts and yes/no answers, the share of their squared deviations that expected values
        reproduce, beyond what the size of a row explains. 0 for a feature that uses no factor.
        """
        check_is_fitted(self, "module_")
        return pd.Series(self.communalities_, index=self._feature_names(), name="communality")

    def explained(self: Any) -> pd.DataFrame:
        """What each active factor explains, and all of them together.

        Returns
        -------
        DataFrame
            A row per active factor and a last one for all: ``variance_explained``, the mean over features of
            the share of variance that is lost when the factor is held at its mean (all: the mean communality;
            the shares of correlated or interacting factors overlap and need not sum to it); ``n_features``
            that use the factor; ``n_anchors`` among them.
        """
        check_is_fitted(self, "module_")
        used = self.mask_[:, self.active_factors_] != 0
        anchors = (self.mask_ != 0).sum(1) == 1
        names = self.get_feature_names_out()[self.active_factors_]
        parts = pd.DataFrame(
            {
                "variance_explained": self.variance_explained_[self.active_factors_],
                "n_features": used.sum(0),
                "n_anchors": (used & anchors[:, None]).sum(0),
            },
            index=pd.Index(names, name="factor", dtype=object),
        )
        parts.loc["all factors"] = [float(self.communalities_.mean()), int(used.any(1).sum()), anchors.sum()]
        return parts.astype({"n_features": int, "n_anchors": int})


def signed_strength(model: Any) -> np.ndarray:
    """Root of the variance share of each link, with the sign of its average slope: (n_features, n_factors).

    For a linear model it is the standardised loading. Zero where the mask is.
    """
    sign = np.where(model.effects_ < 0, -1.0, 1.0)
    return np.where(model.mask_ != 0, sign * np.sqrt(np.maximum(model.variance_shares_, 0.0)), 0.0)


def order_features(model: Any) -> np.ndarray:
    """Features by their strongest factor, anchors of it first, each by strength; without factor last."""
    size = np.abs(signed_strength(model))
    used = model.mask_ != 0
    # A link may explain nothing: it still comes before no link.
    strongest = np.where(used.any(1), (size + 1e-9 * used).argmax(1), used.shape[1])
    return np.lexsort((-size.max(1), used.sum(1) > 1, strongest))


@torch.no_grad()
def variance_shares(outputs: Outputs, x: Tensor) -> np.ndarray:
    r"""Share of each feature's variance that is lost when a factor is held at zero.

    .. math:: \frac{\operatorname{Var}_i\big(m_{ij}(z_i) - m_{ij}(z_i \text{ with } z_{ik} = 0)\big)}
        {\operatorname{Var}(x_j)}

    It is the size of a link whatever the shape of its curve, and may be compared among features.

    Parameters
    ----------
    outputs : Outputs
        Of a fitted module.
    x : Tensor of shape (n_samples, n_features)
        The same samples in the units of the model.

    Returns
    -------
    ndarray of shape (n_features, n_factors)
        At most one. Zero where the mask is, except under the multinomial, whose features share one total.
    """
    module = outputs.module
    means = _expected_rows(module, outputs.given, x)
    variance = _variance(module, means, x).clamp_min(1e-12)
    shares = torch.zeros(module.n_features, module.n_factors)
    for k in outputs.active:
        lost = (means - _expected_rows(module, outputs.changed(k, 0.0), x)).var(0, unbiased=False)
        shares[:, k] = (lost / variance).clamp_max(1.0)
    return shares.double().numpy()


@torch.no_grad()
def communalities(outputs: Outputs, x: Tensor) -> np.ndarray:
    """Share of each feature's variance that all factors explain together: shape (n_features,).

    Parameters
    ----------
    outputs, x
        As for `variance_shares`. Real-valued features have variance one in the units of the model.
    """
    module = outputs.module
    means = _expected_rows(module, outputs.given, x)
    reproduced = 1.0 - (x - means).square().mean(0) / _variance(module, means, x).clamp_min(1e-12)
    share = torch.where(module.real, 1.0 - module.noise_variance, reproduced).clamp(0.0, 1.0)
    return torch.where(module.support().any(1), share, 0.0).double().numpy()


def _expected_rows(module: FactorModule, output: Tensor, x: Tensor) -> Tensor:
    """Expected values of rows of the sizes seen, in the units of the model: sample × feature."""
    observation = module.observation
    return observation.likelihood.mean(output, size=observation.size(x), total=observation.total(x))


def _variance(module: FactorModule, means: Tensor, x: Tensor) -> Tensor:
    """What shares of variance are shares of: shape (n_features,)."""
    observation = module.observation
    exposure = torch.ones_like(x)
    for columns, size in (
        (observation.size_columns, observation.size(x)),
        (observation.total_columns, observation.total(x)),
    ):
        if size is not None:
            exposure[:, torch.as_tensor(columns)] = size.unsqueeze(-1)
    without_factors = exposure * (x.sum(0) / exposure.sum(0).clamp_min(1e-12))
    return torch.where(
        module.real, means.var(0) + module.noise_variance, (x - without_factors).square().mean(0)
    )
