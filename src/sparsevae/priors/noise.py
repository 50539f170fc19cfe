r"""The inverse-gamma prior on the Gaussian noise variances, and its calibration from the data.

.. math:: \sigma_j^2 \sim \mathrm{InverseGamma}(\nu/2, \nu\xi/2)

Conventions: variances have shape (..., n_features); ξ is a number, or one number per feature when the
features were standardised each by its own scale (then :math:`\xi_j = \xi / s_j^2`).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.stats import chi2
from torch import Tensor

from sparsevae.exceptions import DataError

__all__ = ["calibrate_noise_scale", "map_noise_variance", "noise_log_prior"]


def calibrate_noise_scale(
    variances: ArrayLike | Tensor, nu: float = 3.0, quantile: float = 0.05, coverage: float = 0.9
) -> float:
    r"""The scale ξ at which the prior puts a given mass below a low quantile of the data's variances.

    .. math:: P(\sigma^2 \le q) = \text{coverage} \iff \xi = q\,\chi^2_\nu(1 - \text{coverage}) / \nu

    where q is the quantile of the variances and :math:`\chi^2_\nu(\cdot)` the chi-square quantile function.

    Parameters
    ----------
    variances : array of shape (n_features,)
        Sample variances of the features in the user's units. Constant features are left out: a variance of
        zero says nothing about noise.
    nu : float
        Degrees of freedom of the prior.
    quantile : float
        Which quantile of the variances is taken to be mostly noise.
    coverage : float
        Prior mass below that quantile.

    Returns
    -------
    float

    Raises
    ------
    DataError
        If no feature varies.

    Notes
    -----
    Appendix "Sparse VAE settings": the 5 % quantile of the variances is the 90 % quantile of the prior.
    """
    values = variances.detach().cpu().numpy() if isinstance(variances, Tensor) else np.asarray(variances)
    positive = values[values > 0]
    if positive.size == 0:
        raise DataError(
            f"Expected at least one feature that varies; got {values.size} features of variance zero. "
            "Check that the table's rows differ."
        )
    return float(np.quantile(positive, quantile) * chi2.ppf(1.0 - coverage, nu) / nu)


def noise_log_prior(variance: Tensor, nu: float, xi: float | Tensor) -> Tensor:
    r"""Log density of the noise variances, summed over features.

    .. math:: \log p(\sigma^2) = \sum_j \left[\tfrac{\nu}{2}\log\tfrac{\nu\xi}{2} - \log\Gamma(\tfrac{\nu}{2})
        - (\tfrac{\nu}{2} + 1)\log\sigma_j^2 - \frac{\nu\xi}{2\sigma_j^2}\right]

    Parameters
    ----------
    variance : Tensor of shape (..., n_features)
    nu : float
    xi : float or Tensor of shape (n_features,)

    Returns
    -------
    Tensor of shape (...)
    """
    shape = nu / 2.0
    rate = shape * torch.as_tensor(xi, dtype=variance.dtype, device=variance.device)
    log_density = (
        shape * torch.log(rate) - math.lgamma(shape) - (shape + 1.0) * torch.log(variance) - rate / variance
    )
    return log_density.sum(-1)


def map_noise_variance(
    sum_of_squares: Tensor, n_samples: float | Tensor, nu: float, xi: float | Tensor
) -> Tensor:
    r"""The noise variances that maximise likelihood times prior at given residuals.

    .. math:: \sigma_j^2 = \frac{\sum_i E\,r_{ij}^2 + \nu\xi_j}{N + \nu + 2}

    Parameters
    ----------
    sum_of_squares : Tensor of shape (..., n_features)
        Expected squared residuals, summed over samples.
    n_samples : float or Tensor of shape (n_features,)
        Number of residuals behind each sum.
    nu : float
    xi : float or Tensor of shape (n_features,)

    Returns
    -------
    Tensor of shape (..., n_features)
    """
    return (sum_of_squares + nu * xi) / (n_samples + nu + 2.0)
