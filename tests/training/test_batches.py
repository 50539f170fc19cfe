"""Rows as tensors, from however a table is stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation
from sparsevae.training import Batches, RowSource, batches


@pytest.fixture
def observation():
    steps = np.arange(5.0)
    return Observation(get_likelihood("gaussian", 5), steps, 1.0 + steps, np.zeros(5), np.ones(5))


def stored(X, how, tmp_path):
    if how == "memmap":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    if how == "read-only":
        X.setflags(write=False)
        return X
    kinds = {
        "dense": np.asarray,
        "fortran": np.asfortranarray,
        "csr": sparse.csr_matrix,
        "csr_array": sparse.csr_array,
    }
    return kinds[how](X)


@pytest.mark.parametrize("how", ["dense", "fortran", "read-only", "memmap", "csr", "csr_array"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_the_same_from_every_kind_of_table(make_table, observation, tmp_path, how, dtype):
    X = np.round(make_table()).astype(dtype)
    source = RowSource(stored(X, how, tmp_path), observation)
    index = torch.tensor([5, 0, 5, 47])
    expected = (
        torch.as_tensor(X[index.numpy()].astype(np.float32)) - observation.location
    ) / observation.scale
    batch = source.batch(index)
    assert batch.x.dtype == batch.inputs.dtype == torch.float32
    assert torch.equal(batch.x, expected)
    assert torch.equal(batch.inputs, observation.batch(expected).inputs)
    assert torch.equal(source.batch(index.reshape(2, 2)).x, expected.reshape(2, 2, 5))


@pytest.mark.parametrize("how", ["dense", "csr"])
def test_rows_of_counts_come_with_their_sizes_and_totals(tmp_path, how):
    X = np.random.default_rng(0).poisson(2.0, size=(9, 5)).astype(np.float32)
    parts = {"poisson": [0, 1], "multinomial": [2, 3, 4]}
    observation = Observation.blank(get_likelihood(parts, 5), 5)
    index = torch.tensor([4, 2])
    batch = RowSource(stored(X, how, tmp_path), observation).batch(index)
    rows = torch.as_tensor(X[index.numpy()])
    for value, expected in zip(batch, observation.batch(rows), strict=True):
        assert value is expected is None or torch.equal(value, expected)
    assert batch.size.tolist() == rows[:, :2].sum(1).clamp_min(1e-6).tolist()
    assert batch.total.tolist() == rows[:, 2:].sum(1).tolist()


def test_tables_too_large_to_keep_are_read_batch_by_batch(make_table, observation, monkeypatch):
    X, index = make_table(), torch.tensor([3, 1])
    kept = RowSource(X, observation).batch(index)
    monkeypatch.setattr(batches, "_RESIDENT_BYTES", 0)
    read = RowSource(X, observation).batch(index)
    assert torch.equal(read.x, kept.x)
    assert torch.equal(read.inputs, kept.inputs)


def test_a_sparse_table_is_never_made_dense_as_a_whole():
    wide = sparse.eye_array(200_000, 100_000, format="csr", dtype=np.float32)
    source = RowSource(wide, Observation.blank(get_likelihood("poisson", 100_000), 100_000))
    assert source.batch(torch.tensor([0, 7])).x.shape == (2, 100_000)


@pytest.mark.parametrize("batch_size", [1, 7, 16, 48, 1000])
def test_an_epoch_has_every_row_once_in_batches_of_nearly_one_size(make_table, observation, batch_size):
    source = RowSource(np.arange(48 * 5, dtype=np.float32).reshape(48, 5), observation)
    made = Batches(source, torch.arange(48), batch_size, torch.Generator().manual_seed(0))
    sizes = [batch.n_rows for batch in made.shuffled()]
    assert len(sizes) == made.n_batches
    assert max(sizes) - min(sizes) <= 1
    shuffled = torch.cat([batch.x for batch in made.shuffled()])
    sequential = torch.cat([batch.x for batch in made.sequential()])
    assert torch.equal(sequential, source.batch(torch.arange(48)).x)
    assert torch.equal(shuffled[shuffled[:, 0].argsort()], sequential)
    assert not torch.equal(shuffled, sequential)


def test_the_order_depends_on_the_generator_alone(make_table, observation):
    source = RowSource(make_table(), observation)

    def epoch(seed):
        torch.manual_seed(seed)
        made = Batches(source, torch.arange(48), 16, torch.Generator().manual_seed(3))
        return torch.cat([batch.x for batch in made.shuffled()])

    assert torch.equal(epoch(0), epoch(1))


def test_replicates_may_have_rows_of_their_own(make_table, observation):
    source = RowSource(make_table(), observation)
    rows = torch.stack([torch.arange(20), torch.arange(20, 40)])
    made = Batches(source, rows, 10, torch.Generator().manual_seed(0))
    assert made.n_rows == 20
    assert [tuple(batch.x.shape) for batch in made.shuffled()] == [(2, 10, 5)] * 2


@pytest.mark.parametrize("n_rows, expected", [(4, [5, 15, 25, 36]), (100, [*range(5, 37)])])
def test_some_rows_are_spread_evenly_over_all(make_table, observation, n_rows, expected):
    source = RowSource(make_table(), observation)
    made = Batches(source, torch.arange(5, 37), 16, torch.Generator().manual_seed(0))
    assert torch.equal(made.spread(n_rows).x, source.batch(torch.tensor(expected)).x)
