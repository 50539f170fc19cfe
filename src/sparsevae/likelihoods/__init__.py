"""The likelihoods of a sample given the decoder's output: densities, means, draws.

Conventions of the whole package: data ``x`` and decoder ``output`` have shape (..., n_samples, n_features);
``dispersion`` has shape (..., n_features) and is the noise variance (Gaussian) or the inverse dispersion
(negative binomial); ``size`` has shape (..., n_samples) and multiplies the rate of a count; ``total`` has
shape (..., n_samples) and is the number of words of a sample; ``observed`` is boolean and leaves entries out
where it is False, whatever ``x`` holds there. Log densities contain every normalising constant.
"""

from __future__ import annotations

from sparsevae.likelihoods.base import Likelihood
from sparsevae.likelihoods.densities import (
    bernoulli_log_prob,
    gaussian_log_prob,
    multinomial_log_prob,
    negative_binomial_log_prob,
    poisson_log_prob,
)
from sparsevae.likelihoods.families import Bernoulli, Gaussian, Multinomial, NegativeBinomial, Poisson
from sparsevae.likelihoods.mixed import Mixed, get_likelihood

__all__ = [
    "Bernoulli",
    "Gaussian",
    "Likelihood",
    "Mixed",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "bernoulli_log_prob",
    "gaussian_log_prob",
    "get_likelihood",
    "multinomial_log_prob",
    "negative_binomial_log_prob",
    "poisson_log_prob",
]
