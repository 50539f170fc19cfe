from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

from sparsevae import read_table
from sparsevae.exceptions import DataError

from .helpers import VALUES, write


def test_npy_is_mapped_not_loaded(tmp_path):
    np.save(tmp_path / "t.npy", VALUES)
    table = read_table(tmp_path / "t.npy")
    assert isinstance(table.X, np.memmap)
    np.testing.assert_array_equal(table.X, VALUES)


def test_npy_of_another_shape_or_of_objects_is_refused(tmp_path):
    np.save(tmp_path / "flat.npy", VALUES.ravel())
    with pytest.raises(DataError, match="rows and columns"):
        read_table(tmp_path / "flat.npy")
    np.save(tmp_path / "objects.npy", VALUES.astype(object), allow_pickle=True)
    with pytest.raises(DataError, match="plain array"):
        read_table(tmp_path / "objects.npy")
    np.save(tmp_path / "text.npy", VALUES.astype(str))
    with pytest.raises(DataError, match="Expected numbers"):
        read_table(tmp_path / "text.npy")


def test_npz_of_scipy_stays_sparse(tmp_path):
    sparse.save_npz(tmp_path / "t.npz", sparse.csc_matrix(VALUES))
    table = read_table(tmp_path / "t.npz")
    assert sparse.issparse(table.X)
    assert table.X.format == "csr"
    np.testing.assert_array_equal(table.X.toarray(), VALUES)


def test_npz_of_numpy_may_carry_names(tmp_path):
    np.savez(tmp_path / "t.npz", X=VALUES, feature_names=np.array(["a", "b", "c"]))
    assert list(read_table(tmp_path / "t.npz").feature_names) == ["a", "b", "c"]
    np.savez(tmp_path / "u.npz", first=VALUES, second=VALUES)
    with pytest.raises(DataError, match="an array called X; got first, second"):
        read_table(tmp_path / "u.npz")


def test_matrix_market_stays_sparse_and_may_be_turned(tmp_path):
    mmwrite(tmp_path / "t.mtx", sparse.coo_matrix(VALUES.T))
    names = write(tmp_path / "names.txt", "a\nb\nc\n")
    table = read_table(tmp_path / "t.mtx", transpose=True, feature_names=names)
    assert sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), VALUES)
    assert list(table.feature_names) == ["a", "b", "c"]
    with pytest.raises(DataError, match="Expected 4 feature names"):
        read_table(tmp_path / "t.mtx", feature_names=names)


def test_parquet_keeps_names_and_index(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(VALUES, columns=["a", "b", "c"])
    frame.set_index(pd.Index(["p", "q", "r", "s"], name="who")).to_parquet(tmp_path / "indexed.parquet")
    indexed = read_table(tmp_path / "indexed.parquet")
    assert list(indexed.sample_names) == ["p", "q", "r", "s"]
    assert indexed.row_labels().name == "who"
    frame.assign(who=["p", "q", "r", "s"])[["who", "a", "b", "c"]].to_parquet(tmp_path / "column.parquet")
    for options in ({}, {"id_column": "who"}):
        column = read_table(tmp_path / "column.parquet", **options)
        assert list(column.sample_names) == ["p", "q", "r", "s"]
        np.testing.assert_array_equal(column.X, VALUES)
    with pytest.raises(DataError, match="column 'who'"):
        read_table(tmp_path / "column.parquet", id_column="none")
    frame.assign(day=pd.Timestamp("2020-01-01")).to_parquet(tmp_path / "dates.parquet")
    with pytest.raises(DataError, match="column 'day', for example '2020"):
        read_table(tmp_path / "dates.parquet")


def test_h5ad_has_names_and_layers(tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(
        sparse.csr_matrix(VALUES),
        obs=pd.DataFrame(index=["c1", "c2", "c3", "c4"]),
        var=pd.DataFrame(index=["g1", "g2", "g3"]),
        layers={"twice": 2 * VALUES},
    )
    cells.write_h5ad(tmp_path / "t.h5ad")
    table = read_table(tmp_path / "t.h5ad")
    np.testing.assert_array_equal(table.X.toarray(), VALUES)
    assert list(table.feature_names) == ["g1", "g2", "g3"]
    assert list(table.sample_names) == ["c1", "c2", "c3", "c4"]
    assert "twice" in table.assumptions[0]
    np.testing.assert_array_equal(read_table(tmp_path / "t.h5ad", layer="twice").X, 2 * VALUES)
    with pytest.raises(DataError, match="Expected a layer 'thrice'"):
        read_table(tmp_path / "t.h5ad", layer="thrice")
