"""A fitted model, its table and its run."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsevae import Run, SparseVAE, read_table
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.io import TableFile


@pytest.fixture(scope="session")
def table(tmp_path_factory) -> TableFile:
    """Forty people, five items that rise together."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((40, 1))
    values = z * [1.0, 2.0, -1.0, 0.5, 1.5] + 0.3 * rng.standard_normal((40, 5))
    people = pd.Index([f"p{i:02}" for i in range(40)], name="person")
    frame = pd.DataFrame(values, columns=[f"item {j}" for j in range(5)], index=people)
    path = tmp_path_factory.mktemp("table") / "table.csv"
    frame.to_csv(path)
    return read_table(path)


@pytest.fixture(scope="session")
def model(table) -> SparseVAE:
    """A quick fit of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # four epochs settle nothing
        return SparseVAE(3, n_init=1, max_epochs=4, random_state=0).fit(table.for_estimator())


@pytest.fixture(scope="session")
def written(model, table, tmp_path_factory) -> Path:
    """A run of the quick fit, for reading only."""
    return Run.create(tmp_path_factory.mktemp("runs") / "run", model, table).path


@pytest.fixture
def run(written, tmp_path) -> Run:
    """A copy of it, to change."""
    return Run.open(shutil.copytree(written, tmp_path / "run"))
