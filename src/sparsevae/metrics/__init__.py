"""Measures of recovery, prediction, ranking and topics on numpy and CSR arrays; none needs torch."""

from sparsevae.metrics.classification import factor_accuracy
from sparsevae.metrics.disentanglement import (
    DCI,
    code_importances,
    dci,
    match_codes,
    spearman_matrix,
    spearman_mcc,
)
from sparsevae.metrics.likelihood import heldout_mse, heldout_nll, log_likelihood, perplexity
from sparsevae.metrics.ranking import ndcg_at_k, recall_at_k, split_items
from sparsevae.metrics.support import SupportScore, anchor_f1, match_supports, support_f1, support_score
from sparsevae.metrics.topics import npmi_coherence, top_words, topic_diversity

__all__ = [
    "DCI",
    "SupportScore",
    "anchor_f1",
    "code_importances",
    "dci",
    "factor_accuracy",
    "heldout_mse",
    "heldout_nll",
    "log_likelihood",
    "match_codes",
    "match_supports",
    "ndcg_at_k",
    "npmi_coherence",
    "perplexity",
    "recall_at_k",
    "spearman_matrix",
    "spearman_mcc",
    "split_items",
    "support_f1",
    "support_score",
    "top_words",
    "topic_diversity",
]
