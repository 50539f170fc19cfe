"""Data sets of the paper and generators with known answers; each gives a frozen `Dataset`, without torch."""

from .ability import load_ability_tests
from .base import Dataset
from .curves import Curve, Term, TopicCurve
from .fetch import fetch, verify_file
from .movielens import load_movielens
from .peerread import load_peerread
from .semisynthetic import Topics, fit_topics, make_semisynthetic
from .sources import SOURCES, DataNotFoundError, DownloadError, Source, data_directory
from .synthetic import make_anchored_factors, make_sparse_factors
from .synthetic_discrete import make_anchored_binary, make_anchored_counts
from .zeisel import load_zeisel, quantile_normalise

__all__ = [
    "SOURCES",
    "Curve",
    "DataNotFoundError",
    "Dataset",
    "DownloadError",
    "Source",
    "Term",
    "TopicCurve",
    "Topics",
    "data_directory",
    "fetch",
    "fit_topics",
    "load_ability_tests",
    "load_movielens",
    "load_peerread",
    "load_zeisel",
    "make_anchored_binary",
    "make_anchored_counts",
    "make_anchored_factors",
    "make_semisynthetic",
    "make_sparse_factors",
    "quantile_normalise",
    "verify_file",
]
