from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmwrite

from sparsevae import SparseVAE, read_table
from sparsevae.exceptions import DataError, ParameterError

VALUES = np.array([[1.5, 2.0, -3.0], [4.0, 5.25, 6.0], [7.0, 8.0, 9.5], [0.0, 1.0, 2.0]])


def write(path, text):
    path.write_bytes(text.encode())
    return path


def csv_of(values, head="", labels=None):
    rows = [",".join(map(str, row)) for row in values]
    if labels is not None:
        rows = [f"{label},{row}" for label, row in zip(labels, rows, strict=True)]
    return head + "\n".join(rows) + "\n"


def test_numbers_alone_have_no_names(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES)))
    np.testing.assert_array_equal(table.X, VALUES)
    assert table.feature_names is None
    assert table.sample_names is None
    assert "holds data, not names" in table.assumptions[0]
    assert list(table.row_labels()) == [0, 1, 2, 3]


def test_words_in_the_first_line_are_names(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, "age,height,mood\n")))
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.feature_names) == ["age", "height", "mood"]
    assert list(table.for_estimator().columns) == ["age", "height", "mood"]


@pytest.mark.parametrize("head", ["0,1,2,3,4,5\n", "1,2,3,4,5,6\n", "0,1,2\n"])
def test_a_long_first_line_that_counts_the_columns_is_a_header(tmp_path, head):
    wide = head.count(",") == 5
    table = read_table(
        write(tmp_path / "t.csv", csv_of(np.hstack([VALUES, VALUES]) if wide else VALUES, head))
    )
    if wide:
        assert len(table.X) == 4
        assert ",".join(table.feature_names) == head.strip()
    else:
        assert len(table.X) == 5


def test_what_is_asked_for_wins_over_the_guess(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(np.hstack([VALUES, VALUES]), "0,1,2,3,4,5\n"))
    assert read_table(path, header=False).shape == (5, 6)
    assert read_table(write(tmp_path / "u.csv", csv_of(VALUES)), header=True).shape == (3, 3)


@pytest.mark.parametrize(
    "head,labels",
    [
        (",a,b,c\n", ["r1", "r2", "r3", "r4"]),  # pandas and R's write.csv
        ("a,b,c\n", ["r1", "r2", "r3", "r4"]),  # R's write.table
        ("person,a,b,c\n", ["ann", "bob", "cem", "dua"]),
        (",a,b,c\n", ["0", "1", "2", "3"]),
        ("id,a,b,c\n", ["17", "23", "42", "99"]),
        ("id,a,b,c\n", ["007", "008", "009", "010"]),
    ],
)
def test_sample_names_are_found(tmp_path, head, labels):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, head, labels)))
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.sample_names) == labels
    assert list(table.feature_names) == ["a", "b", "c"]
    assert any("Sample names are in" in sentence for sentence in table.assumptions)


def test_sample_names_are_found_without_a_header_too(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, labels=["ann", "bob", "cem", "dua"])))
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.sample_names) == ["ann", "bob", "cem", "dua"]
    assert table.feature_names is None


def test_a_numeric_first_column_of_another_name_is_a_feature(tmp_path):
    table = read_table(write(tmp_path / "t.csv", csv_of(VALUES, "year,a,b,c\n", [1990, 1991, 1992, 1993])))
    assert table.shape == (4, 4)


def test_repeated_text_in_the_first_column_is_no_id(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES, "school,a,b,c\n", ["north", "south", "north", "south"]))
    with pytest.raises(DataError, match=r"text such as 'north' more than once.*--drop 'school'"):
        read_table(path)
    assert list(read_table(path, id_column="school").sample_names) == ["north", "south", "north", "south"]
    assert read_table(path, drop=("school",)).sample_names is None


def test_any_column_may_hold_the_sample_names(tmp_path):
    path = write(tmp_path / "t.csv", "a,b,who\n1,2,ann\n3,4,bob\n")
    table = read_table(path, id_column="who")
    assert list(table.sample_names) == ["ann", "bob"]
    assert table.row_labels().name == "who"
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_an_id_may_be_declined(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES, "id,a,b,c\n", [17, 23, 42, 99]))
    table = read_table(path, id_column="none")
    assert table.shape == (4, 4)
    assert any("'id' differs in every row" in sentence for sentence in table.assumptions)


@pytest.mark.parametrize("name", ["t.tsv", "t.txt", "t.csv"])
def test_tabs_are_seen_whatever_the_ending(tmp_path, name):
    table = read_table(write(tmp_path / name, "a\tb\n1\t2\n3\t4\n"))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


def test_semicolons_and_decimal_commas_are_understood(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "größe;gewicht\n1,5;2\n3;4,25\n"))
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3, 4.25]])
    assert list(table.feature_names) == ["größe", "gewicht"]
    assert any("decimal comma" in sentence for sentence in table.assumptions)


def test_quotes_byte_order_mark_windows_lines_and_logical_values(tmp_path):
    table = read_table(write(tmp_path / "t.csv", '\ufeff"a, b","c"\r\n"1",TRUE\r\n2,false\r\n'))
    assert list(table.feature_names) == ["a, b", "c"]
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 0]])


def test_gzip_is_opened(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(csv_of(VALUES, "a,b,c\n").encode()))
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv.gz").X, VALUES)


def test_several_columns_may_be_left_out_at_once(tmp_path):
    path = write(tmp_path / "t.csv", '"a","b","c, d","e"\n1,2,3,4\n5,6,x,8\n')
    table = read_table(path, drop=("a,e", "c, d"))
    assert list(table.feature_names) == ["b"]


def test_columns_to_leave_out_must_be_there_unless_told_otherwise(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES, "a,b,c\n"))
    with pytest.raises(DataError, match="no such column"):
        read_table(path, drop=("z",))
    assert read_table(path, drop=("z",), strict=False).shape == (4, 3)


def test_a_table_with_a_row_per_feature_is_turned(tmp_path):
    path = write(tmp_path / "t.csv", csv_of(VALUES.T, "gene,c1,c2,c3,c4\n", ["g1", "g2", "g3"]))
    table = read_table(path, transpose=True)
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.feature_names) == ["g1", "g2", "g3"]
    assert list(table.sample_names) == ["c1", "c2", "c3", "c4"]


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


def test_infinity_in_a_sparse_table_is_placed(tmp_path):
    bad = VALUES.copy()
    bad[2, 1] = np.inf
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(bad))
    with pytest.raises(DataError, match="infinity in column 2, row 3"):
        read_table(tmp_path / "t.npz")


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
