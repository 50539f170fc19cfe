from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

from sparsevae import SparseVAE, read_table
from sparsevae.exceptions import DataError, ParameterError

from .helpers import VALUES, csv_of, write


def test_columns_to_leave_out_must_be_there_unless_told_otherwise(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES, "a,b,c\n"))
    with pytest.raises(DataError, match="no such column"):
        read_table(path, drop=("z",))
    assert read_table(path, drop=("z",), strict=False).shape == (4, 3)


def test_several_columns_may_be_left_out_at_once(tmp_path):
    path = write(tmp_path / "t.csv", '"a","b","c, d","e"\n1,2,3,4\n5,6,x,8\n')
    table = read_table(path, drop=("a,e", "c, d"))
    assert list(table.feature_names) == ["b"]


def test_a_table_with_a_row_per_feature_is_turned(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES.T, "gene,c1,c2,c3,c4\n", ["g1", "g2", "g3"]))
    table = read_table(path, transpose=True)
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.feature_names) == ["g1", "g2", "g3"]
    assert list(table.sample_names) == ["c1", "c2", "c3", "c4"]


def test_infinity_in_a_sparse_table_is_placed(tmp_path):
    bad = VALUES.copy()
    bad[2, 1] = np.inf
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(bad))
    with pytest.raises(DataError, match="infinity in column 2, row 3"):
        read_table(tmp_path / "t.npz")


def test_a_fingerprint_changes_with_a_single_byte(tmp_path):
    first = read_table(write(tmp_path / "t.csv", "1,2\n")).fingerprint()
    assert first == read_table(tmp_path / "t.csv").fingerprint()
    assert first["bytes"] == 4
    assert read_table(write(tmp_path / "t.csv", "1,3\n")).fingerprint()["sha256"] != first["sha256"]


def test_a_table_goes_from_a_file_into_a_fit_with_its_names(tmp_path, rng):
    rows = rng.standard_normal((30, 3)).round(3)
    table = read_table(str(write(tmp_path / "t.csv", csv_of(rows, "a,b,c\n"))))
    model = SparseVAE(2, max_epochs=2, n_init=1, hidden_sizes=(4,), random_state=0)
    model.fit(table.for_estimator())
    assert list(model.feature_names_in_) == ["a", "b", "c"]


def test_one_column_to_leave_out_needs_no_list(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES, "a,b,c\n"))
    for drop in ("b", ["b"], ("b",)):
        table = read_table(path, drop=drop)
        assert list(table.feature_names) == ["a", "c"]
        assert table.options.drop == ("b",)


@pytest.mark.parametrize(
    "option,value",
    [
        ("header", "yes"),
        ("id_column", 0),
        ("drop", 3),
        ("drop", [3]),
        ("transpose", "no"),
        ("layer", 1),
        ("feature_names", ["a", "b", "c"]),
        ("strict", None),
    ],
)
def test_an_option_of_another_type_is_refused_before_the_file_is_read(tmp_path, option, value):
    with pytest.raises(ParameterError, match=f"Expected {option} to be"):
        read_table(tmp_path / "nowhere.csv", **{option: value})


def test_an_array_is_no_path():
    with pytest.raises(ParameterError, match="Expected the path of a table"):
        read_table(VALUES)


@pytest.mark.parametrize(
    "text,remedy",
    [
        ("a,b,c\n1,red,2\n2,blue,3\n", "drop='b', on the command line --drop 'b'"),
        ("a,b,c\n1,red,x\n2,blue,y\n", r"drop=\['b', 'c'\], on the command line --drop 'b' --drop 'c'"),
    ],
)
def test_a_remedy_is_said_for_python_and_for_the_command_line(tmp_path, text, remedy):
    with pytest.raises(DataError, match=remedy):
        read_table(write(tmp_path / "t.csv", text))


def test_a_damaged_sparse_matrix_is_refused(tmp_path):
    X = sparse.random(20, 5, 0.5, format="csr", random_state=0)
    indices = X.indices.copy()
    indices[3] = 10**7
    path = tmp_path / "t.npz"
    np.savez(path, data=X.data, indices=indices, indptr=X.indptr, format=np.array("csr"), shape=X.shape)
    with pytest.raises(DataError, match=r"t\.npz within its 20 rows and 5 columns; got a damaged sparse"):
        read_table(path)


def test_a_damaged_h5ad_matrix_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    anndata = pytest.importorskip("anndata")
    path = tmp_path / "t.h5ad"
    anndata.AnnData(sparse.random(20, 5, 0.5, format="csr", random_state=0)).write_h5ad(path)
    with h5py.File(path, "r+") as file:
        file["X/indices"][3] = 10**7
    with pytest.raises(DataError, match="damaged sparse matrix"):
        read_table(path)


@pytest.mark.parametrize(
    "name, remedy",
    [
        ("answers.xls", "Save it as .xlsx"),
        ("notes.doc", "Save the table as CSV"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_to_do(name, remedy, tmp_path):
    (tmp_path / name).write_bytes(b"something")
    with pytest.raises(DataError, match=re.escape(remedy)):
        read_table(tmp_path / name)
