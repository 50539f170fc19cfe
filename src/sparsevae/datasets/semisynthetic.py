"""Counts drawn from real topics whose correlations differ between training and test data."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit, logit
from sklearn.decomposition import LatentDirichletAllocation

from sparsevae.datasets.base import Dataset, as_generator, check_count
from sparsevae.datasets.peerread import load_peerread
from sparsevae.exceptions import DataError, ParameterError

__all__ = ["Topics", "fit_topics", "make_semisynthetic"]

# The paper names the three settings without numbers; these are the noise levels of the released results.
_NOISE = {"high": 0.5, "medium": 1.0, "low": 3.0}


class Topics(NamedTuple):
    """Topics of a collection of documents."""

    proportions: np.ndarray
    """(n_samples, n_factors), rows sum to 1: theta in the paper."""
    words: np.ndarray
    """(n_factors, n_features), rows sum to 1: beta in the paper."""


def make_semisynthetic(
    data: Dataset | None = None,
    *,
    difference: str | float = "high",
    form: str = "sampled",
    n_factors: int = 20,
    topics: Topics | None = None,
    path: str | os.PathLike[str] | None = None,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    r"""Draw counts whose factors are correlated in the training data and not so in the test data.

    LDA gives factors :math:`\theta` and topics :math:`\beta`. For training the last K/2 factors are replaced
    by noisy copies of the first K/2, :math:`\text{logit}\,\tilde\theta_k = \text{logit}\,\theta_k + N(0,
    \sigma^2)`, and rows are made to sum to 1 again; for testing the factors stay as they are.

    Parameters
    ----------
    data : Dataset, optional
        Word counts; by default `load_peerread`.
    difference : {"high", "medium", "low"} or float, default="high"
        How much training and test data differ, or the standard deviation :math:`\sigma` itself: 0.5, 1 and 3.
        The less noise, the more the copies correlate with their originals.
    form : {"sampled", "rounded"}, default="sampled"
        Counts drawn from the multinomial with each document's length; or the released code's arithmetic:
        noise on the log scale and expected counts rounded to whole numbers, which makes rare words vanish.
    n_factors : int, default=20
        Topics of the LDA, an even number.
    topics : Topics, optional
        Topics from `fit_topics`, to draw several data sets from one fit.
    path : path, optional
        For `load_peerread`, where ``data`` is not given.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Dataset
        The training data, with factors and expected counts (``mean``); ``test`` holds the test data.
        Documents that come out empty are dropped.

    Notes
    -----
    Appendix "Dataset details and preprocessing". The paper does not state :math:`\sigma`; the released
    generator uses 0.5, 1, 2 and the released results 0.5, 1, 3.
    """
    sigma = _noise_level(difference)
    if form not in ("sampled", "rounded"):
        raise ParameterError(f"Expected form to be 'sampled' or 'rounded'; got {form!r}.")
    data = load_peerread(path) if data is None else data
    generator = as_generator(random_state)
    if topics is None:
        topics = fit_topics(data, n_factors=n_factors, random_state=int(generator.integers(2**31)))
    theta = topics.proportions
    n_samples, n_factors = theta.shape
    if (n_samples, topics.words.shape) != (data.n_samples, (n_factors, data.n_features)) or n_factors % 2:
        raise DataError(
            f"Expected topics of {data.n_samples} documents and {data.n_features} words, in an even number; "
            f"got {theta.shape} proportions and {topics.words.shape} words. Fit them on the same data."
        )
    first = theta[:, : n_factors // 2]
    noise = sigma * generator.standard_normal(first.shape)
    if form == "sampled":
        copies = expit(logit(np.clip(first, 1e-12, 1 - 1e-12)) + noise)
    else:
        copies = first * np.exp(noise)
    shifted = np.hstack([first, copies])
    shifted /= shifted.sum(axis=1, keepdims=True)
    lengths = np.asarray(data.X.sum(axis=1)).ravel().astype(np.int64)
    part = f"training data, factors copied with noise {sigma}"
    train = _draw(generator, shifted, topics.words, lengths, form, data, part)
    part = "test data, factors as they are"
    return replace(train, test=_draw(generator, theta, topics.words, lengths, form, data, part))


def fit_topics(data: Dataset, *, n_factors: int = 20, random_state: int | None = None) -> Topics:
    """Fit latent Dirichlet allocation with scikit-learn's default settings.

    Parameters
    ----------
    data : Dataset
        Word counts.
    n_factors : int, default=20
    random_state : int or None

    Returns
    -------
    Topics
    """
    check_count("n_factors", n_factors, minimum=2)
    lda = LatentDirichletAllocation(n_components=n_factors, random_state=random_state)
    # scikit-learn's LDA reads CSR with 32 bit indices only.
    proportions = lda.fit_transform(sparse.csr_matrix(data.X))
    return Topics(
        proportions=proportions / proportions.sum(axis=1, keepdims=True),
        words=lda.components_ / lda.components_.sum(axis=1, keepdims=True),
    )


def _draw(
    generator: np.random.Generator,
    factors: np.ndarray,
    words: np.ndarray,
    lengths: np.ndarray,
    form: str,
    data: Dataset,
    part: str,
) -> Dataset:
    probabilities = factors @ words
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    mean = lengths[:, None] * probabilities
    if form == "sampled":
        counts, how = generator.multinomial(lengths, probabilities), "drawn from the multinomial"
    else:
        counts, how = np.around(mean), "expectations rounded to whole numbers"
    filled = counts.sum(axis=1) > 0
    if not filled.any():
        raise DataError("Expected documents long enough to hold a word; got none. Use form='sampled'.")
    return Dataset(
        X=sparse.csr_array(counts[filled].astype(np.int32)),
        feature_names=data.feature_names,
        factors=factors[filled],
        target=None if data.target is None else data.target[filled],
        description=(
            f"Semi-synthetic counts ({part}): {filled.sum()} documents x {counts.shape[1]} words from an LDA "
            f"with {factors.shape[1]} topics; counts {how}, {int((~filled).sum())} empty documents dropped. "
            f"Based on: {data.description}"
        ),
        mean=mean[filled],
    )


def _noise_level(difference: str | float) -> float:
    if isinstance(difference, str) and difference in _NOISE:
        return _NOISE[difference]
    if isinstance(difference, str) or not (np.isfinite(difference) and difference >= 0):
        raise ParameterError(
            "Expected difference to be 'high', 'medium', 'low' or a standard deviation >= 0; got "
            f"{difference!r}."
        )
    return float(difference)
