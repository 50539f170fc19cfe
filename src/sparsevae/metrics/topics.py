"""How readable topics are: coherence of their top words, and how little topics repeat each other.

Topics are rows: weights of shape (n_topics, n_features). For a mask pass ``abs(mask_).T``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sparsevae.aliases import MatrixLike
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.metrics.base import as_matrix

__all__ = ["npmi_coherence", "top_words", "topic_diversity"]


def top_words(topics: ArrayLike, n_words: int = 10) -> list[np.ndarray]:
    """Return the columns of the largest weights above zero of each topic, in falling order.

    Parameters
    ----------
    topics : array of shape (n_topics, n_features)
    n_words : int, default=10

    Returns
    -------
    list of int arrays
        Shorter than ``n_words`` for a topic with fewer words.
    """
    topics = as_matrix("topics", topics)
    if not isinstance(n_words, (int, np.integer)) or n_words < 1:
        raise ParameterError(f"Expected n_words to be a whole number >= 1; got {n_words!r}.")
    order = np.argsort(-topics, axis=1, kind="stable")[:, :n_words]
    return [words[topics[k, words] > 0] for k, words in enumerate(order)]


def npmi_coherence(
    topics: ArrayLike, counts: MatrixLike, *, n_words: int = 10, per_topic: bool = False
) -> float | np.ndarray:
    r"""Return the mean normalised pointwise mutual information of pairs of a topic's top words.

    .. math:: \text{NPMI}(a, b) = \frac{\log p(a, b) - \log p(a)\,p(b)}{-\log p(a, b)}

    with probabilities as shares of documents. Words that never meet score -1, words that always come together
    1.

    Parameters
    ----------
    topics : array of shape (n_topics, n_features)
    counts : array or CSR array of shape (n_documents, n_features)
        The reference documents; the held-out ones are the honest choice.
    n_words : int, default=10
    per_topic : bool, default=False
        Whether to return a value per topic, NaN for those with fewer than two words, rather than the mean.

    Returns
    -------
    float in [-1, 1], or ndarray of shape (n_topics,)
    """
    words = top_words(topics, n_words)
    present = sparse.csc_array(sparse.csr_array(counts) != 0).astype(float)
    n_documents, n_features = present.shape
    if n_features != np.shape(topics)[1] or not n_documents:
        raise DataError(
            f"Expected counts of {np.shape(topics)[1]} words in at least one document; got shape "
            f"{present.shape}."
        )
    values = np.array([_npmi(present[:, chosen], n_documents) for chosen in words])
    if per_topic:
        return values
    if np.isnan(values).all():
        raise DataError("Expected at least one topic with two or more words above zero; got none.")
    return float(np.nanmean(values))


def topic_diversity(topics: ArrayLike, *, n_words: int = 25) -> float:
    """Return the share of different words among the top words of all topics; 1 if no word is shared.

    Parameters
    ----------
    topics : array of shape (n_topics, n_features)
    n_words : int, default=25

    Returns
    -------
    float in (0, 1]

    Notes
    -----
    Dieng et al. (2020).
    """
    words = np.concatenate(top_words(topics, n_words)) if np.size(topics) else np.empty(0)
    if not len(words):
        raise DataError("Expected at least one topic with a word above zero; got none.")
    return float(len(np.unique(words)) / len(words))


def _npmi(present: sparse.csc_array, n_documents: int) -> float:
    n_words = present.shape[1]
    if n_words < 2:
        return float("nan")
    joint = (present.T @ present).toarray() / n_documents
    single = np.diag(joint)
    a, b = np.triu_indices(n_words, k=1)
    together, apart = joint[a, b], single[a] * single[b]
    values = np.full(len(a), -1.0)  # the limit for words that never meet
    some = (together > 0) & (together < 1)
    values[some] = np.log(together[some] / apart[some]) / -np.log(together[some])
    values[together == 1] = 1.0  # in every document both: the limit
    return float(values.mean())
