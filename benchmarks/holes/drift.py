"""Drift: false alarms, broken curves and moved mixes on new rows of a known generator."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.inspection.drift import Drift


def drift(arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    """False alarms, broken curves and moved mixes on new rows of a known generator."""
    n_fit, n_new, n_tables = 1500, 500, 40
    data = make_anchored_factors(n_fit + n_tables * n_new, 30, 4, random_state=0)
    model = SparseVAE(6, random_state=0).fit(data.X[:n_fit])
    assert data.mean is not None
    assert data.factors is not None
    rest, means, Z = data.X[n_fit:], data.mean[n_fit:], data.factors[n_fit:]
    rng = np.random.default_rng(0)
    counts = dict.fromkeys(
        (
            "false_alarm",
            "factor_false_alarm",
            "column_test_false_alarm",
            "shift",
            "slope",
            "mix",
            "mix_blamed",
            "mix_blamed_by_column_test",
            "flat",
            "flat_blamed",
        ),
        0,
    )
    for t in range(n_tables):
        rows = slice(t * n_new, (t + 1) * n_new)
        plain = model.drift(rest[rows])
        counts["false_alarm"] += bool(plain.broken)
        counts["factor_false_alarm"] += bool(plain.moved)
        counts["column_test_false_alarm"] += _column_alarm(plain)
        j = int(rng.integers(30))
        X = rest[rows].copy()
        X[:, j] += X[:, j].std()
        counts["shift"] += f"x{j}" in model.drift(X).broken
        X = rest[rows].copy()
        X[:, j] -= 0.5 * (means[rows, j] - means[:, j].mean())
        counts["slope"] += f"x{j}" in model.drift(X).broken
        chance = np.exp(Z[:, t % 4])
        moved = model.drift(rest[rng.choice(len(rest), n_new, replace=False, p=chance / chance.sum())])
        counts["mix_blamed"] += bool(moved.broken)
        counts["mix"] += bool(moved.moved)
        counts["mix_blamed_by_column_test"] += _column_alarm(moved)
        alike = np.argsort(np.abs(Z[:, t % 4]))[: 4 * n_new]  # rows that hardly differ on one factor
        flat = model.drift(rest[rng.choice(alike, n_new, replace=False)])
        counts["flat_blamed"] += bool(flat.broken)
        counts["flat"] += bool(flat.moved)
    yield {name: value / n_tables for name, value in counts.items()}


def _column_alarm(found: Drift) -> bool:
    """Whether a Kolmogorov-Smirnov test of each column alone would raise an alarm, at the same level."""
    p = found.features["column_p_value"].to_numpy()
    return bool(p.min() * len(p) <= 0.05)
