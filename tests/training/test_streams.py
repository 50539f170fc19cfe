"""Batches of a table on disk: every row once, mixed nearly as well as in memory."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
import torch

from sparsevae.exceptions import DataError
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation
from sparsevae.stored import open_rows
from sparsevae.training import Batches, RowSource, StoredBatches
from sparsevae.training.streams import block_sizes


@pytest.fixture
def make_batches(tmp_path):
    """Batches of a file whose first column numbers the rows."""

    def make(n_rows=1000, batch_size=32, left_out=(), weight=None, seed=0, n_features=3):
        X = np.zeros((n_rows, n_features))
        X[:, 0] = np.arange(n_rows)
        np.save(tmp_path / "x.npy", X)
        observation = Observation.blank(get_likelihood("gaussian", n_features), n_features)
        source = RowSource(open_rows(tmp_path / "x.npy"), observation, weight=weight)
        sample = Batches(RowSource(X[:50], observation), torch.arange(50), batch_size, torch.Generator())
        skipped = np.zeros(n_rows, dtype=bool)
        skipped[list(left_out)] = True
        generator = torch.Generator().manual_seed(seed)
        return StoredBatches(source, skipped, batch_size, generator, sample)

    return make


def numbers(batches):
    return [batch.x[:, 0].long().tolist() for batch in batches]


@pytest.mark.parametrize("order", ["shuffled", "sequential"])
@pytest.mark.parametrize("left_out", [(), (0, 3, 999), range(200, 700)])
def test_every_row_comes_once_in_batches_of_nearly_equal_size(make_batches, order, left_out):
    batches = make_batches(left_out=left_out)
    found = numbers(getattr(batches, order)())
    assert sorted(chain(*found)) == [i for i in range(1000) if i not in left_out]
    sizes = {len(part) for part in found}
    assert len(found) == batches.n_batches
    assert max(sizes) - min(sizes) <= 1


def test_buffers_smaller_than_the_table_lose_nothing(make_batches):
    batches = make_batches(n_rows=501)
    batches.block, batches.buffer = 7, 70
    found = numbers(batches.shuffled())
    assert sorted(chain(*found)) == list(range(501))


def test_order_follows_from_the_generator(make_batches):
    first, second = make_batches(), make_batches()
    a, b, c = numbers(first.shuffled()), numbers(second.shuffled()), numbers(first.shuffled())
    assert a == b
    assert a != c


def test_sequential_keeps_the_order(make_batches):
    assert list(chain(*numbers(make_batches().sequential()))) == list(range(1000))


def test_weights_go_with_their_rows(make_batches):
    weight = np.arange(1000) + 1.0
    batches = make_batches(weight=weight, left_out=(5,))
    for batch in batches.shuffled():
        np.testing.assert_array_equal(batch.weight, batch.x[:, 0] + 1)
    assert batches.n_samples == weight.sum() - 6
    assert sum(batches.fraction(batch) for batch in batches.shuffled()) == pytest.approx(1.0)


def test_few_rows_come_from_the_sample(make_batches):
    batches = make_batches()
    assert batches.spread(10).x[:, 0].max() < 50
    assert batches.first(5).x[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_sorted_file_biases_batches_by_no_more_than_stated(make_batches):
    """The variance of batch means, over that of independent rows, on rows sorted by what is averaged."""
    batches = make_batches(n_rows=40_000, batch_size=100)
    batches.buffer, batches.block = 8_000, 10  # the ratio that `block_sizes` keeps, on a smaller table
    means = [np.mean(part) for _ in range(12) for part in numbers(batches.shuffled())]
    exact = 40_000**2 / 12 / 100
    assert 0.85 < np.var(means) / exact < 1.3
    assert abs(np.mean(means) / 19_999.5 - 1) < 0.005
    # Rows of one buffer are those of many places: its mean moves little from one to the next.
    in_turn = np.array(means[:400]).reshape(5, 80).mean(1)
    assert in_turn.std() < 0.05 * 40_000


def test_blocks_are_short_beside_the_buffer(make_batches):
    table = make_batches().source.X
    block, buffer = block_sizes(table, 128)
    assert (128 - 1) * (block - 1) / (buffer - 1) <= 1 / 8
    assert block_sizes(table, 1024) == (block, buffer)  # the mean of more rows is quieter anyway
    table.chunk = 300  # as if it were stored in pieces
    assert block_sizes(table, 128) == (300, buffer - buffer % 300)


def test_pieces_too_large_for_a_buffer_are_refused(make_batches):
    table = make_batches().source.X
    table.shape, table.chunk = (10**9, 3), 10**8
    with pytest.raises(DataError, match=r"pieces of at most 512 MB .* row_group_size=50_000"):
        block_sizes(table, 128)
