"""Measures of recovery, prediction, ranking and topics on numpy and CSR arrays; none needs torch."""

from .disentanglement import DCI, code_importances, dci, match_codes, spearman_matrix, spearman_mcc
from .support import (
    SupportScore,
    factor_count_error,
    match_supports,
    support_f1,
    support_jaccard,
    support_score,
)

__all__ = [
    "DCI",
    "SupportScore",
    "code_importances",
    "dci",
    "factor_count_error",
    "match_codes",
    "match_supports",
    "spearman_matrix",
    "spearman_mcc",
    "support_f1",
    "support_jaccard",
    "support_score",
]
