"""Identifiable deep generative models via sparse decoding: the sparse VAE as a scikit-learn estimator."""

from sparsevae.estimators import NMF, OIVAE, VAE, VSC, SparseVAE, sparsity_path
from sparsevae.experiments import compare
from sparsevae.identifiability import stability

__version__ = "0.1.0"

__all__ = ["NMF", "OIVAE", "VAE", "VSC", "SparseVAE", "__version__", "compare", "sparsity_path", "stability"]
