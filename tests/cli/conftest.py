"""A small table with one clear factor, quick settings, and a run that several tests read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from .helpers import invoke

QUICK = "n_init = 1\nmax_epochs = 4\nn_factors = 3\n"


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Forty people, five items that rise together."""
    rng = np.random.default_rng(3)
    z = rng.standard_normal((40, 1))
    values = z * [1.0, 2.0, -1.0, 0.5, 1.5] + 0.3 * rng.standard_normal((40, 5))
    people = [f"p{i:02}" for i in range(40)]
    return pd.DataFrame(
        values, columns=[f"item {j}" for j in range(5)], index=pd.Index(people, name="person")
    )


@pytest.fixture(scope="session")
def shared(tmp_path_factory, frame) -> Path:
    """A folder with the table as CSV, quick settings, and a finished run; for reading only."""
    folder = tmp_path_factory.mktemp("cli")
    frame.to_csv(folder / "table.csv")
    (folder / "quick.toml").write_text(QUICK)
    result = invoke("fit", folder / "table.csv", "--out", folder / "run", "--config", folder / "quick.toml")
    assert result.exit_code == 0, result.stderr
    return folder


@pytest.fixture
def quick(shared) -> Path:
    """Settings of a fit that takes a second."""
    return shared / "quick.toml"
