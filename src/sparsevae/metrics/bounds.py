"""What a Gaussian posterior over factors is worth: reconstruction at a sample or the mean, and proper bounds.

The model enters as arrays and one function: the posterior's means and standard deviations, and ``decode``,
which turns factors of shape (n_samples, n_factors) into a reconstruction of shape (n_samples, n_features).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics.base import as_matrix, check_same_shape
from sparsevae.metrics.likelihood import heldout_nll, log_likelihood

__all__ = ["elbo", "gaussian_kl", "importance_weighted_bound", "posterior_nll"]

Decode = Callable[[np.ndarray], Any]


def posterior_nll(
    X: Any,
    decode: Decode,
    posterior_mean: Any,
    posterior_sd: Any = None,
    *,
    code: str = "sample",
    random_state: int | None = 0,
    **likelihood: Any,
) -> float:
    """Return the held-out reconstruction NLL at one posterior sample, as in the paper, or at the mean.

    Parameters
    ----------
    X : array or CSR array of shape (n_samples, n_features)
    decode : callable
    posterior_mean, posterior_sd : array of shape (n_samples, n_factors)
        The standard deviations are needed for ``code="sample"``.
    code : {"sample", "mean"}, default="sample"
        ``"sample"`` is what the paper's tables hold; ``"mean"`` has no random noise and is usually lower.
    random_state : int or None, default=0
    **likelihood
        ``likelihood``, ``noise_variance``, ``inverse_dispersion``, ``floor``: see `heldout_nll`.

    Returns
    -------
    float
        Lower is better.
    """
    if code not in ("sample", "mean"):
        raise ParameterError(f"Expected code to be 'sample' or 'mean'; got {code!r}.")
    z = as_matrix("posterior_mean", posterior_mean)
    if code == "sample":
        z, sd = _posterior(posterior_mean, posterior_sd)
        z = z + sd * np.random.default_rng(random_state).standard_normal(z.shape)
    return heldout_nll(X, decode(z), **likelihood)


def gaussian_kl(posterior_mean: Any, posterior_sd: Any, factor_covariance: Any = None) -> np.ndarray:
    r"""Return :math:`KL(N(\mu_i, \text{diag}\,\sigma_i^2) \,\|\, N(0, \Sigma_z))` of each sample.

    Parameters
    ----------
    posterior_mean, posterior_sd : array of shape (n_samples, n_factors)
    factor_covariance : array of shape (n_factors, n_factors), optional
        The identity by default.

    Returns
    -------
    ndarray of shape (n_samples,)

    Notes
    -----
    Appendix "general prior covariance".
    """
    mean, sd = _posterior(posterior_mean, posterior_sd)
    precision, log_determinant = _precision(factor_covariance, mean.shape[1])
    trace = sd**2 @ np.diag(precision)
    distance = (mean @ precision * mean).sum(axis=1)
    return 0.5 * (trace + distance - mean.shape[1] + log_determinant) - np.log(sd).sum(axis=1)


def elbo(
    X: Any,
    decode: Decode,
    posterior_mean: Any,
    posterior_sd: Any,
    *,
    factor_covariance: Any = None,
    n_samples: int = 10,
    random_state: int | None = 0,
    per_sample: bool = False,
    **likelihood: Any,
) -> Any:
    r"""Return the evidence lower bound :math:`E_q[\log p(x|z)] - KL(q \| p)`, a lower bound on log p(x).

    Parameters
    ----------
    X : array or CSR array of shape (n_samples, n_features)
    decode : callable
    posterior_mean, posterior_sd : array of shape (n_samples, n_factors)
    factor_covariance : array of shape (n_factors, n_factors), optional
        Of the prior; the identity by default.
    n_samples : int, default=10
        Draws for the expectation; the KL is exact.
    random_state : int or None, default=0
    per_sample : bool, default=False
        Whether to return a value per row rather than their mean.
    **likelihood
        See `log_likelihood`.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        Higher is better.
    """
    mean, sd = _posterior(posterior_mean, posterior_sd)
    generator = np.random.default_rng(random_state)
    total = np.zeros(len(mean))
    for _ in range(n_samples):
        z = mean + sd * generator.standard_normal(mean.shape)
        total += log_likelihood(X, decode(z), **likelihood)
    values = total / n_samples - gaussian_kl(mean, sd, factor_covariance)
    return values if per_sample else float(values.mean())


def importance_weighted_bound(
    X: Any,
    decode: Decode,
    posterior_mean: Any,
    posterior_sd: Any,
    *,
    factor_covariance: Any = None,
    n_samples: int = 100,
    random_state: int | None = 0,
    per_sample: bool = False,
    **likelihood: Any,
) -> Any:
    r"""Return the importance-weighted bound on log p(x), which rises to it with the number of draws.

    .. math:: \log p(x) \ge E\Big[\log \frac1k \sum_{s=1}^k \frac{p(x|z_s)\,p(z_s)}{q(z_s|x)}\Big]

    Parameters
    ----------
    X, decode, posterior_mean, posterior_sd, factor_covariance, random_state, per_sample : see `elbo`
    n_samples : int, default=100
        Draws k per row.
    **likelihood
        See `log_likelihood`.

    Returns
    -------
    float, or ndarray of shape (n_samples,)
        Higher is better.

    Notes
    -----
    Burda et al. (2016).
    """
    mean, sd = _posterior(posterior_mean, posterior_sd)
    precision, log_determinant = _precision(factor_covariance, mean.shape[1])
    generator = np.random.default_rng(random_state)
    log_weights = np.empty((n_samples, len(mean)))
    for s in range(n_samples):
        noise = generator.standard_normal(mean.shape)
        z = mean + sd * noise
        log_prior = -0.5 * ((z @ precision * z).sum(axis=1) + log_determinant)
        log_posterior = -0.5 * (noise**2).sum(axis=1) - np.log(sd).sum(axis=1)  # both without the 2 pi
        log_weights[s] = log_likelihood(X, decode(z), **likelihood) + log_prior - log_posterior
    values = logsumexp(log_weights, axis=0) - np.log(n_samples)
    return values if per_sample else float(values.mean())


def _posterior(posterior_mean: Any, posterior_sd: Any) -> tuple[np.ndarray, np.ndarray]:
    if posterior_sd is None:
        raise ParameterError(
            "Expected posterior_sd to draw from the posterior; got None. Pass it, or code='mean'."
        )
    mean, sd = as_matrix("posterior_mean", posterior_mean), as_matrix("posterior_sd", posterior_sd)
    check_same_shape("posterior_mean", mean, "posterior_sd", sd)
    if (sd <= 0).any():
        raise DataError(
            "Expected posterior_sd above 0; got 0 or less. An inactive factor has mean 0 and sd 1."
        )
    return mean, sd


def _precision(factor_covariance: Any, n_factors: int) -> tuple[np.ndarray, float]:
    if factor_covariance is None:
        return np.eye(n_factors), 0.0
    covariance = as_matrix("factor_covariance", factor_covariance)
    if covariance.shape != (n_factors, n_factors):
        raise DataError(
            f"Expected a {n_factors} x {n_factors} factor_covariance; got shape {covariance.shape}."
        )
    sign, log_determinant = np.linalg.slogdet(covariance)
    if sign <= 0:
        raise DataError("Expected a positive definite factor_covariance; got one that is not.")
    return np.linalg.inv(covariance), float(log_determinant)
