"""scikit-learn's own checks of every estimator, on instances small enough to fit in a blink."""

from __future__ import annotations

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


@parametrize_with_checks(INSTANCES)
def test_scikit_learn_check(estimator, check):
    check(estimator)
