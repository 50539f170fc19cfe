"""The likelihoods that there are, by name, and the way from what a user typed to one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods.base import Likelihood
from sparsevae.likelihoods.bernoulli import Bernoulli
from sparsevae.likelihoods.categorical import Categorical
from sparsevae.likelihoods.gaussian import Gaussian
from sparsevae.likelihoods.mixed import Mixed
from sparsevae.likelihoods.multinomial import Multinomial
from sparsevae.likelihoods.negative_binomial import NegativeBinomial
from sparsevae.likelihoods.ordinal import Ordinal
from sparsevae.likelihoods.poisson import Poisson
from sparsevae.validation import shown

__all__ = ["LIKELIHOODS", "get_likelihood"]

LIKELIHOODS: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "multinomial": Multinomial,
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "ordinal": Ordinal,
    "categorical": Categorical,
}
"""What estimators, command line and tests know; a new likelihood is a line here."""


def get_likelihood(
    spec: object, n_features: int, feature_names: Sequence[object] | np.ndarray | None = None
) -> Likelihood:
    """Turn what a user typed into a likelihood.

    Parameters
    ----------
    spec : str, dict or Likelihood
        A name; a dict from name to columns (their names, integers, a slice or a boolean mask), every column
        once; or an object, returned as it is.
    n_features : int
    feature_names : sequence of length n_features, optional
        None where the table has no names.

    Returns
    -------
    Likelihood

    Raises
    ------
    ParameterError
        If the name is unknown, or the columns are not those of the table.
    """
    if isinstance(spec, Mapping):
        position = {name: j for j, name in enumerate(feature_names if feature_names is not None else ())}
        likelihood: Likelihood = Mixed(
            [(_by_name(part), _resolve(columns, n_features, position)) for part, columns in spec.items()]
        )
    else:
        likelihood = _by_name(spec)
    n_described = sum(columns.size for _, columns in likelihood.split(n_features))
    if n_described != n_features:
        raise ParameterError(
            f"Expected likelihood to name each of the {n_features} columns exactly once; "
            f"got {n_described} columns. Give every column to one likelihood."
        )
    return likelihood


_REMEDIES = {
    "softmax": "The paper's softmax loss is 'multinomial'.",
    "normal": "Real values with normal noise are 'gaussian'.",
    "mse": "Squared error is the loss of 'gaussian'.",
    "binomial": "Zeros and ones are 'bernoulli'; counts are 'poisson', 'negative_binomial' or 'multinomial'.",
    "nb": "Overdispersed counts are 'negative_binomial'.",
}
_REMEDY = "Pass one of these names, or a dict from name to columns for a table of several kinds."


def _by_name(spec: object) -> Likelihood:
    if isinstance(spec, Likelihood):
        return spec
    if isinstance(spec, str) and spec in LIKELIHOODS:
        return LIKELIHOODS[spec]()
    names = ", ".join(repr(name) for name in LIKELIHOODS)
    remedy = _REMEDIES.get(str(spec).lower(), _REMEDY)
    raise ParameterError(f"Expected likelihood to be one of {names}; got {spec!r}. {remedy}")


def _counted(columns: object, position: Mapping[object, int]) -> list[object]:
    """The same columns, with positions in place of names."""
    if not isinstance(columns, str | Iterable):
        raise ParameterError(
            f"Expected likelihood to name columns of the table; got {columns!r}. Pass a list of them."
        )
    wanted = [columns] if isinstance(columns, str) else list(columns)
    unknown = [column for column in wanted if isinstance(column, str) and column not in position]
    if unknown:
        raise ParameterError(
            f"Expected likelihood to name columns of the table; got {shown(unknown)}. Use the names of "
            "a data frame's columns, or positions counted from 0."
        )
    return [position[column] if isinstance(column, str) else column for column in wanted]


def _resolve(columns: object, n_features: int, position: Mapping[object, int]) -> np.ndarray:
    """Positions of the columns that a user has named or counted."""
    index = columns if isinstance(columns, slice) else np.asarray(_counted(columns, position))
    if isinstance(index, np.ndarray) and (index.ndim != 1 or (index.size and index.dtype.kind not in "iub")):
        raise ParameterError(
            "Expected the columns of a likelihood as a list of indices, a slice or a boolean mask; "
            f"got {columns!r}. Give positions, counted from 0."
        )
    every = np.arange(n_features)
    try:
        return every[index] if isinstance(index, slice) or index.size else every[:0]
    except IndexError as error:
        raise ParameterError(
            f"Expected the columns of a likelihood to lie in a table of {n_features} columns; "
            f"got {columns!r}. Give positions, counted from 0."
        ) from error
