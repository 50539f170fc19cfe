"""Measures of recovery, prediction, ranking and topics on numpy and CSR arrays; none needs torch."""

from sparsevae.metrics.bounds import elbo, gaussian_kl, importance_weighted_bound, posterior_nll
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
from sparsevae.metrics.ranking import (
    UserSplit,
    ndcg_at_k,
    recall_at_k,
    split_items,
    strong_generalisation_split,
)
from sparsevae.metrics.support import (
    SupportScore,
    anchor_f1,
    factor_count_error,
    match_supports,
    support_f1,
    support_jaccard,
    support_score,
)
from sparsevae.metrics.topics import npmi_coherence, top_words, topic_diversity

__all__ = [
    "DCI",
    "SupportScore",
    "UserSplit",
    "anchor_f1",
    "code_importances",
    "dci",
    "elbo",
    "factor_accuracy",
    "factor_count_error",
    "gaussian_kl",
    "heldout_mse",
    "heldout_nll",
    "importance_weighted_bound",
    "log_likelihood",
    "match_codes",
    "match_supports",
    "ndcg_at_k",
    "npmi_coherence",
    "perplexity",
    "posterior_nll",
    "recall_at_k",
    "spearman_matrix",
    "spearman_mcc",
    "split_items",
    "strong_generalisation_split",
    "support_f1",
    "support_jaccard",
    "support_score",
    "top_words",
    "topic_diversity",
]
