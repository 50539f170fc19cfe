"""Every kind of table on disk gives the rows that were written, and says in a sentence what is wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.stored import as_stored, open_rows
from sparsevae.stored.selection import SelectedTable


def as_array(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def test_rows_are_those_that_were_written(make_source, kind):
    source, X = make_source(kind)
    table = open_rows(source)
    assert table.shape == X.shape
    index = np.sort(np.random.default_rng(2).choice(len(X), 40, replace=False))
    np.testing.assert_array_equal(as_array(table.rows(index)), X[index])
    np.testing.assert_array_equal(as_array(table[[5, 3, 5]]), X[[5, 3, 5]])
    np.testing.assert_array_equal(as_array(table[np.arange(len(X)) % 3 == 0]), X[::3])
    np.testing.assert_array_equal(as_array(table[::7]), X[::7])
    assert table.rows(np.zeros(0, dtype=int)).shape == (0, X.shape[1])


def test_blocks_cover_every_row_once(make_source, kind):
    source, X = make_source(kind)
    for size in (None, 1, 37):
        blocks = list(open_rows(source).blocks(size))
        np.testing.assert_array_equal(np.concatenate([as_array(block) for _, block in blocks]), X)
        np.testing.assert_array_equal(
            np.cumsum([0, *(block.shape[0] for _, block in blocks)])[:-1], [begin for begin, _ in blocks]
        )


def test_a_survey_has_the_moments_of_the_table(make_source, kind):
    source, X = make_source(kind)
    survey = open_rows(source).survey
    np.testing.assert_allclose(survey.mean, X.mean(0, dtype=np.float64), atol=1e-12)
    np.testing.assert_allclose(survey.variance, X.astype(np.float64).var(0), rtol=1e-10)
    np.testing.assert_array_equal(survey.minimum, X.min(0))
    np.testing.assert_array_equal(survey.maximum, X.max(0))
    np.testing.assert_array_equal(survey.silent, np.flatnonzero(~X.any(1)))
    assert survey.n_nonzero == np.count_nonzero(X)
    assert np.isnan(survey.fraction).all() == bool((np.rint(X) == X).all())


def test_parquet_columns_of_all_kinds_of_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "a": pandas.array([1, None, 3], dtype="Int32"),
            "b": [True, False, True],
            "c": np.array([1.5, np.nan, 2], dtype=np.float32),
        }
    )
    frame.to_parquet(tmp_path / "k.parquet")
    table = open_rows(tmp_path / "k.parquet")
    np.testing.assert_array_equal(table[:], [[1, 1, 1.5], [np.nan, 0, np.nan], [3, 1, 2]])
    assert open_rows(tmp_path / "k.parquet", columns=["c", "a"])[:].tolist()[0] == [1.5, 1.0]


def test_lazy_arrays_stay_on_disk_as_they_are(make_source):
    for kind in ("h5py dataset", "zarr array", "backed", "dask", "object"):
        source, X = make_source(kind)
        assert as_stored(source).shape == X.shape


def test_names_come_with_the_table(make_source):
    assert open_rows(make_source("parquet")[0]).feature_names.tolist() == list("abcdefg")
    assert open_rows(make_source("h5ad")[0]).feature_names.tolist() == [str(j) for j in range(7)]


def test_a_table_goes_to_other_processes(make_source):
    source, X = make_source("npy")
    table = open_rows(source)
    np.testing.assert_array_equal(table[:3], X[:3])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(table))[:3], X[:3])


def test_columns_can_be_selected(make_source, kind):
    source, X = make_source(kind)
    columns = np.array([2, 0])
    np.testing.assert_array_equal(
        as_array(SelectedTable(open_rows(source), columns)[4:9]), X[4:9][:, columns]
    )


def test_small_maps_and_arrays_stay_in_memory(make_source, dense, monkeypatch):
    mapped = make_source("mapped")[0]
    for X in (dense, mapped, sparse.csr_matrix(dense), dense.tolist()):
        assert as_stored(X) is None
    monkeypatch.setattr("sparsevae.stored.opening.STREAMED_BYTES", mapped.nbytes)
    assert as_stored(mapped).shape == mapped.shape
    assert as_stored(dense) is None


def test_whole_numbers_are_exact(tmp_path):
    for dtype, expected in (
        ("int8", "float32"),
        ("uint16", "float32"),
        ("int32", "float64"),
        ("bool", "float32"),
    ):
        np.save(tmp_path / "n.npy", np.ones((3, 2), dtype=dtype))
        table = open_rows(tmp_path / "n.npy")
        assert table.dtype == expected
        assert table[:].dtype == expected


# -- faults --------------------------------------------------------------------------------------------------


def test_a_file_that_is_cut_off_is_refused(make_source):
    path = make_source("npy")[0]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"Expected 8528 bytes .* got 8428: it is cut off\. Copy it again"):
        open_rows(path)


def test_a_file_that_is_cut_off_later_gives_one_sentence(make_source):
    path = make_source("npy")[0]
    table = open_rows(path)
    with path.open("r+b") as file:
        file.truncate(4000)
    with pytest.raises(
        DataError, match=r"rows 201 to 300 of .*x\.npy; that failed: it is gone, damaged or cut"
    ):
        table[200:]


def test_a_file_that_vanishes_gives_one_sentence(make_source):
    path = make_source("npy")[0]
    table = open_rows(path)
    path.unlink()
    with pytest.raises(DataError, match=r"rows 1 to 5 of .* failed: it is gone.*No such file"):
        table[:5]
    with pytest.raises(DataError, match="there is no such file"):
        open_rows(path)


def test_a_parquet_file_that_is_damaged_gives_one_sentence(make_source):
    path = make_source("parquet")[0]
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DataError, match=r"Expected .*x\.parquet to be a Parquet file; it is damaged"):
        open_rows(path)


def test_an_h5ad_file_that_is_damaged_gives_one_sentence(make_source):
    path = make_source("h5ad sparse")[0]
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(DataError, match=r"to be written by anndata; .* damaged, or something else"):
        open_rows(path)


def test_sparse_rows_with_columns_out_of_bounds_are_refused(make_source):
    h5py = pytest.importorskip("h5py")
    path = make_source("h5ad sparse")[0]
    with h5py.File(path, "r+") as file:
        file["X/indices"][3] = 99
    with pytest.raises(DataError, match="Expected columns within the 7 of"):
        open_rows(path)[:]
    with h5py.File(path, "r+") as file:
        file["X/indptr"][5] = 10**6
    with pytest.raises(DataError, match="Expected pointers of 300 rows"):
        open_rows(path)


def test_columns_first_are_refused(tmp_path, counts):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(sparse.csc_matrix(counts)).write_h5ad(tmp_path / "c.h5ad")
    with pytest.raises(DataError, match=r"\(CSR\) in .*; got csc_matrix\. Convert it once"):
        open_rows(tmp_path / "c.h5ad")
    np.save(tmp_path / "f.npy", np.asfortranarray(counts))
    with pytest.raises(DataError, match="got an array in Fortran order"):
        open_rows(tmp_path / "f.npy")


@pytest.mark.parametrize("dtype", ["U3", "complex64", "datetime64[s]"])
def test_what_is_no_number_is_refused(tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.zeros((3, 2), dtype=dtype))
    with pytest.raises(
        DataError, match=r"Expected numbers in .*x\.npy; got values of type .*\. Convert them"
    ):
        open_rows(tmp_path / "x.npy")


def test_text_in_parquet_is_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"a": [1.0], "who": ["me"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"got (large_)?string in column 'who'\. Leave it out"):
        open_rows(tmp_path / "t.parquet")


def test_what_has_no_rows_is_refused(tmp_path):
    for shape, message in (((3,), "shape"), ((0, 2), "got 0 x 2"), ((2, 3, 4), r"\(2, 3, 4\)")):
        np.save(tmp_path / "x.npy", np.zeros(shape))
        with pytest.raises(DataError, match=message):
            open_rows(tmp_path / "x.npy")
    with pytest.raises(ParameterError, match="got list"):
        open_rows([[1, 2]])
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"got x\.csv\. Other tables are read by sparsevae\.read_table"):
        open_rows(tmp_path / "x.csv")


def test_parts_of_other_widths_are_refused(tmp_path, counts):
    sparse.save_npz(tmp_path / "0.npz", sparse.csr_matrix(counts))
    sparse.save_npz(tmp_path / "1.npz", sparse.csr_matrix(counts[:, :3]))
    with pytest.raises(DataError, match=r"as many columns in every part .* got \[3, 7\]"):
        open_rows(tmp_path)


def test_infinity_is_found_with_its_place(tmp_path, dense):
    dense[200, 3] = np.inf
    np.save(tmp_path / "x.npy", dense)
    survey = open_rows(tmp_path / "x.npy").survey
    assert survey.first_large == (200, 3)
    assert survey.n_large.tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_holes_are_counted(make_source, counts):
    counts[4] = np.nan
    counts[9, 2] = np.nan
    for kind in ("npz parts", "h5ad sparse"):
        survey = open_rows(make_source(kind)[0]).survey
        assert survey.n_missing.tolist() == [1, 1, 2, 1, 1, 1, 1]
        assert survey.empty.tolist() == [4]
        assert survey.first_missing == (4, 0)
        np.testing.assert_allclose(survey.mean, np.nanmean(counts, 0), rtol=1e-6)
        np.testing.assert_allclose(survey.variance, np.nanvar(counts, 0), rtol=1e-5)


def test_a_table_is_never_read_whole_in_silence(make_source):
    source, X = make_source("npy")
    table = open_rows(source)
    with pytest.raises(DataError, match=r"Expected a table in memory; got .*x\.npy, which stays on disk"):
        np.asarray(table)
    with pytest.raises(DataError, match="has no slices of columns"):
        table[:, :2]
    np.testing.assert_array_equal(table[-1:], X[-1:])
    np.testing.assert_array_equal(table[5], X[[5]])
    assert "x.npy" in repr(table)
