"""Comparisons of methods on data, and the results of the paper."""

from sparsevae.experiments.comparison import compare
from sparsevae.experiments.reproduction import Reproduction, reproduce
from sparsevae.experiments.sample_size import Power, design, power

__all__ = ["Power", "Reproduction", "compare", "design", "power", "reproduce"]
