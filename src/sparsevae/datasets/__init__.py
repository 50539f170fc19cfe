"""Data sets of the paper and generators with known answers; each gives a frozen `Dataset`, without torch."""

from sparsevae.datasets.ability import load_ability_tests
from sparsevae.datasets.base import Dataset
from sparsevae.datasets.curves import Curve, Term, TopicCurve
from sparsevae.datasets.downloads import fetch, verify_file
from sparsevae.datasets.grouped import make_grouped_factors
from sparsevae.datasets.movielens import load_movielens
from sparsevae.datasets.peerread import load_peerread
from sparsevae.datasets.semisynthetic import Topics, fit_topics, make_semisynthetic
from sparsevae.datasets.sources import SOURCES, DataNotFoundError, DownloadError, Source, data_directory
from sparsevae.datasets.survey import load_bfi, make_survey
from sparsevae.datasets.synthetic import make_anchored_factors, make_sparse_factors
from sparsevae.datasets.synthetic_discrete import make_anchored_binary, make_anchored_counts
from sparsevae.datasets.zeisel import load_zeisel, quantile_normalise

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
    "load_bfi",
    "load_movielens",
    "load_peerread",
    "load_zeisel",
    "make_anchored_binary",
    "make_anchored_counts",
    "make_anchored_factors",
    "make_grouped_factors",
    "make_semisynthetic",
    "make_sparse_factors",
    "make_survey",
    "quantile_normalise",
    "verify_file",
]
