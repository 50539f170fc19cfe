r"""Batches of a table on disk, shuffled by blocks.

Blocks of consecutive rows come in random order into a buffer, and the rows of the buffer in random order into
batches. Rows that are neighbours on disk are then a little more often in one batch than by chance. If they
are alike, with correlation :math:`\rho` inside a block of s rows, the mean of a batch of m rows from a buffer
of B has

.. math:: \frac{\sigma^2}{m}\left(1 + \rho\,\frac{(m - 1)(s - 1)}{B - 1}\right)

as its variance. Blocks are so short that for a batch of 128 rows this is at most an eighth above that of
independent rows, for one of 1,024 at most twice that, and for any larger batch below that of 128 rows. Tables
stored in larger chunks are the exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from sparsevae.exceptions import DataError
from sparsevae.modules import Batch
from sparsevae.stored import StoredTable
from sparsevae.stored.base import Rows
from sparsevae.training.batches import Batches, RowSource, Share
from sparsevae.training.processes import Group

__all__ = ["StoredBatches", "block_sizes"]

_BUFFER_BYTES = 96 << 20  # of rows in the buffer
_BUFFER_ROWS = 1 << 16  # at most: more would not mix better
_PIECE_BYTES = 512 << 20  # of a chunk on disk: the buffer holds one at least
_EXCESS = 8  # one over the excess variance of a batch mean
_QUIET = 128  # rows of a batch: the mean of a larger one varies less, whatever its blocks
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
    block = int(np.clip(buffer // (_EXCESS * min(batch_size, _QUIET)), 1, _LONGEST))
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
    def is_shared(self) -> bool:
        """Whether several processes share the rows out."""
        return True

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
        yield from self._cut(self._read(self._buffers(shuffle=True)))

    def sequential(self) -> Iterator[Batch]:
        """Every row once, in order."""
        yield from self._cut(self._read(self._buffers(shuffle=False)))

    def shares(self, group: Group | None, *, shuffle: bool) -> Iterator[Share]:
        """What this process takes of each batch; no other row is read."""
        if group is None:
            yield from super().shares(None, shuffle=shuffle)
            return
        small, n_larger = divmod(self.n_rows, self.n_batches)
        sizes = np.full(self.n_batches, small)
        sizes[:n_larger] += 1
        ends = np.cumsum(sizes)
        slices = {int(size): group.rows(int(size)) for size in np.unique(sizes)}
        first = np.array([slices[int(size)].start for size in sizes]) + ends - sizes
        last = np.array([slices[int(size)].stop for size in sizes]) + ends - sizes
        totals, weight = sizes.astype(float), self.source.weight
        if weight is not None:
            totals[:] = 0.0
        rest: tuple[Rows, np.ndarray] | None = None
        seen = made = 0
        rows: Any
        for positions in self._buffers(shuffle=shuffle):
            place = np.arange(seen, seen + len(positions))
            batch_of = np.searchsorted(ends, place, side="right")
            if weight is not None:
                np.add.at(totals, batch_of, weight[torch.as_tensor(positions)].double().numpy())
            own = positions[(place >= first[batch_of]) & (place < last[batch_of])]
            seen += len(positions)
            [(rows, own)] = self._read([own]) if len(own) else [(None, own)]
            if rest is not None:
                rows = rest[0] if rows is None else _stack(rest[0], rows)
                own = np.concatenate([rest[1], own])
            at = 0
            while made < self.n_batches and ends[made] <= seen:
                size = int(sizes[made])
                where = slices[size]
                part = slice(at, at + where.stop - where.start)
                batch = None
                if part.stop > part.start:
                    batch = self.source.observed(rows[part], torch.as_tensor(own[part]))
                yield self.share(batch, where, size, float(totals[made]))
                at, made = part.stop, made + 1
            rest = (rows[at:], own[at:]) if at < len(own) else None

    def _buffers(self, *, shuffle: bool) -> Iterator[np.ndarray]:
        """Positions of rows, a buffer at a time, in the order in which they come."""
        order = np.arange(-(-len(self.left_out) // self.block))
        rng = None
        if shuffle:
            order = torch.randperm(len(order), generator=self.generator).numpy()
            rng = np.random.default_rng(int(torch.randint(2**31 - 1, (1,), generator=self.generator)))
        per_buffer = max(1, self.buffer // self.block)
        for begin in range(0, len(order), per_buffer):
            starts = np.sort(order[begin : begin + per_buffer]) * self.block
            positions = (starts[:, None] + np.arange(self.block)).ravel()
            positions = positions[positions < len(self.left_out)]
            positions = positions[~self.left_out[positions]]
            if not len(positions):
                continue
            yield positions if rng is None else positions[rng.permutation(len(positions))]

    def _read(self, buffers: Iterable[np.ndarray]) -> Iterator[tuple[Rows, np.ndarray]]:
        """Rows at positions of any order: read in theirs."""
        for positions in buffers:
            order = np.argsort(positions)
            back = np.empty_like(order)
            back[order] = np.arange(len(order))
            rows = self.source.X.rows(positions[order])
            yield (rows if (order[1:] > order[:-1]).all() else rows[back]), positions

    def _cut(self, buffers: Iterator[tuple[Rows, np.ndarray]]) -> Iterator[Batch]:
        """Batches of the sizes that `Batches` has; what is left of a buffer goes before the next one."""
        small, n_larger = divmod(self.n_rows, self.n_batches)
        rest: tuple[Rows, np.ndarray] | None = None
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


def _stack(first: Rows, second: Rows) -> Rows:
    return (
        sparse.vstack([first, second], format="csr")
        if sparse.issparse(first)
        else np.concatenate([first, second])
    )
