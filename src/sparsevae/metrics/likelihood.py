"""How well a reconstruction explains data: likelihoods, squared error, perplexity.

A reconstruction is what a decoder gives: the mean of each entry, or weights of words that are made to sum to
1 in each row. Quantities called NLL, MSE or perplexity are lower-better; log-likelihoods are higher-better.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import gammaln, xlog1py, xlogy

from sparsevae.aliases import Matrix, MatrixLike
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics.base import check_same_shape
from sparsevae.summaries import dense_table

__all__ = ["heldout_mse", "heldout_nll", "log_likelihood", "perplexity"]

_BLOCK_ENTRIES = 4_000_000
CLOSED_FORMS = ("gaussian", "multinomial", "bernoulli", "poisson", "negative_binomial")
"""Likelihoods whose density `log_likelihood` has in numpy."""


def log_likelihood(
    X: MatrixLike,
    reconstruction: ArrayLike,
    *,
    likelihood: str = "gaussian",
    noise_variance: ArrayLike | None = None,
    inverse_dispersion: ArrayLike | None = None,
    coefficient: bool = True,
    floor: float = 0.0,
) -> np.ndarray:
    r"""Return :math:`\log p(x_i)` of each row given the reconstructed means.

    Parameters
    ----------
    X : array or CSR array of shape (n_samples, n_features)
    reconstruction : array of shape (n_samples, n_features)
        Means; for ``"multinomial"`` weights of any scale, for ``"bernoulli"`` probabilities.
    likelihood : {"gaussian", "multinomial", "bernoulli", "poisson", "negative_binomial"}, default="gaussian"
    noise_variance : float or array of shape (n_features,), optional
        For ``"gaussian"``.
    inverse_dispersion : float or array of shape (n_features,), optional
        For ``"negative_binomial"``: the variance is :math:`m + m^2/r`.
    coefficient : bool, default=True
        Whether the multinomial has its coefficient :math:`n!/\prod_j x_j!`.
    floor : float, default=0.0
        Added to the probabilities of the multinomial before the logarithm.

    Returns
    -------
    ndarray of shape (n_samples,)
        Minus infinity where the data are impossible under the reconstruction.
    """
    if likelihood not in CLOSED_FORMS:
        raise ParameterError(
            f"Expected likelihood to be one of {', '.join(map(repr, CLOSED_FORMS))}; got {likelihood!r}."
        )
    needed = {"gaussian": ("noise_variance", noise_variance)}
    needed["negative_binomial"] = ("inverse_dispersion", inverse_dispersion)
    name, spread = needed.get(likelihood, ("", 1.0))
    if spread is None or not np.all(np.asarray(spread) > 0):
        raise ParameterError(f"Expected a positive {name} for likelihood={likelihood!r}; got {spread!r}.")
    spread = np.asarray(spread, dtype=float)
    values = []
    for x, mean in _blocks(X, reconstruction):
        if likelihood == "gaussian":
            terms = -0.5 * ((x - mean) ** 2 / spread + np.log(2 * np.pi * spread))
        elif likelihood == "multinomial":
            terms = xlogy(x, _shares(mean) + floor)
            if coefficient:
                terms -= gammaln(x + 1)
                terms[:, 0] += gammaln(x.sum(axis=1) + 1)
        elif likelihood == "bernoulli":
            terms = xlogy(x, mean) + xlog1py(1 - x, -mean)
        elif likelihood == "poisson":
            terms = xlogy(x, mean) - mean - gammaln(x + 1)
        else:
            terms = gammaln(x + spread) - gammaln(spread) - gammaln(x + 1)
            terms += spread * np.log(spread / (spread + mean)) + xlogy(x, mean / (spread + mean))
        values.append(terms.sum(axis=1))
    return np.concatenate(values)


def heldout_nll(
    X: MatrixLike,
    reconstruction: ArrayLike,
    *,
    likelihood: str = "multinomial",
    noise_variance: ArrayLike | None = None,
    inverse_dispersion: ArrayLike | None = None,
    floor: float = 0.0,
) -> float:
    """Return the negative log-likelihood of the reconstruction per sample, as the paper reports it.

    Parameters
    ----------
    X, reconstruction, likelihood, noise_variance, inverse_dispersion : see `log_likelihood`
    floor : float, default=0.0
        The released code adds 1e-6 to the probabilities.

    Returns
    -------
    float
        Lower is better.

    Notes
    -----
    Only the reconstruction term, from the whole held-out row, without KL and without the multinomial
    coefficient: no bound on log p(x), which is `SparseVAE.score`. The paper takes *one posterior sample* of
    the factors.
    """
    values = log_likelihood(
        X,
        reconstruction,
        likelihood=likelihood,
        noise_variance=noise_variance,
        inverse_dispersion=inverse_dispersion,
        coefficient=False,
        floor=floor,
    )
    return float(-values.mean())


def heldout_mse(X: Matrix, reconstruction: ArrayLike) -> float:
    """Return the mean squared error over all entries.

    Parameters
    ----------
    X : array or CSR array of shape (n_samples, n_features)
    reconstruction : array of shape (n_samples, n_features)
    """
    total = sum(float(((x - mean) ** 2).sum()) for x, mean in _blocks(X, reconstruction))
    return total / (X.shape[0] * X.shape[1])


def perplexity(X: Matrix, reconstruction: ArrayLike, *, floor: float = 0.0) -> float:
    r"""Return the perplexity per token, :math:`\exp(-\sum_{ij} x_{ij} \log p_{ij} / \sum_{ij} x_{ij})`.

    Parameters
    ----------
    X : array or CSR array of shape (n_samples, n_features)
        Counts; empty rows do no harm.
    reconstruction : array of shape (n_samples, n_features)
        Weights of words, of any scale.
    floor : float, default=0.0
        Added to the probabilities.

    Returns
    -------
    float
        Lower is better; a uniform guess scores ``n_features``.
    """
    tokens = float(X.sum())
    if tokens <= 0:
        raise DataError("Expected at least one token in X; got none.")
    values = log_likelihood(X, reconstruction, likelihood="multinomial", coefficient=False, floor=floor)
    return float(np.exp(-values.sum() / tokens))


def _blocks(X: MatrixLike, reconstruction: ArrayLike) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Dense pieces of some rows each, so that a large CSR table is never dense as a whole."""
    reconstruction = np.asarray(reconstruction)
    table: Matrix = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    if table.ndim != 2 or (not table.size and not sparse.issparse(table)):
        raise DataError(f"Expected X with two dimensions and at least one entry; got shape {table.shape}.")
    check_same_shape("X", table, "reconstruction", reconstruction)
    step = max(1, _BLOCK_ENTRIES // table.shape[1])
    for start in range(0, table.shape[0], step):
        x = table[start : start + step]
        yield dense_table(x).astype(float), reconstruction[start : start + step].astype(float)


def _shares(weights: np.ndarray) -> np.ndarray:
    if (weights < 0).any():
        raise DataError("Expected weights of words of 0 or more; got some below. Pass probabilities.")
    sums = weights.sum(axis=1, keepdims=True)
    return np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
