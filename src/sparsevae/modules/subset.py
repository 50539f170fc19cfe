r"""Random subsets of the features in training: those that the likelihood has, and those the encoder sees.

The first are for tables with tens of thousands of features.

Where features are independent given the factors, a subset S of G features drawn uniformly gives

.. math:: \frac{G}{|S|} \sum_{j \in S} \log p(x_{ij} \mid z_i),

whose mean over subsets is the sum over all features, and so are its gradients.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods import Likelihood, Mixed

__all__ = ["check_features_per_step", "draw_seen", "draw_subset", "squared_errors", "subset_log_prob"]


def check_features_per_step(features_per_step: int | None, likelihood: Likelihood) -> None:
    """Refuse a subset of features where the likelihood needs all of them at once."""
    if features_per_step is None or likelihood.factorised:
        return
    raise ParameterError(
        "Expected features_per_step=None for a multinomial likelihood, whose features share one total per "
        f"sample; got features_per_step={features_per_step}. Leave it out, or model the counts as 'poisson' "
        "or 'negative_binomial'."
    )


def draw_subset(n_features: int, size: int | None, generator: torch.Generator) -> Tensor | None:
    """Draw features without replacement, in ascending order; None where all of them are wanted."""
    if size is None or size >= n_features:
        return None
    return torch.randperm(n_features, generator=generator)[:size].sort().values


def draw_seen(x: Tensor, rate: float, generator: torch.Generator) -> Tensor | None:
    """Draw which inputs an encoder sees of some rows; None where it sees all of them.

    0 for an input left out and 1/(1 - rate) for the others, so that averages stay what they are. An encoder
    that may not rely on any single feature learns less of the training rows by heart.
    """
    if not rate:
        return None
    kept = torch.rand(x.shape, generator=generator).to(x.device) >= rate
    return kept / (1.0 - rate)


def subset_log_prob(
    likelihood: Likelihood,
    x: Tensor,
    output: Tensor,
    features: Tensor,
    *,
    dispersion: Tensor | None = None,
    size: Tensor | None = None,
) -> Tensor:
    """Estimate the log density of each sample from some of its features.

    Parameters
    ----------
    likelihood : Likelihood
        Factorised.
    x : Tensor of shape (..., n_samples, n_features)
    output : Tensor of shape (..., n_samples, len(features))
        Of the decoder, for these features only.
    features : integer Tensor
    dispersion : Tensor of shape (..., n_features), optional
    size : Tensor of shape (..., n_samples), optional
        Of whole rows.

    Returns
    -------
    Tensor of shape (..., n_samples)
    """
    n_features = x.shape[-1]
    total = _restrict(likelihood, n_features, features).log_prob(
        x.index_select(-1, features),
        output,
        dispersion=None if dispersion is None else dispersion.index_select(-1, features),
        size=size,
    )
    return total * (n_features / len(features))


def squared_errors(x: Tensor, output: Tensor, features: Tensor | None) -> tuple[Tensor, Tensor | int]:
    """Sum the squared errors of each feature over the samples, and count the samples behind each sum.

    Parameters
    ----------
    x : Tensor of shape (..., n_samples, n_features)
    output : Tensor of shape (..., n_samples, n_features or len(features))
    features : integer Tensor or None

    Returns
    -------
    Tensor of shape (..., n_features), and an int
        Given features, a Tensor of shape (n_features,) instead of the int: 0 for those not among them.
    """
    n_samples, n_features = x.shape[-2:]
    if features is None:
        return (x - output).square().sum(-2), n_samples
    drawn = (x.index_select(-1, features) - output).square().sum(-2)
    squares = drawn.new_zeros(*drawn.shape[:-1], n_features).index_copy(-1, features, drawn)
    return squares, drawn.new_zeros(n_features).index_fill(-1, features, n_samples)


def _restrict(likelihood: Likelihood, n_features: int, features: Tensor) -> Likelihood:
    """The likelihood of the chosen columns, counted anew from 0."""
    parts = likelihood.split(n_features)
    if len(parts) == 1:
        return parts[0][0]
    kind = np.empty(n_features, dtype=np.intp)
    for number, (_, columns) in enumerate(parts):
        kind[columns] = number
    chosen = kind[features.cpu().numpy()]
    return Mixed([(part, np.flatnonzero(chosen == number)) for number, (part, _) in enumerate(parts)])
