"""Settings and seeds that the tests share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, settings

from sparsevae import SparseVAE
from sparsevae.inspection.codes import Codes
from sparsevae.modules import SparseVAEConfig, SparseVAEModule

from . import models, tables

# No deadline: no test asserts on time. Derandomised: the same examples on every machine and every run.
settings.register_profile(
    "sparsevae",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sparsevae")


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """Path of a real file or folder in SPARSEVAE_TEST_DATA; where it is absent the test is skipped."""
    folder = os.environ.get("SPARSEVAE_TEST_DATA")

    def find(name: str) -> Path:
        if not folder:
            pytest.skip(f"real data: set SPARSEVAE_TEST_DATA to the folder that holds {name}")
        if not (path := Path(folder) / name).exists():
            pytest.skip(f"real data: there is no {name} in SPARSEVAE_TEST_DATA={folder}")
        return path

    return find


@pytest.fixture
def rng() -> np.random.Generator:
    """A numpy generator with a fixed seed."""
    return np.random.default_rng(20240615)


@pytest.fixture
def generator() -> torch.Generator:
    """A torch generator with a fixed seed."""
    return torch.Generator().manual_seed(20240615)


@pytest.fixture(scope="session")
def make_table() -> Callable[..., Any]:
    """A small table of a likelihood."""
    return tables.make_table


@pytest.fixture(scope="session")
def make_model() -> Callable[..., SparseVAE]:
    """An estimator that fits in a blink, not yet fitted."""
    return models.make_model


@pytest.fixture(scope="session")
def fit() -> Callable[..., SparseVAE]:
    """Fit, without the warning that a few epochs were few."""
    return models.fit


@pytest.fixture(scope="session")
def linear_model() -> Callable[..., SparseVAE]:
    """A fitted estimator without a fit: a linear model with given loadings, encoder by least squares."""

    def make(X: Any, factors: np.ndarray, loadings: np.ndarray, **parameters: Any) -> SparseVAE:
        """Loadings are in standard deviations of the features, or on the scale of the decoder's outputs."""
        model = SparseVAE(loadings.shape[1], hidden_sizes=(), random_state=0, **parameters)
        data = model._prepare(X)
        module = SparseVAEModule(
            data.source.observation,
            SparseVAEConfig(n_factors=loadings.shape[1], hidden_sizes=()),
            generator=torch.Generator().manual_seed(0),
        ).requires_grad_(False)
        inputs = data.source.batch(torch.arange(len(factors))).inputs.double().numpy()
        encoder = np.linalg.lstsq(inputs, factors, rcond=None)[0].T
        module.mask.weight.copy_(torch.as_tensor(loadings))
        module.encoder.mean_weight.zero_()
        module.encoder.linear.copy_(torch.as_tensor(encoder))
        module.encoder.log_variance_weight.zero_()
        module.encoder.log_variance_bias.fill_(-3.0)
        module.noise_variance.copy_(torch.as_tensor(1.0 - (loadings**2).sum(1)).clamp(0.05, 1.0))
        model.starts_ = pd.DataFrame({"start": ["1"], "n_active": [2], "bound": [-1.0], "chosen": [True]})
        unused = np.flatnonzero(~(loadings != 0).any(0))
        model.dropped_factors_ = {int(k): "no feature uses it" for k in unused}
        terms = {
            "objective": [3.0, 2.0],
            "reconstruction": [2.5, 1.6],
            "kl": [0.5, 0.4],
            "mask_penalty": [0.0, 0.0],
        }
        counts = {"n_nonzero": [9, 7], "n_active": [2, 2], "validation": [np.nan, -2.1]}
        model.history_ = pd.DataFrame({"epoch": [1, 1], "phase": ["dense", "final"], **terms, **counts})
        model.n_iter_, model._n_features_out = 2, module.n_factors
        model.module_ = module.eval()
        model._finish(Codes(module, data.source.X), data)
        return model

    return make
