"""How well factors predict labels that were not used to find them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsevae.exceptions import DataError
from sparsevae.metrics.base import as_matrix

__all__ = ["factor_accuracy"]


def factor_accuracy(
    codes: ArrayLike,
    target: ArrayLike,
    *,
    test_rows: ArrayLike | None = None,
    test_fraction: float = 0.2,
    random_state: int | None = 0,
) -> float:
    """Return the test accuracy of a multinomial logistic regression of labels on factors.

    Parameters
    ----------
    codes : array of shape (n_samples, n_factors)
    target : array of shape (n_samples,)
        Labels of two or more classes.
    test_rows : array of int or bool, optional
        The rows to test on, for a split that is given: the rows that the factors were *not* fitted on.
    test_fraction : float, default=0.2
        Share of the rows to test on where ``test_rows`` is not given; drawn with the classes' shares kept.
    random_state : int or None, default=0

    Returns
    -------
    float in [0, 1]

    Notes
    -----
    Table `tb:zeisel_results`. Factors are standardised with the training rows; the penalty is scikit-learn's
    default.
    """
    codes, target = as_matrix("codes", codes), np.asarray(target)
    if target.shape != (len(codes),):
        raise DataError(f"Expected a label for each of {len(codes)} rows of codes; got shape {target.shape}.")
    rows = np.arange(len(codes))
    if test_rows is None:
        train, test = train_test_split(
            rows, test_size=test_fraction, stratify=target, random_state=random_state
        )
    else:
        test = rows[np.asarray(test_rows)]
        train = np.setdiff1d(rows, test)
    if not len(test) or len(np.unique(target[train])) < 2:
        raise DataError(
            f"Expected test rows, and training rows of two or more classes; got {len(test)} test rows and "
            f"{len(np.unique(target[train]))} classes in {len(train)} training rows."
        )
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000))
    return float(model.fit(codes[train], target[train]).score(codes[test], target[test]))
