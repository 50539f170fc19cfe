"""Tables whose columns are of different kinds, and the way from what a user typed to a likelihood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods.base import Likelihood
from sparsevae.likelihoods.families import Bernoulli, Gaussian, Multinomial, NegativeBinomial, Poisson

__all__ = ["Mixed", "get_likelihood"]


class Mixed(Likelihood):
    """Different likelihoods for different columns, independent of each other given the output.

    Parameters
    ----------
    parts : sequence of (Likelihood, array of column indices)
        Every column from 0 to n_features - 1 belongs to exactly one part.

    Raises
    ------
    ParameterError
        If a column is named twice, or left out.
    """

    name = "mixed"
    support = "mixed"

    def __init__(self, parts: Sequence[tuple[Likelihood, Any]]) -> None:
        self.parts = [(part, np.asarray(columns, dtype=np.intp)) for part, columns in parts]
        joined = np.concatenate([np.empty(0, np.intp), *(columns for _, columns in self.parts)])
        if joined.size == 0 or not np.array_equal(np.sort(joined), np.arange(joined.size)):
            named = {part.name: columns.tolist() for part, columns in self.parts}
            raise ParameterError(
                f"Expected likelihood to name every column exactly once; got {named}. "
                "Give each column, from 0 to n_features - 1, to one likelihood."
            )
        self.factorised = all(part.factorised for part, _ in self.parts)
        self.has_dispersion = any(part.has_dispersion for part, _ in self.parts)
        self.uses_size = any(part.uses_size for part, _ in self.parts)
        self._original_order = np.argsort(joined)

    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        terms = [
            part.log_prob(
                x[..., columns],
                output[..., columns],
                dispersion=_take(dispersion, columns),
                size=size,
                observed=_take(observed, columns),
            )
            for part, columns in self._views()
        ]
        return torch.stack(terms).sum(0)

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return self._join(part.mean(output[..., c], size=size, total=total) for part, c in self._views())

    def sample(
        self,
        output: Tensor,
        *,
        dispersion: Tensor | None = None,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        return self._join(
            part.sample(
                output[..., columns],
                dispersion=_take(dispersion, columns),
                size=size,
                total=total,
                generator=generator,
            )
            for part, columns in self._views()
        )

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return self._join(part.initial_output(feature_mean[..., c]) for part, c in self._views())

    def information(self, feature_mean: Tensor, *, dispersion: Tensor | None = None) -> Tensor:
        if dispersion is not None:  # of each replicate, where the means are of all
            feature_mean = torch.broadcast_tensors(feature_mean, dispersion)[0]
        return self._join(
            part.information(feature_mean[..., c], dispersion=_take(dispersion, c))
            for part, c in self._views()
        )

    def split(self, n_features: int) -> list[tuple[Likelihood, np.ndarray]]:
        return list(self.parts)

    def _views(self) -> Iterator[tuple[Likelihood, Any]]:
        """Each part with its columns, as a slice where they are consecutive: a view instead of a copy."""
        for part, columns in self.parts:
            if columns.size == 0:
                continue
            start, stop = int(columns[0]), int(columns[0]) + columns.size
            consecutive = np.array_equal(columns, np.arange(start, stop))
            yield part, slice(start, stop) if consecutive else columns

    def _join(self, blocks: Iterable[Tensor]) -> Tensor:
        return torch.cat(list(blocks), -1)[..., self._original_order]

    def __repr__(self) -> str:
        return f"Mixed({self.parts!r})"


def get_likelihood(spec: str | Mapping[Any, Any] | Likelihood, n_features: int) -> Likelihood:
    """Turn what a user typed into a likelihood.

    Parameters
    ----------
    spec : str, dict or Likelihood
        A name; a dict from name to columns (integers, a slice or a boolean mask), every column once; or an
        object, returned as it is.
    n_features : int

    Returns
    -------
    Likelihood

    Raises
    ------
    ParameterError
        If the name is unknown, or the columns are not those of the table.
    """
    if isinstance(spec, Mapping):
        likelihood: Likelihood = Mixed(
            [(_by_name(part), _resolve(columns, n_features)) for part, columns in spec.items()]
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


_FAMILIES = {family.name: family for family in (Gaussian, Multinomial, Bernoulli, Poisson, NegativeBinomial)}
_REMEDIES = {
    "softmax": "The paper's softmax loss is 'multinomial'.",
    "categorical": "The paper's softmax loss is 'multinomial'.",
    "normal": "Real values with normal noise are 'gaussian'.",
    "mse": "Squared error is the loss of 'gaussian'.",
    "binomial": "Zeros and ones are 'bernoulli'; counts are 'poisson', 'negative_binomial' or 'multinomial'.",
    "nb": "Overdispersed counts are 'negative_binomial'.",
}
_REMEDY = "Pass one of these names, or a dict from name to columns for a table of several kinds."


def _by_name(spec: Any) -> Likelihood:
    if isinstance(spec, Likelihood):
        return spec
    if isinstance(spec, str) and spec in _FAMILIES:
        return _FAMILIES[spec]()
    names = ", ".join(repr(name) for name in _FAMILIES)
    remedy = _REMEDIES.get(str(spec).lower(), _REMEDY)
    raise ParameterError(f"Expected likelihood to be one of {names}; got {spec!r}. {remedy}")


def _resolve(columns: Any, n_features: int) -> np.ndarray:
    index = columns if isinstance(columns, slice) else np.asarray(columns)
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


def _take(value: Tensor | None, columns: Any) -> Tensor | None:
    return None if value is None else value[..., columns]
