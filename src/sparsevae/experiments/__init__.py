"""Comparisons of methods on data, and the results of the paper."""

from sparsevae.experiments.comparison import compare
from sparsevae.experiments.replication import replicate
from sparsevae.experiments.reproduction import Reproduction, reproduce
from sparsevae.experiments.returns import Replication
from sparsevae.experiments.sample_size import Power, design, power

__all__ = [
    "Power",
    "Replication",
    "Reproduction",
    "compare",
    "design",
    "power",
    "replicate",
    "reproduce",
]
