"""Counts and binary data with known factors and anchors."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit, logsumexp

from sparsevae.datasets.anchored import anchors_of, correlation_matrix, draw_problem, draw_supports, mask_of
from sparsevae.datasets.base import Dataset, as_generator, check_count
from sparsevae.datasets.curves import TopicCurve
from sparsevae.exceptions import ParameterError

__all__ = ["make_anchored_binary", "make_anchored_counts"]


def make_anchored_counts(
    n_samples: int = 5000,
    n_features: int = 300,
    n_factors: int = 10,
    *,
    document_length: int = 80,
    correlation: float | np.ndarray = 0.0,
    anchors_per_factor: int = 10,
    max_factors_per_feature: int = 3,
    background_share: float = 0.2,
    strength: float = 1.5,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    r"""Draw word counts of documents whose topics have anchor words.

    .. math:: x_i \sim \text{Multinomial}\big(n, \text{softmax}_j f_j(z_i)\big), \qquad
        f_j(z) = \log\Big(\beta_{0j} + \sum_k \beta_{kj} e^{s z_k}\Big), \qquad z_i \sim N(0, C)

    This is a topic model with logistic normal proportions and one background topic of fixed weight, written
    in the form of the sparse decoder: an anchor word's logit is linear in its topic's factor.

    Parameters
    ----------
    n_samples, n_features, n_factors : int
        Documents, words, topics.
    document_length : int, default=80
        Words per document, n.
    correlation : float or ndarray of shape (n_factors, n_factors), default=0.0
    anchors_per_factor : int, default=10
        Words that occur in one topic only; lowered where there are too few words.
    max_factors_per_feature : int, default=3
        The other topic words occur in two to this many topics.
    background_share : float, default=0.2
        Share of the words that occur in every document alike; their rows of the mask are zero.
    strength : float, default=1.5
        Standard deviation s of a topic's log weight over documents.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Dataset
        ``X`` is a CSR array of counts; with factors, mask, expected counts and curves (logits).

    Notes
    -----
    Under a softmax only differences of logits are seen. The background words, whose logits are constant,
    settle the level: without them the same probabilities could be had with one factor fewer.
    """
    check_count("n_samples", n_samples, minimum=1)
    check_count("document_length", document_length, minimum=0)
    if not 0 < background_share < 1:
        raise ParameterError(f"Expected 0 < background_share < 1; got {background_share!r}.")
    covariance = correlation_matrix(correlation, n_factors)
    structure, sampling, noise = as_generator(random_state).spawn(3)
    n_background = max(1, round(background_share * n_features))
    supports = draw_supports(
        structure,
        n_features=n_features,
        n_factors=n_factors,
        anchors_per_factor=anchors_per_factor,
        max_factors_per_feature=max_factors_per_feature,
        n_noise_features=n_background,
        n_factors_without_anchors=0,
    )
    frequency = np.exp(structure.normal(0.0, 0.5, size=n_features))  # some words are used more than others
    level = np.exp(strength**2 / 2)  # mean of exp(s z): background words are as frequent as topic words
    curves = []
    for support, f in zip(supports, frequency, strict=True):
        split = structure.dirichlet(np.full(len(support), 5.0)) if support else np.empty(0)
        background = 0.0 if support else float(f * level)
        curves.append(TopicCurve(support, tuple((f * split).tolist()), background, float(strength)))
    factors = sampling.standard_normal((n_samples, n_factors)) @ np.linalg.cholesky(covariance).T
    logits = np.column_stack([curve(factors) for curve in curves])
    probabilities = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    counts = noise.multinomial(document_length, probabilities)
    mask = mask_of(supports, n_factors)
    return Dataset(
        X=sparse.csr_array(counts.astype(np.int32)),
        feature_names=np.array([f"word{j}" for j in range(n_features)]),
        factors=factors,
        mask=mask,
        description=(
            f"Anchored synthetic counts: {n_samples} documents of {document_length} words out of "
            f"{n_features}, {n_factors} topics; anchor words per topic {anchors_of(mask)}; "
            f"{sum(len(s) > 1 for s in supports)} words in 2 to {max_factors_per_feature} topics; "
            f"{n_background} background words; strength {strength}; correlation of the factors "
            f"{correlation if np.ndim(correlation) == 0 else 'as given'}."
        ),
        mean=document_length * probabilities,
        curves=tuple(curves),
    )


def make_anchored_binary(
    n_samples: int = 5000,
    n_features: int = 60,
    n_factors: int = 6,
    *,
    correlation: float | np.ndarray = 0.0,
    anchors_per_factor: int = 5,
    max_factors_per_feature: int = 3,
    interaction_share: float = 0.5,
    nonlinear_share: float = 0.5,
    strength: float = 3.0,
    n_noise_features: int = 0,
    n_factors_without_anchors: int = 0,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    r"""Draw binary data with anchors: :math:`x_{ij} \sim \text{Bernoulli}(\text{sigmoid}(f_j(z_i)))`.

    Parameters
    ----------
    n_samples, n_features, n_factors : int
    correlation : float or ndarray of shape (n_factors, n_factors), default=0.0
    anchors_per_factor, max_factors_per_feature, interaction_share, nonlinear_share : see
    `make_anchored_factors` strength : float, default=3.0
        Standard deviation of each feature's logit over samples.
    n_noise_features, n_factors_without_anchors : int, default=0
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Dataset
        ``X`` holds zeros and ones; with factors, mask, probabilities (``mean``) and curves (logits).
    """
    if not (np.isfinite(strength) and strength >= 0):
        raise ParameterError(f"Expected strength >= 0; got {strength!r}.")
    problem = draw_problem(
        random_state,
        n_samples=n_samples,
        n_features=n_features,
        n_factors=n_factors,
        correlation=correlation,
        anchors_per_factor=anchors_per_factor,
        max_factors_per_feature=max_factors_per_feature,
        interaction_share=interaction_share,
        nonlinear_share=nonlinear_share,
        n_noise_features=n_noise_features,
        n_factors_without_anchors=n_factors_without_anchors,
    )
    # Ones are the rarer outcome, as in real data.
    intercepts = problem.structure.uniform(-1.5, 0.5, size=n_features)
    curves = []
    for curve, intercept in zip(problem.curves, intercepts, strict=True):
        values = curve(problem.pilot)
        scale = strength / values.std() if curve.terms else 0.0
        curves.append(curve.scaled(scale, intercept=float(intercept - scale * values.mean())))
    probabilities = expit(np.column_stack([curve(problem.factors) for curve in curves]))
    mask = mask_of([curve.factors for curve in curves], n_factors)
    return Dataset(
        X=(problem.noise.random(probabilities.shape) < probabilities).astype(float),
        feature_names=np.array([f"x{j}" for j in range(n_features)]),
        factors=problem.factors,
        mask=mask,
        description=(
            f"Anchored synthetic binary data: {n_samples} samples of {n_features} features and {n_factors} "
            f"factors; anchors per factor {anchors_of(mask)}; {(mask.sum(axis=1) > 1).sum()} features of 2 "
            f"to {max_factors_per_feature} factors; {(mask.sum(axis=1) == 0).sum()} features of pure noise; "
            f"standard deviation of the logits {strength}; correlation of the factors "
            f"{correlation if np.ndim(correlation) == 0 else 'as given'}."
        ),
        mean=probabilities,
        curves=tuple(curves),
    )
