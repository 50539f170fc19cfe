"""Methods of the benchmark: from the rows of a half to codes of all rows and explained variance."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.decomposition import NMF, FastICA, LatentDirichletAllocation

from sparsevae import OIVAE, VAE, SparseVAE
from sparsevae.metrics.replication import FactorSet, linear_shares
from sparsevae.replication.factor_sets import standardise, varimax_set

__all__ = ["COUNTS_ONLY", "OURS", "PEERS", "standardised"]

Method = Callable[[np.ndarray, np.ndarray, str, int, int], FactorSet]
"""Rows of the half, all rows, likelihood, number of factors, seed."""


def _linear(loadings: np.ndarray, half: np.ndarray, of_half: np.ndarray) -> np.ndarray:
    """Squared loading times variance of the code over variance of the feature, on the rows of the half."""
    return linear_shares(loadings, of_half, half.var(0))


def standardised(half: np.ndarray, everything: np.ndarray, likelihood: str) -> tuple[np.ndarray, np.ndarray]:
    """Some rows and others as a linear method sees them, in units of the first."""
    if likelihood != "gaussian":
        half, everything = np.log1p(half), np.log1p(everything)
    return standardise(half, everything)


def factor_analysis(half, everything, likelihood, n_factors, seed, *, oblique=False) -> FactorSet:
    """Maximum-likelihood factor analysis with a varimax or, from there, a promax rotation."""
    half, everything = standardised(half, everything, likelihood)
    return varimax_set(half, everything, n_factors, seed, turn=_promax if oblique else None)


def ica(half, everything, likelihood, n_factors, seed) -> FactorSet:
    """Independent components of the standardised table."""
    half, everything = standardised(half, everything, likelihood)
    model = FastICA(n_factors, random_state=seed, whiten="unit-variance", max_iter=400).fit(half)
    codes = model.transform(everything)
    return FactorSet(codes, _linear(model.mixing_, half, model.transform(half)))


def nmf(half, everything, likelihood, n_factors, seed, *, init="nndsvda") -> FactorSet:
    """Non-negative factors of counts, or of values less the smallest of their feature."""
    floor = half.min(0) if likelihood == "gaussian" else 0.0
    half, everything = half - floor, np.maximum(everything - floor, 0.0)
    model = NMF(n_factors, init=init, random_state=seed, max_iter=400).fit(half)
    codes = model.transform(everything)
    return FactorSet(codes, _linear(model.components_.T, half, model.transform(half)))


def lda(half, everything, likelihood, n_factors, seed) -> FactorSet:
    """Topics of counts."""
    model = LatentDirichletAllocation(n_factors, random_state=seed).fit(half)
    topics = model.components_ / model.components_.sum(1, keepdims=True) * half.sum(1).mean()
    codes = model.transform(everything)
    return FactorSet(codes, _linear(topics.T, half, model.transform(half)))


def sparse_vae(half, everything, likelihood, n_factors, seed, **options) -> FactorSet:
    """The sparse VAE by its defaults."""
    model = SparseVAE(n_factors, likelihood=likelihood, random_state=seed, **options)
    model = _fit(model, half)
    active = model.active_factors_
    return FactorSet(model.transform(everything)[:, active], model.variance_shares_[:, active])


def network(half, everything, likelihood, n_factors, seed, *, kind=VAE) -> FactorSet:
    """A VAE or OI-VAE; what a factor explains is what its average slope explains."""
    model = _fit(kind(n_factors, likelihood=likelihood, random_state=seed), half)
    codes = model.transform(everything)
    return FactorSet(codes, _linear(model.effects_, half, model.transform(half)))


def _fit(model, half):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(half)


def _promax(loadings: np.ndarray, power: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    target = np.sign(loadings) * np.abs(loadings) ** power
    rotation = np.linalg.lstsq(loadings, target, rcond=None)[0]
    rotation = rotation * np.sqrt(np.diag(np.linalg.inv(rotation.T @ rotation)))
    inverse = np.linalg.inv(rotation)
    return loadings @ rotation, inverse @ inverse.T


PEERS: dict[str, Method] = {
    "varimax": factor_analysis,
    "oblique": lambda *a: factor_analysis(*a, oblique=True),
    "ICA": ica,
    "NMF": nmf,
    "NMF, random": lambda *a: nmf(*a, init="random"),
    "LDA": lda,
}
COUNTS_ONLY = ("LDA",)
OURS: dict[str, Method] = {
    "sparse VAE": sparse_vae,
    "sparse VAE, linear": lambda *a: sparse_vae(*a, hidden_sizes=()),
    "VAE": network,
    "OI-VAE": lambda *a: network(*a, kind=OIVAE),
}
