"""Fits of tables that stay on disk: as good as in memory, and the same answers to the last bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae import NMF, VAE, SparseVAE, open_rows
from sparsevae.datasets import make_anchored_factors
from sparsevae.exceptions import DataError, DataWarning, ParameterError

EPOCHS = 30


@pytest.fixture(scope="module")
def table():
    return make_anchored_factors(500, 12, 3, random_state=0).X.astype(np.float32)


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    file = tmp_path_factory.mktemp("stored") / "x.npy"
    np.save(file, table)
    return file


@pytest.fixture(scope="module")
def fitted(path):
    return SparseVAE(4, max_epochs=EPOCHS, random_state=0).fit(open_rows(path))


def test_a_fit_from_disk_is_as_good_as_one_in_memory(table, fitted):
    inside = SparseVAE(4, max_epochs=EPOCHS, random_state=0).fit(table)
    assert fitted.score(table) == pytest.approx(inside.score(table), abs=0.25)
    assert len(fitted.active_factors_) == len(inside.active_factors_) == 3
    np.testing.assert_array_equal((fitted.mask_ != 0).sum(0), (inside.mask_ != 0).sum(0))


def test_the_same_seed_gives_the_same_fit(path, fitted):
    again = SparseVAE(4, max_epochs=EPOCHS, random_state=0).fit(open_rows(path))
    np.testing.assert_array_equal(again.mask_, fitted.mask_)


def test_answers_are_those_of_the_table_in_memory(table, path, fitted, tmp_path):
    stored = open_rows(path)
    Z = fitted.transform(table)
    np.testing.assert_array_equal(fitted.transform(stored), Z)
    np.testing.assert_array_equal(fitted.score_samples(stored), fitted.score_samples(table))
    assert fitted.score(stored) == fitted.score(table)
    written = fitted.transform(stored, out=tmp_path / "z.npy")
    np.testing.assert_array_equal(written, Z)
    assert written.dtype == Z.dtype
    np.testing.assert_array_equal(fitted.transform(table, out=tmp_path / "z2.npy"), Z)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["z.npy", "z2.npy"]


def test_many_blocks_give_the_same_answers(table, path, fitted, monkeypatch):
    monkeypatch.setattr("sparsevae.inspection.streams._CELLS_AT_ONCE", 1)
    monkeypatch.setattr("sparsevae.stored.base._CELLS_AT_ONCE", 100)
    monkeypatch.setattr("sparsevae.inspection.streams.block_size", lambda module: 128)
    monkeypatch.setattr("sparsevae.inspection.codes.block_size", lambda module: 128)
    stored = open_rows(path)
    np.testing.assert_array_equal(fitted.transform(stored), fitted.transform(table))
    np.testing.assert_array_equal(fitted.score_samples(stored), fitted.score_samples(table))


def test_holes_are_filled_block_by_block(table, fitted, tmp_path):
    holed = table.copy()
    holed[np.random.default_rng(0).random(table.shape) < 0.1] = np.nan
    np.save(tmp_path / "holed.npy", holed)
    stored = open_rows(tmp_path / "holed.npy")
    np.testing.assert_array_equal(fitted.impute(stored, out=tmp_path / "full.npy"), fitted.impute(holed))
    with pytest.raises(ParameterError, match=r"Expected out=.* Pass out='filled\.npy'"):
        fitted.impute(stored)
    model = SparseVAE(4, max_epochs=2, random_state=0).fit(stored)
    np.testing.assert_allclose(model.module_.observation.location, np.nanmean(holed, 0), rtol=1e-4, atol=1e-5)


def test_examinations_use_rows_in_memory(path, fitted):
    stored = open_rows(path)
    evidence = fitted.evidence(stored)
    assert evidence["source"]["n_samples"] == 500
    assert set(fitted.identifiability(stored).table.index) == set(fitted.loadings().columns)
    assert fitted.drift(stored).n_samples == 500


def test_counts_stay_sparse(tmp_path):
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(1.0, 0.5, (2, 15))[rng.integers(2, size=300)]).astype(np.float32)
    counts[3] = 0
    sparse.save_npz(tmp_path / "0.npz", sparse.csr_matrix(counts[:100]))
    sparse.save_npz(tmp_path / "1.npz", sparse.csr_matrix(counts[100:]))
    stored = open_rows(tmp_path)
    with pytest.warns(DataWarning, match="1 of 300 rows hold no counts"):
        model = SparseVAE(2, likelihood="auto", max_epochs=2, random_state=0).fit(stored)
    assert model.likelihood_ in ("negative_binomial", "poisson")
    np.testing.assert_array_equal(model.transform(stored), model.transform(sparse.csr_matrix(counts)))
    assert not model.transform(stored)[3].any()


def test_weights_count_on_disk_as_in_memory(path, table):
    weight = np.random.default_rng(0).integers(0, 3, len(table)).astype(float)
    model = VAE(3, max_epochs=2, random_state=0).fit(open_rows(path), sample_weight=weight)
    expected = np.average(table, axis=0, weights=weight)
    np.testing.assert_allclose(model.module_.observation.location, expected, rtol=1e-4, atol=1e-5)


def test_dask_arrays_are_read_chunk_by_chunk(table, fitted):
    arrays = pytest.importorskip("dask.array")
    seen = []

    def read(block):
        seen.append(len(block))
        return block

    chunks = arrays.from_array(table, chunks=(100, 12)).map_blocks(
        read, dtype=np.float32, meta=np.empty((0, 0), dtype=np.float32)
    )
    np.testing.assert_array_equal(fitted.transform(chunks), fitted.transform(table))
    assert set(seen) == {100}


def test_a_fit_goes_on_from_its_checkpoint(path, fitted, tmp_path):
    def stop(record):
        return record["step"] == 5

    model = SparseVAE(4, max_epochs=EPOCHS, random_state=0)
    with pytest.warns(Warning, match="Stopped by a callback"):
        model.fit(open_rows(path), callbacks=[stop], checkpoint=tmp_path / "c")
    model.fit(open_rows(path), checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(model.mask_, fitted.mask_)
    other = np.load(path)
    other[7, 3] += 1.0
    np.save(tmp_path / "other.npy", other)
    with pytest.raises(DataError, match="got one of another table"):
        model.fit(open_rows(tmp_path / "other.npy"), checkpoint=tmp_path / "c")


def test_bad_tables_are_refused_in_one_sentence(path, table, fitted, tmp_path):
    stored = open_rows(path)
    with pytest.raises(DataError, match="Expected no observed= for a table on disk"):
        fitted.transform(stored, observed=np.ones(table.shape, dtype=bool))
    with pytest.raises(DataError, match="Expected a table in memory for NMF"):
        NMF(2).fit(stored)
    with pytest.raises(DataError, match="no Negative values in data passed to a poisson"):
        SparseVAE(2, likelihood="poisson").fit(stored)
    with pytest.raises(ParameterError, match=r"out to be the path of an NPY file; got 'z\.csv'"):
        fitted.transform(stored, out="z.csv")
    with pytest.raises(DataError, match="Expected a table in memory, to hide cells of"):
        fitted.masked_score(stored)
    np.save(tmp_path / "few.npy", table[:, :5])
    with pytest.raises(DataError, match="Expected 12 features, as in fit; got 5"):
        fitted.transform(open_rows(tmp_path / "few.npy"))
    table = table.copy()
    table[9, 4] = np.inf
    np.save(tmp_path / "inf.npy", table)
    with pytest.raises(DataError, match=r"got infinity .* the first in row 10 of 'x4'"):
        fitted.transform(open_rows(tmp_path / "inf.npy"))


def test_a_file_that_is_cut_off_during_a_fit_ends_it_with_one_sentence(path, tmp_path):
    copy = tmp_path / "x.npy"
    copy.write_bytes(path.read_bytes())

    def cut(record):
        with copy.open("r+b") as file:
            file.truncate(1000)

    model = VAE(3, max_epochs=5, random_state=0)
    with pytest.raises(DataError, match="it is gone, damaged or cut off"):
        model.fit(open_rows(copy), callbacks=[cut])


def test_parts_that_vanish_during_a_fit_end_it_with_one_sentence(table, tmp_path):
    pd.DataFrame(table).rename(columns=str).to_parquet(tmp_path / "0.parquet", row_group_size=100)
    kept = tmp_path / "kept"

    def remove(record):
        (tmp_path / "0.parquet").rename(tmp_path / "away")
        return False

    model = VAE(3, max_epochs=4, random_state=0)
    with pytest.raises(DataError, match="it is gone, damaged or cut off"):
        model.fit(open_rows(tmp_path), callbacks=[remove], checkpoint=kept, checkpoint_every=0)
    (tmp_path / "away").rename(tmp_path / "0.parquet")
    resumed = model.fit(open_rows(tmp_path), checkpoint=kept)
    whole = VAE(3, max_epochs=4, random_state=0).fit(open_rows(tmp_path))
    np.testing.assert_array_equal(resumed.transform(table), whole.transform(table))
