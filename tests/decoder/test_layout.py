from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from sparsevae.decoder.layout import block_rows, cut_into_tasks

cuts = {
    "sizes": st.lists(st.integers(0, 30), min_size=1, max_size=6),
    "n_samples": st.integers(0, 300),
    "rows": st.integers(1, 500),
    "n_threads": st.integers(1, 40),
}


@given(**cuts)
def test_blocks_cover_every_pair_of_a_feature_and_a_sample_once(sizes, n_samples, rows, n_threads):
    tasks, runs, _ = cut_into_tasks(tuple(sizes), n_samples, rows, n_threads)
    assert sum(runs) == sum(sizes)
    group_of = [group for group, size in enumerate(sizes) for _ in range(size)]
    starts = [sum(runs[:run]) for run in range(len(runs))]
    seen = set()
    for block in (block for task in tasks for block in task):
        features = range(starts[block.run], starts[block.run] + block.n_features)
        assert {group_of[feature] for feature in features} == {block.group}
        pairs = {(feature, sample) for feature in features for sample in range(block.low, block.high)}
        assert not pairs & seen
        assert len(pairs) == block.n_rows
        seen |= pairs
    assert len(seen) == sum(sizes) * n_samples


@given(**cuts)
def test_a_feature_belongs_to_one_task(sizes, n_samples, rows, n_threads):
    tasks = cut_into_tasks(tuple(sizes), n_samples, rows, n_threads).tasks
    owned = [{block.run for block in task} for task in tasks]
    assert sum(map(len, owned)) == len(set().union(*owned))


@given(**cuts)
def test_no_block_is_much_larger_than_asked_for(sizes, n_samples, rows, n_threads):
    tasks, _, largest = cut_into_tasks(tuple(sizes), n_samples, rows, n_threads)
    for block in (block for task in tasks for block in task):
        assert block.n_rows <= largest <= 2.5 * max(rows, 1)


def test_wider_layers_get_fewer_rows():
    assert block_rows(50, 4, True) > block_rows(200, 4, True) >= block_rows(10**6, 4, True) > 0
    assert block_rows(100, 2, True) > block_rows(100, 4, True)
