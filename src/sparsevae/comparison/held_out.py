"""Several methods on one split of one table, in one table of results."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from sparsevae.aliases import Matrix, TableLike
from sparsevae.comparison.measures import reconstruction_nll, score_of, sparsity_of
from sparsevae.comparison.methods import DEFAULT, Methods, make_estimators
from sparsevae.estimators.base import TableEstimator
from sparsevae.exceptions import DataError, DivergenceError
from sparsevae.validation import check_fraction

__all__ = ["compare"]

logger = logging.getLogger(__name__)


def compare(
    X: TableLike,
    methods: Methods = DEFAULT,
    *,
    n_factors: int = 10,
    likelihood: str | Mapping[str, object] = "gaussian",
    test_fraction: float = 0.2,
    random_state: int | None = 0,
    **parameters: object,
) -> pd.DataFrame:
    """Fit several methods to the same rows and measure them on the same held-out rows.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n_samples, n_features)
    methods : str, sequence or dict
        Names as in `METHODS`, with parameters where wanted: ``"SparseVAE, VAE(beta=4), NMF"``; or a sequence
        of such names and of estimators; or a dict from label to estimator. Estimators are taken as they are.
    n_factors, likelihood
        Of the methods given by name.
    test_fraction : float
        Share of the rows that no method sees while it is fitted.
    random_state : int or None
        Of the split, and of the methods given by name.
    **parameters
        Further parameters of the methods given by name, for those that have them: ``max_epochs=50``.

    Returns
    -------
    DataFrame
        A row per method, in the order given:

        score
            Mean ELBO per held-out row, or log p(x) where a method knows it; higher is better. NaN for methods
            without a distribution of their codes.
        reconstruction
            Mean of -log p(x | code) per held-out row, at the code that the method finds for the row; lower is
            better. The paper's "held-out negative log-likelihood": without KL, without the multinomial
            coefficient.
        seconds
            Of the fit.
        factors
            How many factors the method uses.
        sparsity
            Share of exact zeros among the loadings of these factors; NaN for methods without loadings.
        note
            Why a method could not be fitted; empty if it was.

    Examples
    --------
    >>> from sparsevae import compare
    >>> from sparsevae.datasets import make_sparse_factors
    >>> X = make_sparse_factors(200, random_state=0).X
    >>> compare(X, "PCA, FactorAnalysis", n_factors=2)["factors"].tolist()
    [2, 2]
    """
    check_fraction("test_fraction", test_fraction)
    common = {"n_factors": n_factors, "likelihood": likelihood, "random_state": random_state, **parameters}
    estimators = make_estimators(methods, **common)
    training, test = train_test_split(X, test_size=test_fraction, random_state=random_state)
    rows = {}
    for label, estimator in estimators.items():
        logger.info("Fitting %s", label)
        rows[label] = _measure(estimator, training, test)
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def _measure(estimator: TableEstimator, training: Matrix, test: Matrix) -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(("score", "reconstruction", "seconds"), np.nan)
    row.update(factors=pd.NA, sparsity=np.nan, note="")
    started = time.perf_counter()
    try:
        estimator.fit(training)
    except (DataError, DivergenceError) as error:
        return {**row, "note": str(error)}
    row["seconds"] = time.perf_counter() - started
    row["score"], row["reconstruction"] = score_of(estimator, test), reconstruction_nll(estimator, test)
    row["factors"] = len(estimator.active_factors_)
    sparsity = sparsity_of(estimator)
    return row if sparsity is None else {**row, "sparsity": sparsity}
