"""Typical features of a factor: frequent where it is high, or frequent there and rare elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from sparsevae.aliases import JSON, Matrix
from sparsevae.inspection.codes import Codes
from sparsevae.inspection.evidence import rounded
from sparsevae.inspection.outputs import expected_rows
from sparsevae.metrics.topics import npmi_coherence
from sparsevae.modules import SparseVAEModule

__all__ = ["coherence_of", "gather_words", "relevance"]

_HIGH = 2.0  # standard deviations: where a factor is high
_KEPT = 200  # features of a factor whose frequency is kept
_LEAST = 1e-12


def relevance(high: np.ndarray, overall: np.ndarray, weight: float) -> np.ndarray:
    r"""How typical features are of a factor.

    .. math:: r_{jk} = \lambda \log m_{jk} + (1 - \lambda) \log \frac{m_{jk}}{\bar x_j}

    with :math:`m_{jk}` the expected value where the factor is high and :math:`\bar x_j` the mean of the
    table. With :math:`\lambda = 1` frequent features come first, with 0 those that are frequent there only.

    Parameters
    ----------
    high, overall : ndarray of one shape
        Expected values where the factor is high, and means.
    weight : float
        λ, from 0 to 1.

    Notes
    -----
    Sievert and Shirley (2014), LDAvis, with the response of the model in the place of a topic's words.
    """
    high, overall = np.maximum(high, _LEAST), np.maximum(overall, _LEAST)
    return weight * np.log(high) + (1.0 - weight) * np.log(high / overall)


def coherence_of(
    effects: np.ndarray, shares: np.ndarray, X: Matrix, active: np.ndarray, n_words: int
) -> np.ndarray:
    """NPMI coherence of the strongest features that rise with each active factor: shape (n_active,).

    Parameters
    ----------
    effects, shares : ndarray of shape (n_features, n_factors)
        Average slopes, and fractions of variance explained.
    X : array or CSR matrix of shape (n_samples, n_features)
        In which features are present where they are not zero.
    active : ndarray of int
    n_words : int
        Features of each factor that are compared, pair by pair.
    """
    if not len(active):
        return np.zeros(0)
    topics = np.where(effects > 0, shares, 0.0)[:, active].T
    return np.asarray(npmi_coherence(topics, X, n_words=n_words, per_topic=True))


@torch.no_grad()
def gather_words(
    module: SparseVAEModule,
    codes: Codes,
    factors: Mapping[int, str],
    strongest: Mapping[int, np.ndarray],
    coherence: np.ndarray,
) -> JSON:
    """What a page needs to rank the features of counts and yes/no tables by how typical they are.

    Parameters
    ----------
    module : SparseVAEModule
        Fitted.
    codes : Codes
        Of the table.
    factors : mapping from int to str
        Names of the active factors.
    strongest : mapping from int to integer array
        Features of each factor, strongest first.
    coherence : ndarray of shape (n_active,)

    Returns
    -------
    dict
        ``overall``: mean of each feature; by factor: ``features`` and their expected values ``high`` where
        the factor is two standard deviations above its mean; ``coherence``.
    """
    z = torch.zeros(max(len(factors), 1), module.n_factors)
    for a, k in enumerate(factors):
        z[a, k] = _HIGH
    expected = expected_rows(module, module.decode(z)).double().numpy()
    kept = {name: strongest[k][:_KEPT] for k, name in factors.items()}
    return {
        "overall": rounded(np.asarray(codes.X.mean(axis=0)).ravel()),
        "features": {name: own.tolist() for name, own in kept.items()},
        "high": {name: rounded(expected[a, own]) for a, (name, own) in enumerate(kept.items())},
        "coherence": {name: rounded(float(value)) for name, value in zip(kept, coherence, strict=True)},
    }
