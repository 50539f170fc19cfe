"""Fits that are saved at the end of every stage, and others that go on from there."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from sparsevae import SparseVAE
from sparsevae.exceptions import DataWarning
from sparsevae.fitting import FitState, fit_module
from sparsevae.fitting.recipes import Looser
from sparsevae.persistence.codec import decode, encode

from .. import tables
from ..models import LADDER
from ..training.helpers import assert_equal_states

# Enough steps to find the factors.
TINY = {
    "n_factors": 3,
    "hidden_sizes": (8,),
    "n_init": 2,
    "max_epochs": 20,
    "learning_rate": 0.01,
    "batch_size": 16,
    "recipe": LADDER,  # cases of the spine say so
    "random_state": 0,
}
SIMPLE = {"recipe": "default"}
WIDE = {**TINY, "hidden_sizes": (32,), "max_epochs": 8, "batch_size": 128}
MIXED = {"gaussian": [0, 1], "poisson": [2, 3], "bernoulli": [4], "multinomial": [5, 6]}
# Takes the looser mask at almost any price.
LENIENT = replace(LADDER, looser=Looser(clearly=-100.0))


def wide_table():
    """So many features that a table is not small: 128 rows in a batch × 130 features × 32 units."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 2)) @ np.kron(np.eye(2), np.ones(65)) + rng.normal(size=(150, 130))


def linear_table(weak, n_samples=3000):
    """Two factors with six features each, three of which may depend weakly on the other factor too."""
    rng = np.random.default_rng(0)
    loadings = np.repeat(np.eye(2), 6, axis=0)
    loadings[:3, 1] = loadings[6:9, 0] = weak * np.array([1.0, -1.0, 1.0])
    return rng.normal(size=(n_samples, 2)) @ loadings.T + 0.7 * rng.normal(size=(n_samples, 12))


def noise_table():
    return np.random.default_rng(0).normal(size=(200, 600))


def real_table():
    return tables.make_table(n_samples=200)


def count_table():
    """Features take turns with two factors."""
    rng = np.random.default_rng(0)
    return rng.poisson(np.exp(2.0 + 0.8 * rng.normal(size=(200, 2))[:, np.arange(7) % 2])).astype(float)


def mixed_table():
    X = count_table()
    X[:, :2] = np.log1p(X[:, :2])
    X[:, 4] = X[:, 4] > 7
    return X


CASES = {
    "small": (real_table, TINY),
    "spine or network": (real_table, {**TINY, **SIMPLE}),
    "spine and ladders": (real_table, {**TINY, **SIMPLE, "gain_kept": 1.0}),
    "spine": (wide_table, {**WIDE, **SIMPLE}),
    "spine, counts": (count_table, {**TINY, **SIMPLE, "likelihood": "poisson"}),
    "spine, mixed": (mixed_table, {**TINY, **SIMPLE, "likelihood": MIXED}),
    "large": (wide_table, WIDE),
    "linear": (real_table, {**TINY, "hidden_sizes": ()}),
    "rotation": (real_table, {**TINY, "init": "rotation"}),
    "anchors": (real_table, {**TINY, "anchors": {"x0": 1, "x1": 0}}),
    "linear, anchors": (real_table, {**TINY, "hidden_sizes": (), "anchors": {0: 1, 1: 0}}),
    "large, anchors": (wide_table, {**WIDE, "anchors": {0: 1}}),
    "negative binomial": (count_table, {**TINY, "likelihood": "negative_binomial"}),
    "mixed": (mixed_table, {**TINY, "likelihood": MIXED}),
    "given covariance": (real_table, {**TINY, "factor_covariance": 0.7 * np.eye(3) + 0.3}),
    "given rates": (real_table, {**TINY, "spike_rate": 20, "slab_rate": 1.5}),
    "a looser rate": (lambda: linear_table(0.12, 200), {**TINY, "hidden_sizes": (), "recipe": LENIENT}),
    "no factor": (noise_table, {**WIDE, "max_epochs": 4, "n_init": 1, "spike_rate": 1e6}),
    "some features": (wide_table, {**WIDE, "features_per_step": 40}),
    "paper": (real_table, {**TINY, "recipe": "paper"}),
    "authors": (real_table, {**TINY, "recipe": "authors"}),
}
"""By name: a table, and parameters of a fit to it."""


def prepare(case):
    """Settings and rows, prepared anew, as another process would."""
    table, parameters = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return SparseVAE(**parameters).prepare_fit(table())


def save_stages(case, folder: Path, *, until=None):
    """Fit, with a file of JSON and one of arrays at the end of each stage; interrupted after one if asked."""

    def save(state):
        arrays: dict[str, np.ndarray] = {}
        text = json.dumps(encode(state.to_dict(), arrays, "state"))
        (folder / f"{state.stage}.json").write_text(text)
        np.savez(folder / f"{state.stage}.npz", **arrays)
        if state.stage == until:
            raise KeyboardInterrupt

    return fit_module(*prepare(case), on_stage=save)


def read_state(folder: Path, stage, data):
    with np.load(folder / f"{stage}.npz") as arrays:
        values = decode(json.loads((folder / f"{stage}.json").read_text()), dict(arrays))
    return FitState.from_dict(values, data)


def assert_equal_fits(fitted, expected):
    """Module, rates, history and starts of two fits are equal to the last bit."""
    assert_equal_states(fitted.module, expected.module)
    assert fitted.module.config == expected.module.config
    for name, rate in fitted.module.mask.rates().items():
        np.testing.assert_array_equal(rate, expected.module.mask.rates()[name])
    pd.testing.assert_frame_equal(fitted.history, expected.history, check_exact=True)
    pd.testing.assert_frame_equal(fitted.starts, expected.starts, check_exact=True)
    assert fitted.dropped == expected.dropped
    assert fitted.converged == expected.converged
