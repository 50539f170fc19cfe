"""Tables whose columns are of different kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Generator, Tensor

from sparsevae.exceptions import ParameterError
from sparsevae.likelihoods.base import Likelihood, Parameters

__all__ = ["Mixed"]


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

    def __init__(self, parts: Sequence[tuple[Likelihood, ArrayLike]]) -> None:
        self.parts = [(part, np.asarray(columns, dtype=np.intp)) for part, columns in parts]
        joined = np.concatenate([np.empty(0, np.intp), *(columns for _, columns in self.parts)])
        if joined.size == 0 or not np.array_equal(np.sort(joined), np.arange(joined.size)):
            named = {part.name: columns.tolist() for part, columns in self.parts}
            raise ParameterError(
                f"Expected likelihood to name every column exactly once; got {named}. "
                "Give each column, from 0 to n_features - 1, to one likelihood."
            )
        self.factorised = all(part.factorised for part, _ in self.parts)
        self.uses_size = any(part.uses_size for part, _ in self.parts)
        self.shared = frozenset().union(*(part.shared for part, _ in self.parts))
        self._original_order = np.argsort(joined)

    def log_prob(
        self,
        x: Tensor,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        observed: Tensor | None = None,
    ) -> Tensor:
        terms = [
            part.log_prob(
                x[..., columns],
                output[..., columns],
                _take(parameters, columns),
                size=size,
                observed=None if observed is None else observed[..., columns],
            )
            for part, columns in self._views()
        ]
        return torch.stack(terms).sum(0)

    def mean(self, output: Tensor, *, size: Tensor | None = None, total: Tensor | None = None) -> Tensor:
        return self._join(part.mean(output[..., c], size=size, total=total) for part, c in self._views())

    def sample(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        return self._join(
            part.sample(
                output[..., columns],
                _take(parameters, columns),
                size=size,
                total=total,
                generator=generator,
            )
            for part, columns in self._views()
        )

    def expectation(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        return self._join(
            part.expectation(output[..., c], _take(parameters, c), size=size, total=total)
            for part, c in self._views()
        )

    def information_at(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        blocks = [
            part.information_at(output[..., c], _take(parameters, c), size=size, total=total)
            for part, c in self._views()
        ]
        return self._join(block.expand(*output.shape[:-1], block.shape[-1]) for block in blocks)

    def response(self, x: Tensor) -> Tensor:
        return self._join(part.response(x[..., c]) for part, c in self._views())

    def fill(
        self,
        output: Tensor,
        parameters: Parameters,
        *,
        size: Tensor | None = None,
        total: Tensor | None = None,
    ) -> Tensor:
        return self._join(
            part.fill(output[..., c], _take(parameters, c), size=size, total=total)
            for part, c in self._views()
        )

    def initial_output(self, feature_mean: Tensor) -> Tensor:
        return self._join(part.initial_output(feature_mean[..., c]) for part, c in self._views())

    def information(self, feature_mean: Tensor, parameters: Parameters) -> Tensor:
        blocks = [
            part.information(feature_mean[..., columns], _take(parameters, columns))
            for part, columns in self._views()
        ]
        # Parameters may have replicates in front where the means, and so parts without parameters, have none.
        lead = torch.broadcast_shapes(*(block.shape[:-1] for block in blocks))
        return self._join(block.expand(*lead, block.shape[-1]) for block in blocks)

    def initial_parameters(self, n_features: int, replicates: tuple[int, ...] = ()) -> dict[str, Tensor]:
        """Parameters of all parts, each for every column: entries of columns that lack it are not used."""
        found: dict[str, Tensor] = {}
        for part, columns in self._views():
            for name, value in part.initial_parameters(n_features, replicates).items():
                if name in found:
                    found[name].data[..., columns] = value.data[..., columns]
                else:
                    found[name] = value
        return found

    def statistics(
        self, x: Tensor, output: Tensor, observed: Tensor | None = None, weight: Tensor | None = None
    ) -> dict[str, Tensor]:
        weights = {} if weight is None else {"weight": weight}
        found: dict[str, Tensor] = {}
        for part, columns in self.parts:  # those without a column too, so that sums of all batches add up
            # Of all columns, to pick from: sums over the rows of a view would round otherwise.
            for name, value in part.statistics(x, output, observed, **weights).items():
                whole = found.get(name, torch.zeros_like(value))
                whole[..., columns] = value[..., columns]
                found[name] = whole
        return found

    def update(self, parameters: Parameters, sums: Parameters, n_samples: float) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for part, columns in self._views():
            for name, value in part.update(
                _take(parameters, columns), _take(sums, columns), n_samples
            ).items():
                whole = found.get(name, parameters[name].clone())
                whole[..., columns] = value
                found[name] = whole
        return found

    def noise_variance(self, parameters: Parameters) -> Tensor | None:
        known = [
            (variance, columns)
            for part, columns in self._views()
            if (variance := part.noise_variance(parameters)) is not None
        ]
        if len(known) < 2:
            return known[0][0] if known else None
        whole = known[0][0].clone()
        for variance, columns in known:
            whole[..., columns] = variance[..., columns]
        return whole

    def log_prior(self, parameters: Parameters) -> Tensor | None:
        terms = [part.log_prior(_take(parameters, columns)) for part, columns in self._views()]
        known = [term for term in terms if term is not None]
        return torch.stack(known).sum(0) if known else None

    def with_levels(self, n_levels: np.ndarray) -> Mixed:
        return Mixed([(part.with_levels(n_levels[columns]), columns) for part, columns in self.parts])

    def split(self, n_features: int) -> list[tuple[Likelihood, np.ndarray]]:
        return list(self.parts)

    def _views(self) -> Iterator[tuple[Likelihood, slice | np.ndarray]]:
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


def _take(values: Parameters, columns: slice | np.ndarray) -> dict[str, Tensor]:
    return {name: value[..., columns] for name, value in values.items()}
