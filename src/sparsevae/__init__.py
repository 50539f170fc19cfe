"""Identifiable deep generative models via sparse decoding: the sparse VAE as a scikit-learn estimator."""

from sparsevae.estimators import SparseVAE

__version__ = "0.1.0"

__all__ = ["SparseVAE", "__version__"]
