"""Estimators with scikit-learn's interface."""

from sparsevae.estimators.sparse_vae import SparseVAE

__all__ = ["SparseVAE"]
