"""The likelihoods of a sample given the decoder's output: densities, means, draws, parameters.

Conventions of the whole package: data ``x`` and decoder ``output`` have shape (..., n_samples, n_features);
``parameters`` are those of the distribution beside the output, by name, each with the features last: the
noise variance of the Gaussian, the log of the negative binomial's inverse dispersion; ``size`` has shape
(..., n_samples) and multiplies the rate of a count; ``total`` has shape (..., n_samples) and is the number of
words of a sample; ``observed`` is boolean and leaves entries out where it is False, whatever ``x`` holds
there. Log densities contain every normalising constant.
"""

from __future__ import annotations

from sparsevae.likelihoods.base import Factorised, Likelihood, Parameters
from sparsevae.likelihoods.bernoulli import Bernoulli, bernoulli_log_prob
from sparsevae.likelihoods.categorical import Categorical
from sparsevae.likelihoods.gaussian import Gaussian, gaussian_log_prob
from sparsevae.likelihoods.levels import Levels
from sparsevae.likelihoods.mixed import Mixed
from sparsevae.likelihoods.multinomial import Multinomial, multinomial_log_prob
from sparsevae.likelihoods.negative_binomial import NegativeBinomial, negative_binomial_log_prob
from sparsevae.likelihoods.ordinal import Ordinal, ordinal_log_prob
from sparsevae.likelihoods.poisson import Poisson, poisson_log_prob
from sparsevae.likelihoods.registry import LIKELIHOODS, get_likelihood

__all__ = [
    "LIKELIHOODS",
    "Bernoulli",
    "Categorical",
    "Factorised",
    "Gaussian",
    "Levels",
    "Likelihood",
    "Mixed",
    "Multinomial",
    "NegativeBinomial",
    "Ordinal",
    "Parameters",
    "Poisson",
    "bernoulli_log_prob",
    "gaussian_log_prob",
    "get_likelihood",
    "multinomial_log_prob",
    "negative_binomial_log_prob",
    "ordinal_log_prob",
    "poisson_log_prob",
]
