"""Identifiable deep generative models via sparse decoding: the sparse VAE as a scikit-learn estimator."""

__version__ = "0.1.0"
