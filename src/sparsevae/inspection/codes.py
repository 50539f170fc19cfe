"""Codes of rows: the posterior of each found once, and functions of all rows of a table."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.aliases import Parameters
from sparsevae.annotations.missing import has_missing
from sparsevae.decoder import MaskedDecoder
from sparsevae.inspection.newton import posterior
from sparsevae.inspection.row_groups import extend_module
from sparsevae.modules import Batch, LatentModule
from sparsevae.summaries import row_totals
from sparsevae.training import RowSource

__all__ = [
    "Codes",
    "block_size",
    "fixed_draws",
    "in_blocks",
    "map_rows",
    "spread_rows",
]

_INPUTS_AT_ONCE = 4096  # rows of a sparse table that are dense at a time

_DRAWS = 8
_CELLS_AT_ONCE = 1 << 20
_ROWS_AT_ONCE = (16, 512)


class Codes:
    """Posteriors of the rows of a table under a fitted module, each found once, when it is first asked for.

    Parameters
    ----------
    module : LatentModule
        Fitted, without replicates, on the CPU.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Checked, in the user's units; NaN for what is missing.
    weight : ndarray of shape (n_samples,), optional
        How often each row counts.
    group : integer ndarray of shape (n_samples,), optional
        Group of each row, for a module with groups; -1 for rows of a group that the fit did not see.
    exposure : ndarray of shape (n_samples,), optional
        Known size of each row, for a module that was fitted with sizes.
    positions : integer ndarray of shape (n_samples,), optional
        Where the rows are in a larger table, of which they are a sample.
    """

    def __init__(
        self,
        module: LatentModule,
        X: np.ndarray | sparse.csr_matrix,
        weight: np.ndarray | None = None,
        group: np.ndarray | None = None,
        exposure: np.ndarray | None = None,
        positions: np.ndarray | None = None,
    ) -> None:
        self.positions = np.arange(X.shape[0]) if positions is None else positions
        self.module, self.X, self.weight, self.group, self.exposure = module, X, weight, group, exposure
        if group is not None and module.row_groups is not None and (group < 0).any():
            self.module = extend_module(module, X[group < 0])
            self.group = np.where(group < 0, module.row_groups.n_groups, group)
        self._moments = np.zeros((X.shape[0], 2 * module.n_factors), dtype=np.float32)
        self._known = np.zeros(X.shape[0], dtype=bool)

    @property
    def in_memory(self) -> Codes:
        """Codes of rows that are in memory: these, or of a table on disk those of some of its rows."""
        return self

    def moments(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Mean and log variance of rows (all by default), next to each other: (n_rows, 2 n_factors)."""
        wanted = np.arange(len(self._known)) if rows is None else rows
        missing = np.unique(wanted[~self._known[wanted]])
        if len(missing):
            found = self._map(missing, lambda module, batch: torch.cat(posterior(module, batch), -1))
            self._moments[missing], self._known[missing] = found, True
        return self._moments if rows is None else self._moments[wanted]

    def means(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Posterior means of the factors: (n_rows, n_factors); zero, the prior's, for rows without counts."""
        Z = self.moments(rows)[:, : self.module.n_factors].copy()
        observation = self.module.observation
        if self.exposure is None and (observation.size_columns | observation.total_columns).all():
            Z[row_totals(self.X if rows is None else self.X[rows]) == 0] = 0.0
        return Z

    @property
    def n_counted(self) -> int:
        """Number of rows, each as often as it counts."""
        return self.X.shape[0] if self.weight is None else round(float(self.weight.sum()))

    def spread_rows(self, most: int) -> np.ndarray:
        """Positions of at most so many rows, evenly over the table; each as often as its weight says."""
        if self.weight is None:
            return spread_rows(self.X.shape[0], most)
        times = np.diff(np.floor(np.cumsum(self.weight) + 0.5), prepend=0.0).astype(np.intp)
        return np.repeat(np.arange(len(times)), times)[spread_rows(int(times.sum()), most)]

    def blocks_of_codes(self) -> Iterator[tuple[int, Codes]]:
        """Position of the first row of a block, and codes of the block: here of all rows at once."""
        yield 0, self

    def blocks_of_means(self) -> Iterator[tuple[int, np.ndarray]]:
        """Position of the first row of a block, and posterior means of its rows."""
        for begin, part in self.blocks_of_codes():
            yield begin, part.means()

    def deviations(self) -> np.ndarray:
        """Posterior standard deviations of the factors, one for inactive ones: (n_samples, n_factors)."""
        deviations = np.exp(0.5 * self.moments()[:, self.module.n_factors :])
        deviations[:, ~self.module.active().numpy().astype(bool)] = 1.0
        return deviations

    def batch(self, rows: np.ndarray) -> Batch:
        """The rows themselves, as modules take them."""
        weight = None if self.weight is None else self.weight[rows]
        source = RowSource(self.X[rows], self.module.observation, weight=weight, **self._sides(rows))
        return source.batch(torch.arange(len(rows)))

    def inputs(self, rows: np.ndarray) -> np.ndarray:
        """What the encoder sees of some rows, NaN for what is missing: (n_rows, n_features)."""
        blocks = []
        for begin in range(0, max(len(rows), 1), _INPUTS_AT_ONCE):
            batch = self.batch(rows[begin : begin + _INPUTS_AT_ONCE])
            inputs = batch.inputs.numpy()
            if batch.observed is not None:
                inputs = np.where(batch.observed.numpy(), inputs, np.float32(np.nan))
            blocks.append(inputs)
        return np.concatenate(blocks)

    def map(self, function: Callable[..., Tensor], *known: np.ndarray) -> np.ndarray:
        """Apply a function of the module, some rows and what is known of them to all rows: see `map_rows`."""
        return map_rows(self.module, self.X, function, *known, **self._sides(slice(None)))

    def bounds(self, draws: Tensor) -> np.ndarray:
        """ELBO of each row in the units of the table: (n_samples,)."""

        def bound(module: LatentModule, batch: Batch, known: Tensor) -> Tensor:
            mean, log_variance = known.chunk(2, -1)
            return module.bound(batch, draws, (mean, log_variance))

        values = self.map(bound, self.moments()).astype(np.float64)
        return values + _log_jacobians(self.module, self.X)

    def _map(self, rows: np.ndarray, function: Callable[..., Tensor]) -> np.ndarray:
        if len(rows) == len(self._known):
            return self.map(function)
        return map_rows(self.module, self.X[rows], function, **self._sides(rows))

    def _sides(self, rows: np.ndarray | slice) -> Parameters:
        """What is known of some rows beside their values."""
        return {
            "group": None if self.group is None else self.group[rows],
            "exposure": None if self.exposure is None else self.exposure[rows],
        }


def _log_jacobians(module: LatentModule, X: np.ndarray | sparse.csr_matrix) -> np.ndarray | float:
    """What the change of units adds to the log density of the rows: one number where nothing is missing."""
    if not has_missing(X):
        return float(module.observation.log_jacobian())
    per_feature = module.observation.log_jacobians()
    if not sparse.issparse(X):
        return np.asarray((~np.isnan(X)) @ per_feature)
    holes = X.tocoo()  # type: ignore[union-attr]
    where = np.isnan(holes.data)
    lost = np.bincount(holes.row[where], per_feature[holes.col[where]], minlength=X.shape[0])
    return per_feature.sum() - lost


def map_rows(
    module: LatentModule,
    X: np.ndarray | sparse.csr_matrix,
    function: Callable[..., Tensor],
    *known: np.ndarray,
    group: np.ndarray | None = None,
    exposure: np.ndarray | None = None,
) -> np.ndarray:
    """Apply a function of the module and some rows to all rows of a table.

    Parameters
    ----------
    module : LatentModule
        Without replicates.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    function : callable
        Gets the module in float64, a batch of rows, and the same rows of each ``known`` array in float64;
        returns a tensor with a row for each.
    *known : ndarray of shape (n_samples, ...)
        What is known of the rows, as their codes.
    group : integer ndarray of shape (n_samples,), optional
        Group of each row.
    exposure : ndarray of shape (n_samples,), optional
        Known size of each row.

    Returns
    -------
    ndarray of shape (n_samples, ...), in float32

    Notes
    -----
    Matrix products round by the shape of the matrix and by the place of a row in it. Blocks of one size take
    care of the first; float64, rounded to float32 at the end, of the second.
    """
    exact = copy.deepcopy(module).double()
    for part in exact.modules():
        if isinstance(part, MaskedDecoder):
            part.precision = "float32"  # no rounding to bfloat16 on the way
    source = RowSource(X, exact.observation, group=group, exposure=exposure)
    tensors = [torch.as_tensor(values, dtype=torch.float64) for values in known]

    def of_rows(rows: Tensor) -> Tensor:
        return function(exact, source.batch(rows), *(values[rows] for values in tensors))

    with torch.inference_mode():
        return in_blocks(of_rows, X.shape[0], block_size(module)).float().numpy()


def in_blocks(function: Callable[[Tensor], Tensor], n_rows: int, size: int) -> Tensor:
    """Apply a function of row positions to blocks of one size, the last filled up with its last row."""
    results = []
    for rows in torch.arange(n_rows).split(size):
        full = torch.cat([rows, rows[-1:].expand(size - len(rows))])
        results.append(function(full)[: len(rows)])
    return torch.cat(results)


def block_size(module: LatentModule) -> int:
    """Rows in one pass through the network: a property of the model, not of the table.

    The last block of a table is filled up to this size, so that rows that cost much come in small blocks.
    """
    return int(np.clip(_CELLS_AT_ONCE // module.cells_per_row, *_ROWS_AT_ONCE))


def fixed_draws(n_noise: int) -> Tensor:
    """Standard normal draws in pairs of opposite sign, with second moments of one: (n_draws, n_noise).

    The parts of an integrand that are linear, or quadratic in one factor, are then exact.
    """
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(_DRAWS // 2, n_noise, generator=generator, dtype=torch.float64)
    half = half / half.square().mean(0).sqrt()
    return torch.cat([half, -half])


def spread_rows(n_rows: int, most: int) -> np.ndarray:
    """Positions of at most so many rows, evenly over a table: the same ones every time."""
    return np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(int)
