"""How a masked decoder is cut into blocks: runs of features × runs of samples that fit a core's cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Block", "block_rows", "cut_into_tasks"]

_CACHE_BYTES = 1_250_000  # the three activations a block works on at a time, against 1 MiB of L2 and a share of L3
_MIN_TASKS = 16  # enough that threads finish together; the same for 1 to 8 threads, and so are the sums


class Block(NamedTuple):
    """Features ``start:stop`` of one group, samples ``low:high``."""

    group: int
    start: int
    stop: int
    low: int
    high: int


def block_rows(width: int, itemsize: int, on_cpu: bool) -> int:
    """Rows (feature × sample pairs) per block for hidden layers of a given width."""
    if not on_cpu:
        return 1 << 17  # no cache to stay in, but launches to save
    return max(64, _CACHE_BYTES // (3 * width * itemsize))


def cut_into_tasks(sizes: Sequence[int], n_samples: int, rows: int, n_threads: int) -> list[list[Block]]:
    """Cut groups of features into tasks of about equal work; each task owns its features.

    Parameters
    ----------
    sizes : sequence of int
        Features in each group. A block never spans two groups.
    n_samples : int
    rows : int
        Wanted rows per block.
    n_threads : int

    Returns
    -------
    list of list of Block
        All samples of a feature lie in one task, so that tasks never write to the same feature.
    """
    n_features = sum(sizes)
    if n_features == 0 or n_samples == 0:
        return []
    n_tasks = min(n_features, max(_MIN_TASKS, 2 * n_threads))
    sample_cuts = _even_cuts(0, n_samples, -(-n_samples // rows))
    per_block = max(1, round(rows / n_samples))
    task_cuts = _even_cuts(0, n_features, n_tasks)
    edges, total = [0], 0
    for size in sizes:
        total += size
        edges.append(total)

    tasks = []
    for first, last in zip(task_cuts, task_cuts[1:], strict=False):
        blocks = []
        for group, (low_edge, high_edge) in enumerate(zip(edges, edges[1:], strict=False)):
            low, high = max(first, low_edge), min(last, high_edge)
            if low >= high:
                continue
            cuts = _even_cuts(low, high, max(1, round((high - low) / per_block)))
            for start, stop in zip(cuts, cuts[1:], strict=False):
                for a, b in zip(sample_cuts, sample_cuts[1:], strict=False):
                    blocks.append(Block(group, start, stop, a, b))
        tasks.append(blocks)
    return tasks


def _even_cuts(low: int, high: int, parts: int) -> list[int]:
    parts = min(parts, high - low)
    return [low + (high - low) * part // parts for part in range(parts + 1)]
