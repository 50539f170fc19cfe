"""Data sets of the paper and generators with known answers; all return a frozen `Dataset`, none needs torch."""

from .base import Dataset
from .curves import Curve, Term, TopicCurve
from .synthetic import make_anchored_factors, make_sparse_factors
from .synthetic_discrete import make_anchored_binary, make_anchored_counts

__all__ = [
    "Curve",
    "Dataset",
    "Term",
    "TopicCurve",
    "make_anchored_binary",
    "make_anchored_counts",
    "make_anchored_factors",
    "make_sparse_factors",
]
