"""Estimators with scikit-learn's interface."""

from sparsevae.estimators.masked_choice import MaskedChoice, choose_n_factors
from sparsevae.estimators.names import name_features
from sparsevae.estimators.nmf import NMF
from sparsevae.estimators.oi_vae import OIVAE
from sparsevae.estimators.path import SparsityPath, sparsity_path
from sparsevae.estimators.sparse_vae import SparseVAE
from sparsevae.estimators.vae import VAE
from sparsevae.estimators.vsc import VSC

__all__ = [
    "NMF",
    "OIVAE",
    "VAE",
    "VSC",
    "MaskedChoice",
    "SparseVAE",
    "SparsityPath",
    "choose_n_factors",
    "name_features",
    "sparsity_path",
]
