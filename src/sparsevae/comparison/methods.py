"""Methods by name, with parameters where wanted: ``"SparseVAE, VAE(beta=4), NMF"``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sklearn.base import clone

from sparsevae.comparison.adapters import EASE, FactorAnalysisAdapter, LDAAdapter, PCAAdapter
from sparsevae.estimators import NMF, OIVAE, VAE, VSC, SparseVAE
from sparsevae.estimators.base import TableEstimator
from sparsevae.exceptions import ParameterError

__all__ = ["DEFAULT", "METHODS", "Methods", "make_estimators", "parse_methods"]


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
