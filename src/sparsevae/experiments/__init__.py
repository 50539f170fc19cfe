"""Comparisons of methods on data, and the results of the paper."""

from sparsevae.experiments.compare import compare
from sparsevae.experiments.reproduce import Reproduction, reproduce

__all__ = ["Reproduction", "compare", "reproduce"]
