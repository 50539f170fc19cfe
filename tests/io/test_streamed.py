"""Which files stay on disk, and what is read of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae import read_table
from sparsevae.exceptions import DataError
from sparsevae.io import suggest_likelihood

VALUES = np.arange(24.0).reshape(8, 3) - 5


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "parts").mkdir()
    frame = pd.DataFrame(VALUES, columns=["a", "b", "c"])
    frame["who"] = [f"s{i}" for i in range(8)]
    frame[:5].to_parquet(tmp_path / "parts" / "0.parquet")
    frame[5:].to_parquet(tmp_path / "parts" / "1.parquet")
    return tmp_path / "parts"


def test_a_folder_of_parquet_files_stays_on_disk(folder):
    table = read_table(folder, drop="b", id_column="who")
    assert table.on_disk
    assert table.shape == (8, 2)
    assert table.feature_names.tolist() == ["a", "c"]
    np.testing.assert_array_equal(table.X[:], VALUES[:, [0, 2]])
    assert "stays on disk" in table.assumptions[0]
    assert table.row_labels().tolist() == list(range(8))
    assert table.for_estimator() is table.X


def test_its_checksum_is_that_of_its_files(folder):
    before = read_table(folder, id_column="who").fingerprint()
    assert before == read_table(folder, id_column="who").fingerprint()
    (folder / "2.parquet").write_bytes((folder / "1.parquet").read_bytes())
    assert before["sha256"] != read_table(folder, id_column="who").fingerprint()["sha256"]


def test_a_column_of_text_is_named(folder):
    with pytest.raises(DataError, match=r"in column 'who'\. Leave it out"):
        read_table(folder)
    with pytest.raises(DataError, match="Expected a column 'nobody'"):
        read_table(folder, id_column="nobody")


@pytest.mark.parametrize("ending", [".npy", ".parquet", ".h5ad"])
def test_files_stay_on_disk_from_a_size_on(tmp_path, monkeypatch, ending):
    path = tmp_path / f"x{ending}"
    if ending == ".npy":
        np.save(path, VALUES)
    elif ending == ".parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame(VALUES, columns=["a", "b", "c"]).to_parquet(path)
    else:
        pytest.importorskip("anndata").AnnData(VALUES).write_h5ad(path)
    assert not read_table(path).on_disk
    monkeypatch.setattr("sparsevae.io.streamed.STREAMED_BYTES", VALUES.nbytes)
    table = read_table(path)
    assert table.on_disk
    np.testing.assert_array_equal(table.X[:], VALUES)
    assert not read_table(path, transpose=True).on_disk
    monkeypatch.setattr("sparsevae.io.streamed.STREAMED_BYTES", VALUES.nbytes + 1)
    assert not read_table(path).on_disk


def test_names_of_features_come_from_a_file_and_columns_are_left_out(tmp_path):
    (tmp_path / "cells.zarr").mkdir()
    with pytest.raises(DataError, match="to be written by anndata"):
        read_table(tmp_path / "cells.zarr")
    sparse.save_npz(tmp_path / "0.npz", sparse.csr_matrix(VALUES))
    (tmp_path / "names.txt").write_text("x\ny\nz\n")
    table = read_table(tmp_path, feature_names=tmp_path / "names.txt")
    assert table.feature_names.tolist() == ["x", "y", "z"]


def test_missing_cells_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsevae.io.streamed.STREAMED_BYTES", 1)
    values = VALUES.copy()
    values[2, 1] = np.nan
    np.save(tmp_path / "x.npy", values)
    notes = read_table(tmp_path / "x.npy").assumptions
    assert notes[1] == "1 cell is empty or NA (4.2%) and counted as missing, the first in column 2, row 3."


@pytest.mark.parametrize(
    "kind", ["real", "negative", "binary", "poisson", "overdispersed", "scale", "scores", "zero"]
)
def test_the_likelihood_is_that_of_the_table_in_memory(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("sparsevae.io.streamed.STREAMED_BYTES", 1)
    rng = np.random.default_rng(0)
    X = {
        "real": rng.random((200, 4)),
        "negative": rng.integers(-3, 3, (200, 4)).astype(float),
        "binary": rng.integers(0, 2, (200, 4)).astype(float),
        "poisson": rng.poisson(1.0, (200, 4)).astype(float),
        "overdispersed": rng.poisson(rng.gamma(0.5, 4.0, (200, 4))).astype(float),
        "scale": rng.integers(1, 6, (200, 4)).astype(float),
        "scores": rng.integers(50, 150, (200, 4)).astype(float),
        "zero": np.zeros((200, 4)),
    }[kind]
    np.save(tmp_path / "x.npy", X)
    assert suggest_likelihood(read_table(tmp_path / "x.npy").X) == suggest_likelihood(X)
