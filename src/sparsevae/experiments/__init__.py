"""Comparisons of methods on data, and the results of the paper."""

from sparsevae.experiments.comparison import compare
from sparsevae.experiments.reproduction import Reproduction, reproduce

__all__ = ["Reproduction", "compare", "reproduce"]
