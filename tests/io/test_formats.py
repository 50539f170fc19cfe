from __future__ import annotations

import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae import read_table
from sparsevae.exceptions import DataError
from sparsevae.io.formats import Cell, to_numbers

from .helpers import VALUES


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
    (tmp_path / "words.npz").write_text("a,b\n1,2\n")
    for name in ("objects.npy", "words.npz"):
        with pytest.raises(DataError, match=r"(plain array|archive of).*[Pp]ython") as failure:
            read_table(tmp_path / name)
        assert "allow_pickle" not in str(failure.value)
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


def test_h5ad_with_variable_genes_says_that_all_are_read(tmp_path):
    anndata = pytest.importorskip("anndata")
    genes = pd.DataFrame({"highly_variable": [True, False, True]}, index=["g1", "g2", "g3"])
    cells = anndata.AnnData(VALUES, obs=pd.DataFrame(index=["c1", "c2", "c3", "c4"]), var=genes)
    cells.write_h5ad(tmp_path / "t.h5ad")
    (note,) = (line for line in read_table(tmp_path / "t.h5ad").assumptions if "highly_variable" in line)
    assert note.startswith("All 3 features are read; to fit the 2 that var marks as highly_variable")


def test_npz_of_scipy_may_have_any_format(tmp_path):
    for kind in ("coo", "csc", "csr", "bsr", "dia"):
        sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(VALUES).asformat(kind))
        np.testing.assert_array_equal(read_table(tmp_path / "t.npz").X.toarray(), VALUES)


def test_as_many_names_as_columns_are_expected(tmp_path):
    np.savez(tmp_path / "t.npz", X=VALUES, feature_names=np.array(["a", "b"]))
    with pytest.raises(DataError, match=r"a name for each of the 3 columns .* got 2 names"):
        read_table(tmp_path / "t.npz")


@pytest.mark.parametrize("shape", [(10**13, 3), (-1, 3), (3,), (2, 2, 2)])
def test_a_shape_that_cannot_be_true_is_refused_before_there_is_room_for_it(tmp_path, shape):
    entries = {"row": [0], "col": [0], "data": [1.0], "format": np.array("coo"), "shape": np.array(shape)}
    np.savez(tmp_path / "t.npz", **entries)
    with pytest.raises(DataError, match=r"fits into memory|rows and columns"):
        read_table(tmp_path / "t.npz")


def test_decimals_are_numbers_and_categories_are_not(tmp_path):
    pytest.importorskip("pyarrow")
    prices = pd.DataFrame({"price": [Decimal("1.25"), Decimal("2.50"), None], "b": [1, 2, 3]})
    prices.head(2).to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "t.parquet").X, [[1.25, 1], [2.5, 2]])
    prices.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "t.parquet").X[:, 0], [1.25, 2.5, np.nan])
    _, others = to_numbers(prices.assign(b=pd.Categorical([3, 1, 2]), t=pd.Timedelta(1)))
    assert others == {1: Cell(0, 3), 2: Cell(0, pd.Timedelta(1))}


@pytest.mark.parametrize("size", [60, 200])
def test_a_gzip_that_is_cut_off_is_said_to_be(tmp_path, size):
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(300)))
    (tmp_path / "t.csv.gz").write_bytes(packed[:size])
    with pytest.raises(DataError, match=r"t\.csv\.gz to be a table in text; the file is cut off"):
        read_table(tmp_path / "t.csv.gz")


def test_a_gzip_with_a_changed_byte_is_damaged(tmp_path):
    packed = bytearray(gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(300))))
    for at in range(20, len(packed), 97):
        damaged = bytearray(packed)
        damaged[at] ^= 0xFF
        (tmp_path / "t.csv.gz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"damaged|cut off|UTF-8|Expected"):
            read_table(tmp_path / "t.csv.gz")


def test_an_archive_of_an_unknown_version_is_refused(tmp_path):
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(VALUES))
    content = bytearray((tmp_path / "t.npz").read_bytes())
    at = content.find(b"PK\x01\x02")
    content[at + 6 : at + 8] = (238).to_bytes(2, "little")
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(DataError, match="it is damaged, or something else"):
        read_table(tmp_path / "t.npz")
