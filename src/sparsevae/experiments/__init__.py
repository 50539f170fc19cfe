"""Comparisons of methods on data."""

from sparsevae.experiments.compare import compare

__all__ = ["compare"]
