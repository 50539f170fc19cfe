r"""Batches of a table on disk, shuffled by blocks.

Blocks of consecutive rows come in random order into a buffer, and the rows of the buffer in random order into
batches. Rows that are neighbours on disk are then a little more often in one batch than by chance. If they
are alike, with correlation :math:`\rho` inside a block of s rows, the mean of a batch of m rows from a buffer
of B has

.. math:: \frac{\sigma^2}{m}\left(1 + \rho\,\frac{(m - 1)(s - 1)}{B - 1}\right)

as its variance. Blocks are so short that this is at most an eighth above that of independent rows, unless the
table is stored in larger chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.exceptions import DataError
from sparsevae.modules import Batch
from sparsevae.stored import StoredTable
from sparsevae.training.batches import Batches, RowSource

__all__ = ["StoredBatches", "block_sizes"]

_BUFFER_BYTES = 96 << 20  # of rows in the buffer
_BUFFER_ROWS = 1 << 16  # at most: more would not mix better
_PIECE_BYTES = 512 << 20  # of a chunk on disk: the buffer holds one at least
_EXCESS = 8  # one over the excess variance of a batch mean
_LONGEST = 256  # rows of a block, from which on reading is not faster


def block_sizes(table: StoredTable, batch_size: int) -> tuple[int, int]:
    """Rows of a block and of the buffer.

    Raises
    ------
    DataError
        If the table is stored in chunks too large for the memory.
    """
    n_samples, n_features = table.shape
    width = table.dtype.itemsize * n_features
    if table.is_sparse:  # values and their columns
        width = max(1, int(12 * table.survey.n_nonzero / n_samples))
    if table.chunk * width > _PIECE_BYTES:
        raise DataError(
            f"Expected pieces of at most {_PIECE_BYTES >> 20} MB in {table.where}, to shuffle its rows; got "
            f"{table.chunk} rows, {table.chunk * width >> 20} MB, in one. Write it again in smaller ones, "
            "for example with row_group_size=50_000 or chunks of as many rows."
        )
    buffer = int(np.clip(_BUFFER_BYTES // width, batch_size, _BUFFER_ROWS))
    block = int(np.clip(buffer // (_EXCESS * batch_size), 1, _LONGEST))
    block = max(block, table.chunk)
    return block, max(block, buffer - buffer % block)


class StoredBatches(Batches):
    """Shuffled or sequential batches of a table on disk.

    Parameters
    ----------
    source : RowSource
        Of a `StoredTable`.
    left_out : boolean array of shape (n_samples,)
        Rows that do not come.
    batch_size : int
    generator : torch.Generator
        Of the shuffling.
    sample : Batches
        Some of the rows, in memory: what is found from few rows is found from these.
    """

    def __init__(
        self,
        source: RowSource,
        left_out: np.ndarray,
        batch_size: int,
        generator: torch.Generator,
        sample: Batches,
    ) -> None:
        self.source, self.generator, self.sample = source, generator, sample
        self.left_out = left_out
        self.n_rows = len(left_out) - int(np.count_nonzero(left_out))
        self.n_batches = max(1, round(self.n_rows / batch_size))
        self.n_samples = self.n_rows
        if source.weight is not None:
            self.n_samples = float(source.weight[torch.as_tensor(~left_out)].double().sum())
        self.block, self.buffer = block_sizes(source.X, batch_size)

    @property
    def rows(self) -> Tensor:  # type: ignore[override]
        """Positions of the rows: 8 bytes each, so that nothing but small tables should ask for them."""
        return torch.as_tensor(np.flatnonzero(~self.left_out))

    def spread(self, n_rows: int) -> Batch:
        """At most so many of the rows, from the sample in memory."""
        return self.sample.spread(n_rows)

    def first(self, n_rows: int) -> Batch:
        """At most so many of the rows, from the sample in memory."""
        return self.sample.first(n_rows)

    def shuffled(self) -> Iterator[Batch]:
        """Every row once, in batches of nearly equal size."""
        n_blocks = -(-len(self.left_out) // self.block)
        order = torch.randperm(n_blocks, generator=self.generator).numpy()
        seed = int(torch.randint(2**31 - 1, (1,), generator=self.generator))
        yield from self._cut(self._buffers(order, np.random.default_rng(seed)))

    def sequential(self) -> Iterator[Batch]:
        """Every row once, in order."""
        n_blocks = -(-len(self.left_out) // self.block)
        yield from self._cut(self._buffers(np.arange(n_blocks), None))

    def _buffers(
        self, order: np.ndarray, rng: np.random.Generator | None
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Rows and their positions, a buffer at a time, in random order if there is a generator for it."""
        per_buffer = max(1, self.buffer // self.block)
        for begin in range(0, len(order), per_buffer):
            starts = np.sort(order[begin : begin + per_buffer]) * self.block
            positions = (starts[:, None] + np.arange(self.block)).ravel()
            positions = positions[positions < len(self.left_out)]
            positions = positions[~self.left_out[positions]]
            if not len(positions):
                continue
            rows = self.source.X.rows(positions)
            if rng is not None:
                mixed = rng.permutation(len(positions))
                rows, positions = rows[mixed], positions[mixed]
            yield rows, positions

    def _cut(self, buffers: Iterator[tuple[Any, np.ndarray]]) -> Iterator[Batch]:
        """Batches of the sizes that `Batches` has; what is left of a buffer goes before the next one."""
        small, n_larger = divmod(self.n_rows, self.n_batches)
        rest: tuple[Any, np.ndarray] | None = None
        made = 0
        for rows, positions in buffers:
            if rest is not None:
                rows, positions = _stack(rest[0], rows), np.concatenate([rest[1], positions])
            at = 0
            while made < self.n_batches:
                size = small + (made < n_larger)
                if at + size > len(positions):
                    break
                part = slice(at, at + size)
                yield self.source.observed(rows[part], torch.as_tensor(positions[part]))
                at, made = at + size, made + 1
            rest = (rows[at:], positions[at:]) if at < len(positions) else None


def _stack(first: Any, second: Any) -> Any:
    return (
        sparse.vstack([first, second], format="csr")
        if sparse.issparse(first)
        else np.concatenate([first, second])
    )
