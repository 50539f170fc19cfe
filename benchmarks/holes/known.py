"""Known factors: recovery with holes, and fits of weighted rows beside those of repeated ones."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.metrics import support_f1


def recovery(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Known factors with 15 % of the cells missing."""
    for seed in arguments.seeds:
        data = make_anchored_factors(1000, 60, 6, random_state=seed)
        X = np.where(np.random.default_rng(seed).uniform(size=data.X.shape) < 0.15, np.nan, data.X)
        started = time.perf_counter()
        model = SparseVAE(10, random_state=0).fit(X)
        yield {
            "seed": seed,
            "n_active": len(model.active_factors_),
            "support_f1": round(support_f1(model.mask_, data.mask), 4),
            "seconds": round(time.perf_counter() - started),
        }


def weights(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Rows of weight 0, 1 and 2 beside rows that are absent, there once, and there twice."""
    for seed in arguments.seeds:
        data = make_anchored_factors(1000, 60, 6, random_state=seed)
        weight = np.random.default_rng(seed).integers(0, 3, len(data.X))
        weighted = SparseVAE(10, random_state=0).fit(data.X, sample_weight=weight)
        repeated = SparseVAE(10, random_state=0).fit(np.repeat(data.X, weight, axis=0))
        yield {
            "seed": seed,
            "n_active_weighted": len(weighted.active_factors_),
            "n_active_repeated": len(repeated.active_factors_),
            "links_weighted": int((weighted.mask_ != 0).sum()),
            "links_repeated": int((repeated.mask_ != 0).sum()),
            "support_f1_of_each_other": round(support_f1(weighted.mask_, repeated.mask_), 4),
            "support_f1_weighted": round(support_f1(weighted.mask_, data.mask), 4),
            "support_f1_repeated": round(support_f1(repeated.mask_, data.mask), 4),
        }
