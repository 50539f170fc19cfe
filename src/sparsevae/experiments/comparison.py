"""Several methods on one split of one table, in one table of results."""

from __future__ import annotations

import ast
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from sparsevae.aliases import Matrix, TableLike
from sparsevae.estimators import NMF, OIVAE, VAE, VSC, SparseVAE
from sparsevae.estimators.base import TableEstimator
from sparsevae.exceptions import DataError, DivergenceError, ParameterError
from sparsevae.experiments.adapters import EASE, FactorAnalysisAdapter, LDAAdapter, PCAAdapter
from sparsevae.experiments.measures import reconstruction_nll, score_of, sparsity_of
from sparsevae.validation import check_fraction

__all__ = ["METHODS", "compare", "make_estimators", "parse_methods"]

logger = logging.getLogger(__name__)


def _sparse_linear(**parameters: Any) -> SparseVAE:
    return SparseVAE(**{**parameters, "hidden_sizes": ()})


METHODS: dict[str, Callable[..., TableEstimator]] = {
    "SparseVAE": SparseVAE,
    "SparseLinear": _sparse_linear,
    "VAE": VAE,
    "VSC": VSC,
    "OIVAE": OIVAE,
    "NMF": NMF,
    "PCA": PCAAdapter,
    "FactorAnalysis": FactorAnalysisAdapter,
    "LDA": LDAAdapter,
    "EASE": EASE,
}
"""What can be compared by name."""

DEFAULT = ("SparseVAE", "VAE", "NMF")

Methods = str | Iterable[str | TableEstimator] | Mapping[str, TableEstimator]


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


def parse_methods(text: str) -> dict[str, tuple[str, dict[str, object]]]:
    """Read a list of methods: ``"SparseVAE, VAE(beta=4)"``.

    Parameters
    ----------
    text : str

    Returns
    -------
    dict
        From what was written to the name of the method and its parameters.
    """
    example = "Write for example 'SparseVAE, VAE(beta=4), NMF'."
    try:
        nodes = ast.parse(f"[{text}]", mode="eval").body.elts  # type: ignore[attr-defined]
    except SyntaxError as error:
        raise ParameterError(f"Expected methods with commas between them; got {text!r}. {example}") from error
    methods = {}
    for node in nodes:
        name, keywords = (node.func, node.keywords) if isinstance(node, ast.Call) else (node, [])
        if not isinstance(name, ast.Name) or name.id not in METHODS or getattr(node, "args", []):
            raise ParameterError(
                f"Expected methods to be among {', '.join(METHODS)}; got {ast.unparse(node)!r}. {example}"
            )
        try:
            given = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in keywords}
        except ValueError as error:
            raise ParameterError(
                f"Expected numbers, words in quotes and tuples as parameters; got {ast.unparse(node)!r}. "
                f"{example}"
            ) from error
        known = METHODS[name.id]().get_params()
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ParameterError(
                f"Expected parameters of {name.id}; got {', '.join(unknown)}. It has {', '.join(known)}."
            )
        methods[ast.unparse(node)] = (name.id, given)
    if not methods:
        raise ParameterError(f"Expected at least one method; got none. {example}")
    return methods


def make_estimators(methods: Methods, **common: object) -> dict[str, TableEstimator]:
    """Estimators by label, with parameters that can be fitted with: what is wrong is said before any fit.

    Parameters
    ----------
    methods : str, sequence or dict
        As for `compare`.
    **common
        Parameters of the methods given by name, for those that have them.

    Returns
    -------
    dict from str to estimator
        Not fitted.
    """
    if isinstance(methods, Mapping):
        chosen = {str(label): clone(estimator) for label, estimator in methods.items()}
    else:
        chosen = {}
        for method in [methods] if isinstance(methods, str) else methods:
            if isinstance(method, str):
                for label, (name, given) in parse_methods(method).items():
                    known = METHODS[name]().get_params()
                    shared = {key: value for key, value in common.items() if key in known}
                    chosen[label] = METHODS[name](**{**shared, **given})
            else:
                label = type(method).__name__
                chosen[label if label not in chosen else f"{label} {len(chosen) + 1}"] = clone(method)
    if not chosen:
        raise ParameterError("Expected at least one method; got none. Pass names or estimators.")
    for estimator in chosen.values():
        if hasattr(estimator, "check_parameters"):
            estimator.check_parameters()
    return chosen


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
