"""Rows as tensors, from however a table is stored."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation
from sparsevae.training import Batches, Table, batches


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
    table = Table(stored(X, how, tmp_path), observation)
    index = torch.tensor([5, 0, 5, 47])
    expected = (
        torch.as_tensor(X[index.numpy()].astype(np.float32)) - observation.location
    ) / observation.scale
    assert table.rows(index).dtype == torch.float32
    assert torch.equal(table.rows(index), expected)
    assert torch.equal(table.rows(index.reshape(2, 2)), expected.reshape(2, 2, 5))


def test_tables_too_large_to_keep_are_read_batch_by_batch(make_table, observation, monkeypatch):
    X, index = make_table(), torch.tensor([3, 1])
    kept = Table(X, observation).rows(index)
    monkeypatch.setattr(batches, "_RESIDENT_BYTES", 0)
    assert torch.equal(Table(X, observation).rows(index), kept)


def test_a_sparse_table_is_never_made_dense_as_a_whole():
    wide = sparse.eye_array(200_000, 100_000, format="csr", dtype=np.float32)
    table = Table(wide, Observation.blank(get_likelihood("poisson", 100_000), 100_000))
    assert table.rows(torch.tensor([0, 7])).shape == (2, 100_000)


@pytest.mark.parametrize("batch_size", [1, 7, 16, 48, 1000])
def test_an_epoch_has_every_row_once_in_batches_of_nearly_one_size(make_table, observation, batch_size):
    table = Table(np.arange(48 * 5, dtype=np.float32).reshape(48, 5), observation)
    made = Batches(table, torch.arange(48), batch_size, torch.Generator().manual_seed(0))
    sizes = [len(batch) for batch in made.shuffled()]
    assert len(sizes) == made.n_batches
    assert max(sizes) - min(sizes) <= 1
    shuffled = torch.cat(list(made.shuffled()))
    sequential = torch.cat(list(made.sequential()))
    assert torch.equal(sequential, table.rows(torch.arange(48)))
    assert torch.equal(shuffled[shuffled[:, 0].argsort()], sequential)
    assert not torch.equal(shuffled, sequential)


def test_the_order_depends_on_the_generator_alone(make_table, observation):
    table = Table(make_table(), observation)

    def epoch(seed):
        torch.manual_seed(seed)
        made = Batches(table, torch.arange(48), 16, torch.Generator().manual_seed(3))
        return torch.cat(list(made.shuffled()))

    assert torch.equal(epoch(0), epoch(1))


def test_replicates_may_have_rows_of_their_own(make_table, observation):
    table = Table(make_table(), observation)
    rows = torch.stack([torch.arange(20), torch.arange(20, 40)])
    made = Batches(table, rows, 10, torch.Generator().manual_seed(0))
    assert made.n_rows == 20
    assert [tuple(batch.shape) for batch in made.shuffled()] == [(2, 10, 5)] * 2
