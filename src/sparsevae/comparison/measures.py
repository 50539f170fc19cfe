"""What is measured on a fit: the paper's metrics as they were computed, and stronger ones beside them.

A measure takes a `Fit` and returns a number, None where the method has no such quantity, or for figures and
topics a list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from scipy.special import gammaln
from torch import Tensor

from sparsevae.aliases import Matrix, TableLike
from sparsevae.datasets import Dataset
from sparsevae.estimators.base import TableEstimator
from sparsevae.estimators.factor_estimator import FactorEstimator
from sparsevae.inspection.codes import Codes, map_rows
from sparsevae.metrics import (
    dci,
    factor_accuracy,
    heldout_mse,
    ndcg_at_k,
    npmi_coherence,
    perplexity,
    recall_at_k,
    spearman_mcc,
    split_items,
    support_f1,
    top_words,
    topic_diversity,
)
from sparsevae.modules import Batch, LatentModule
from sparsevae.summaries import dense_table

__all__ = ["MEASURES", "Fit", "Measure", "reconstruction_nll", "score_of", "sparsity_of"]

_FLOOR = 1e-6  # smallest share of a word, as in the released code
_RELEASED_ROWS = 16  # on which the released code computes its DCI
_RELEASED_SEED = 42
_TOP = 10

Value = float | list[list[str]] | list[list[float]] | None


@dataclass
class Fit:
    """A fitted estimator with the data that it was fitted on and the data that it is measured on."""

    estimator: TableEstimator
    train: Dataset
    test: Dataset
    seed: int = 0

    @cached_property
    def codes(self) -> np.ndarray:
        """Codes of the test rows: posterior means, where there is a posterior."""
        return self.estimator.transform(self.test.X)

    @cached_property
    def posteriors(self) -> Codes:
        """Posteriors of the test rows: found once, since finding them costs more than using them."""
        assert isinstance(self.estimator, FactorEstimator)
        return self.estimator.codes(self.test.X)

    @cached_property
    def drawn(self) -> np.ndarray:
        """Codes of the test rows: one posterior draw each, where there is a posterior."""
        if not isinstance(self.estimator, FactorEstimator):
            return self.codes
        generator = torch.Generator().manual_seed(self.seed)

        def draw(module: LatentModule, batch: Batch, moments: Tensor) -> Tensor:
            noise = torch.randn(batch.n_rows, module.n_noise, generator=generator, dtype=batch.x.dtype)
            mean, log_variance = moments.chunk(2, -1)
            return module.draw_posterior(batch, (mean, log_variance), noise)

        posteriors = self.posteriors
        return map_rows(self.estimator.module_, posteriors.X, draw, posteriors.moments())

    def rebuilt(self, X: Matrix) -> np.ndarray:
        """Expected data of each row from the row itself; for counts, up to the row's total."""
        estimator = self.estimator
        mean = estimator.reconstruct(X)
        if isinstance(estimator, FactorEstimator):
            return mean
        return mean if estimator.likelihood == "gaussian" else np.maximum(mean, 0.0)

    @cached_property
    def rebuilt_from_draw(self) -> np.ndarray:
        """Expected data of the test rows at one posterior draw."""
        if isinstance(self.estimator, FactorEstimator):
            return self.estimator.inverse_transform(self.drawn)
        return self.rebuilt(self.test.X)

    @cached_property
    def comes_once(self) -> bool:
        """Whether an entry is there or not, as a rated movie, instead of a count."""
        return self.test.X.max() == 1

    @cached_property
    def partly_seen(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Test rows in two parts: what a method may see, and what it has to foretell."""
        X = sparse.csr_array(self.test.X)
        if self.comes_once:
            return split_items(X, random_state=self.seed)
        seen = X.copy()
        seen.data = np.random.default_rng(self.seed).binomial(X.data.astype(np.int64), 0.5).astype(X.dtype)
        hidden = X - seen
        for part in (seen, hidden):
            part.eliminate_zeros()
        return seen, hidden

    @cached_property
    def foretold(self) -> np.ndarray:
        """Scores of all items from the part that was seen."""
        return self.rebuilt(self.partly_seen[0])


class Measure(NamedTuple):
    """A quantity by name: its title in tables, which way is better, and how it is computed."""

    title: str
    better: str
    """ "lower", "higher", or empty where neither is."""
    compute: Callable[[Fit], Value]
    digits: int = 3
    is_list: bool = False
    """Whether the value is for a figure or a list of topics, and no number."""


def reconstruction_nll(estimator: TableEstimator, X: TableLike, codes: np.ndarray | None = None) -> float:
    """Mean of -log p(x | code) per row, without KL and without the multinomial coefficient.

    Parameters
    ----------
    estimator : a fitted estimator
    X : array or CSR array of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples, n_factors), optional
        Factors of the rows; those that `transform` gives by default. Methods without a posterior have one
        code only.
    """
    if isinstance(estimator, FactorEstimator):
        codes = estimator.transform(X) if codes is None else codes
        X = estimator.check_table(X)

        def log_likelihood(module: LatentModule, batch: Batch, z: Tensor) -> Tensor:
            return module.log_likelihood(batch, module.decode(z))

        values = map_rows(estimator.module_, X, log_likelihood, codes).astype(np.float64)
        values = values + float(estimator.module_.observation.log_jacobian())
    else:
        X = estimator.check_table(X)
        values = estimator.score_samples(X)
    return float((_log_coefficient(estimator, X) - values).mean())


def score_of(estimator: TableEstimator, X: TableLike) -> float:
    """Mean ELBO per row, or log p(x) where the method knows it; NaN where it has neither."""
    if isinstance(estimator, FactorEstimator):
        return estimator.score(X)
    evidence = estimator.log_evidence(X) if hasattr(estimator, "log_evidence") else None
    return np.nan if evidence is None else float(evidence.mean())


def _log_coefficient(estimator: TableEstimator, X: Matrix) -> np.ndarray:
    total = np.zeros(X.shape[0])
    for part, columns in estimator.resolved_likelihood().split(X.shape[1]):
        if not part.factorised:
            counts = dense_table(X[:, columns])
            total += gammaln(counts.sum(1) + 1.0) - gammaln(counts + 1.0).sum(1)
    return total


def _mean_nll(fit: Fit) -> float:
    codes = None
    if isinstance(fit.estimator, FactorEstimator):
        codes = fit.posteriors.moments()[:, : fit.estimator.module_.n_factors]
    return reconstruction_nll(fit.estimator, fit.test.X, codes)


def _bound_nll(fit: Fit) -> float | None:
    X = fit.estimator.check_table(fit.test.X)
    if isinstance(fit.estimator, FactorEstimator):
        score = float(fit.posteriors.bounds(fit.estimator.score_draws()).mean())
    else:
        score = score_of(fit.estimator, X)
    return None if np.isnan(score) else float(_log_coefficient(fit.estimator, X).mean() - score)


def _completion(fit: Fit) -> float:
    """What comes once and was seen is not among what is hidden: nobody has to guess it."""
    seen, hidden = fit.partly_seen
    foretold = np.where(seen.toarray() > 0, 0.0, fit.foretold) if fit.comes_once else fit.foretold
    return perplexity(hidden, foretold, floor=_FLOOR)


def _released_dci(fit: Fit) -> float:
    rows = np.random.RandomState(_RELEASED_SEED).permutation(fit.test.n_samples)[:_RELEASED_ROWS]
    return dci(fit.codes[rows], fit.test.factors[rows]).disentanglement  # type: ignore[index]


def _accuracy(fit: Fit) -> float:
    codes = np.vstack([fit.estimator.transform(fit.train.X), fit.codes])
    target = np.concatenate([fit.train.target, fit.test.target])  # type: ignore[list-item]
    return factor_accuracy(codes, target, test_rows=np.arange(fit.train.n_samples, len(codes)))


def _support_f1(fit: Fit) -> float | None:
    mask = getattr(fit.estimator, "mask_", None)
    return None if mask is None else support_f1(mask, fit.test.mask)


def sparsity_of(estimator: TableEstimator) -> float | None:
    """Share of exact zeros among the loadings of the factors in use; None without loadings.

    Parameters
    ----------
    estimator : fitted estimator
    """
    if not hasattr(estimator, "loadings"):
        return None
    loadings = estimator.loadings().to_numpy()
    return float((loadings == 0).mean()) if loadings.size else None


def _weights(fit: Fit) -> np.ndarray:
    """Factors as topics, a row each: the size of the mask's entries."""
    return np.abs(fit.estimator.loadings().to_numpy()).T


def _ends(fit: Fit) -> np.ndarray:
    """Both ends of each factor as topics: shares of variance of what rises with it, then of what falls."""
    active = fit.estimator.active_factors_
    shares, effects = fit.estimator.variance_shares_[:, active].T, fit.estimator.effects_[:, active].T
    return np.stack([shares * (effects > 0), shares * (effects < 0)], 1).reshape(-1, shares.shape[-1])


def _names(fit: Fit, topics: np.ndarray) -> list[list[str]]:
    names = fit.train.feature_names
    return [[str(names[j]) for j in chosen] for chosen in top_words(topics, _TOP)] if len(topics) else []


def _coherence(fit: Fit, topics: np.ndarray) -> float | None:
    try:
        return float(npmi_coherence(topics, fit.test.X, n_words=_TOP))
    except ValueError:  # no topic of two words
        return None


def _diversity(fit: Fit) -> float | None:
    weights = _weights(fit)
    return topic_diversity(weights, n_words=_TOP) if weights.any() else None


def _mask(fit: Fit) -> list[list[float]] | None:
    mask = getattr(fit.estimator, "mask_", None)
    return None if mask is None else np.round(mask, 5).tolist()


def _foretold_ranking(measure: Callable[..., float | np.ndarray], k: int) -> Callable[[Fit], float]:
    def compute(fit: Fit) -> float:
        seen, hidden = fit.partly_seen
        return float(measure(fit.foretold, hidden, k, protocol="fold_in", seen=seen))

    return compute


MEASURES: dict[str, Measure] = {
    "nll": Measure(
        "NLL",
        "lower",
        lambda fit: reconstruction_nll(fit.estimator, fit.test.X, fit.drawn),
        1,
    ),
    "nll_mean": Measure("NLL at the posterior mean", "lower", _mean_nll, 1),
    "nll_bound": Measure("minus ELBO", "lower", _bound_nll, 1),
    "completion": Measure(
        "perplexity of hidden entries",
        "lower",
        _completion,
        1,
    ),
    "recall_5": Measure(
        "Recall@5", "higher", lambda fit: float(recall_at_k(fit.rebuilt_from_draw, fit.test.X, 5))
    ),
    "ndcg_10": Measure(
        "NDCG@10", "higher", lambda fit: float(ndcg_at_k(fit.rebuilt_from_draw, fit.test.X, 10))
    ),
    "recall_5_fold_in": Measure("Recall@5, hidden items", "higher", _foretold_ranking(recall_at_k, 5)),
    "ndcg_10_fold_in": Measure("NDCG@10, hidden items", "higher", _foretold_ranking(ndcg_at_k, 10)),
    "mse": Measure("MSE", "lower", lambda fit: heldout_mse(fit.test.X, fit.rebuilt_from_draw)),
    "mse_mean": Measure(
        "MSE at the posterior mean", "lower", lambda fit: heldout_mse(fit.test.X, fit.rebuilt(fit.test.X))
    ),
    "dci": Measure("DCI", "higher", lambda fit: dci(fit.codes, fit.test.factors).disentanglement),
    "dci_16": Measure("DCI on 16 rows", "higher", _released_dci),
    "rank_correlation": Measure(
        "rank correlation", "higher", lambda fit: spearman_mcc(fit.codes, fit.test.factors)
    ),
    "support_f1": Measure("F-score of the support", "higher", _support_f1),
    "accuracy": Measure("accuracy", "higher", _accuracy),
    "n_factors": Measure("factors in use", "", lambda fit: len(fit.estimator.active_factors_), 1),
    "sparsity": Measure("share of zero loadings", "", lambda fit: sparsity_of(fit.estimator), 2),
    "coherence": Measure("NPMI coherence", "higher", lambda fit: _coherence(fit, _weights(fit))),
    "coherence_ends": Measure(
        "NPMI coherence of both ends", "higher", lambda fit: _coherence(fit, _ends(fit))
    ),
    "diversity": Measure("diversity", "higher", _diversity),
    "topics": Measure("topics", "", lambda fit: _names(fit, _weights(fit)), is_list=True),
    "ends": Measure("ends", "", lambda fit: _names(fit, _ends(fit)), is_list=True),
    "mask": Measure("mask", "", _mask, is_list=True),
    "codes": Measure("codes", "", lambda fit: np.round(fit.codes, 3).tolist(), is_list=True),
}
"""What can be measured, by the name that rows have for it."""
