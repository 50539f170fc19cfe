"""How a masked decoder is cut into blocks: runs of features × runs of samples that fit a core's cache."""

from __future__ import annotations

import functools
from itertools import accumulate, pairwise
from typing import NamedTuple

__all__ = ["Block", "Cut", "block_rows", "cut_into_tasks"]

_CACHE_BYTES = 2_500_000  # of the three activations in use at a time: 1 MiB of L2, the rest from L3
_MIN_ROWS = 64
_ROWS_PER_TASK = 1024  # fewer are not worth handing to another thread
_MIN_TASKS = 8  # enough that threads finish together; the same for 1 to 4 threads, and so are the sums


class Block(NamedTuple):
    """A run of features, all of one group, for samples ``low:high``."""

    group: int
    run: int
    n_features: int
    low: int
    high: int

    @property
    def n_samples(self) -> int:
        """Samples in the block."""
        return self.high - self.low

    @property
    def n_rows(self) -> int:
        """Pairs of a feature and a sample in the block."""
        return self.n_features * self.n_samples


class Cut(NamedTuple):
    """All blocks of a decoder, in tasks of about equal work.

    Attributes
    ----------
    tasks : tuple of tuple of Block
        All samples of a feature lie in one task, so that tasks never write to the same feature.
    runs : tuple of int
        Features in each run; the runs follow each other in the order of the features.
    rows : int
        Rows of the largest block.
    """

    tasks: tuple[tuple[Block, ...], ...]
    runs: tuple[int, ...]
    rows: int

    @property
    def blocks(self) -> list[Block]:
        """Blocks of all tasks, in the order of the features."""
        return [block for task in self.tasks for block in task]


def block_rows(width: int, itemsize: int, on_cpu: bool) -> int:
    """Rows (feature × sample pairs) per block for hidden layers of a given width."""
    if not on_cpu:
        return 1 << 17  # no cache to stay in, but launches to save
    return max(_MIN_ROWS, _CACHE_BYTES // (3 * width * itemsize))


@functools.lru_cache(maxsize=32)
def cut_into_tasks(sizes: tuple[int, ...], n_samples: int, rows: int, n_threads: int) -> Cut:
    """Cut groups of features into tasks.

    Parameters
    ----------
    sizes : tuple of int
        Features in each group. A block never spans two groups.
    n_samples : int
    rows : int
        Wanted rows per block.
    n_threads : int

    Returns
    -------
    Cut
    """
    sample_runs = _cut(0, n_samples, -(-n_samples // rows))
    features_per_block = max(1, round(rows / max(1, n_samples)))
    tasks: list[tuple[Block, ...]] = []
    runs: list[int] = []
    n_tasks = min(max(_MIN_TASKS, 2 * n_threads), sum(sizes) * n_samples // min(rows, _ROWS_PER_TASK))
    for first, last in _cut(0, sum(sizes), n_tasks):
        blocks: list[Block] = []
        for group, (low, high) in enumerate(pairwise(accumulate(sizes, initial=0))):
            low, high = max(low, first), min(high, last)
            for start, stop in _cut(low, high, round((high - low) / features_per_block)):
                blocks += [Block(group, len(runs), stop - start, *samples) for samples in sample_runs]
                runs.append(stop - start)
        tasks.append(tuple(blocks))
    largest = max((block.n_rows for blocks in tasks for block in blocks), default=0)
    return Cut(tuple(tasks), tuple(runs), largest)


def _cut(low: int, high: int, parts: int) -> list[tuple[int, int]]:
    """Cut ``low:high`` into at most ``parts`` runs (at least one) of about equal length."""
    size = max(0, high - low)
    parts = min(max(parts, 1), size)
    return list(pairwise(low + size * part // parts for part in range(parts + 1))) if parts else []
