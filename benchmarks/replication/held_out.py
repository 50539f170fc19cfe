"""What codes say of rows that no fit has seen, measured alike for every method."""

from __future__ import annotations

import numpy as np

from benchmarks.replication.methods import standardised
from sparsevae.metrics.replication import FactorSet

__all__ = ["held_out_variance"]


def held_out_variance(
    sets: list[FactorSet], halves: tuple[np.ndarray, np.ndarray], X: np.ndarray, likelihood: str
) -> float:
    """Mean over features of the variance of the other half that a regression on the codes explains.

    Codes are what a method finds. The regression of the standardised features (of counts: their log1p) on
    them is fitted to the rows of the fit and judged on the others, so that methods with different losses and
    decoders can be compared.
    """
    explained = []
    for found, own, other in zip(sets, halves, halves[::-1], strict=True):
        seen, new = standardised(X[own], X[other], likelihood)
        codes = np.column_stack([found.codes, np.ones(len(X))])
        solved, *_ = np.linalg.lstsq(codes[own], seen, rcond=None)
        left = np.square(new - codes[other] @ solved).mean(0)
        explained.append(1.0 - left / np.maximum(new.var(0), 1e-12))
    return float(np.mean(explained))
