"""scikit-learn's own checks of every estimator, on instances small enough to fit in a blink."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE

# A few epochs on random numbers do not settle, and say so; some checks pass constant features.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sparsevae.exceptions.DataWarning"),
]

TINY = {"n_factors": 2, "n_init": 1, "max_epochs": 2}
SMALL = {**TINY, "hidden_sizes": (4,)}


class OnWholeNumbers(SparseVAE):
    """A count model that rounds its table: the checks pass any non-negative numbers."""

    def _check_values(self, X):
        X = X.copy()
        values = X.data if hasattr(X, "tocsr") else X
        values[np.isfinite(values)] = np.rint(values[np.isfinite(values)])
        return super()._check_values(X)


INSTANCES = [
    SparseVAE(**TINY, hidden_sizes=(4, 4)),
    SparseVAE(**TINY, hidden_sizes=()),
    OnWholeNumbers(**SMALL, likelihood="poisson", recipe="paper"),
    VAE(**SMALL),
    VAE(**SMALL, beta=4.0, recipe="paper"),
    VSC(**SMALL),
    OIVAE(**SMALL),
    NMF(n_factors=2),
]


REASON = "weights are copies of rows; the check shuffles these, and mini-batches of other rows end elsewhere"
EQUIVALENCE = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]


def expected_failures(estimator):
    return {} if isinstance(estimator, NMF) else dict.fromkeys(EQUIVALENCE, REASON)


# scikit-learn's NMF says so of its own start.
@pytest.mark.filterwarnings("ignore:Array API does not support LU factorization:UserWarning")
@parametrize_with_checks(INSTANCES, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_arrays_of_other_libraries_in_a_process_where_scipy_takes_them():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        [*command, "-k", "check_array_api_input"],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(INSTANCES)} passed" in done.stdout
    assert "skipped" not in done.stdout
