from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse


@pytest.fixture
def dense():
    return np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)


@pytest.fixture
def counts():
    table = np.random.default_rng(1).poisson(0.4, size=(300, 7)).astype(np.float32)
    table[17] = 0.0
    return table


@pytest.fixture
def make_source(tmp_path, dense, counts):
    """One table on disk of each kind by name, and what it holds."""

    def make(kind):
        return _WRITERS[kind](tmp_path, dense, counts)

    return make


def _npy(folder, dense, counts):
    np.save(folder / "x.npy", dense)
    return folder / "x.npy", dense


def _mapped(folder, dense, counts):
    return np.load(_npy(folder, dense, counts)[0], mmap_mode="r"), dense


def _mapped_columns(folder, dense, counts):
    return _mapped(folder, dense, counts)[0][10:, 2:5], dense[10:, 2:5]


def _by_columns(folder, dense, counts):
    np.save(folder / "f.npy", np.asfortranarray(dense))
    return np.load(folder / "f.npy", mmap_mode="r"), dense


def _anndata(folder, X, ending):
    anndata = pytest.importorskip("anndata")
    path = folder / f"cells{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the version of the format that zarr will write next
        getattr(anndata.AnnData(X), "write_h5ad" if ending == ".h5ad" else "write_zarr")(path)
    return path


def _h5ad(folder, dense, counts):
    return _anndata(folder, dense, ".h5ad"), dense


def _h5ad_sparse(folder, dense, counts):
    return _anndata(folder, sparse.csr_matrix(counts), ".h5ad"), counts


def _zarr(folder, dense, counts):
    return _anndata(folder, dense, ".zarr"), dense


def _zarr_sparse(folder, dense, counts):
    return _anndata(folder, sparse.csr_matrix(counts), ".zarr"), counts


def _backed(folder, dense, counts):
    anndata = pytest.importorskip("anndata")
    return anndata.read_h5ad(_h5ad_sparse(folder, dense, counts)[0], backed="r").X, counts


def _backed_dense(folder, dense, counts):
    anndata = pytest.importorskip("anndata")
    return anndata.read_h5ad(_h5ad(folder, dense, counts)[0], backed="r").X, dense


def _frame(dense):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(dense, columns=list("abcdefg"))


def _parquet(folder, dense, counts):
    pytest.importorskip("pyarrow")
    _frame(dense).to_parquet(folder / "x.parquet", row_group_size=64)
    return folder / "x.parquet", dense


def _parquet_folder(folder, dense, counts):
    pytest.importorskip("pyarrow")
    (folder / "parts").mkdir()
    _frame(dense)[:100].to_parquet(folder / "parts" / "a.parquet", row_group_size=64)
    _frame(dense)[100:].to_parquet(folder / "parts" / "b.parquet", row_group_size=64)
    return folder / "parts", dense


def _dask(folder, dense, counts):
    return pytest.importorskip("dask.array").from_array(dense, chunks=(64, 3)), dense


def _npz_parts(folder, dense, counts):
    (folder / "npz").mkdir()
    sparse.save_npz(folder / "npz" / "0.npz", sparse.csr_matrix(counts[:120]))
    sparse.save_npz(folder / "npz" / "1.npz", sparse.csr_matrix(counts[120:]))
    return folder / "npz", counts


class _Slices:
    """The least that a table of one's own needs."""

    def __init__(self, table):
        self.table, self.shape, self.dtype = table, table.shape, table.dtype

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self.table[rows]


def _object(folder, dense, counts):
    return _Slices(dense), dense


def _h5py_dataset(folder, dense, counts):
    file = pytest.importorskip("h5py").File(folder / "x.h5", "w")
    return file.create_dataset("x", data=dense, chunks=(50, 7), compression="gzip"), dense


def _zarr_array(folder, dense, counts):
    array = pytest.importorskip("zarr").create_array(folder / "a.zarr", data=dense, chunks=(40, 4))
    return array, dense


def _group(folder, dense, counts):
    return pytest.importorskip("h5py").File(_h5ad_sparse(folder, dense, counts)[0], "r")["X"], counts


_WRITERS = {
    "h5py dataset": _h5py_dataset,
    "zarr array": _zarr_array,
    "group": _group,
    "npy": _npy,
    "mapped": _mapped,
    "mapped columns": _mapped_columns,
    "mapped by columns": _by_columns,
    "h5ad": _h5ad,
    "h5ad sparse": _h5ad_sparse,
    "zarr": _zarr,
    "zarr sparse": _zarr_sparse,
    "backed": _backed,
    "backed dense": _backed_dense,
    "parquet": _parquet,
    "parquet folder": _parquet_folder,
    "dask": _dask,
    "npz parts": _npz_parts,
    "object": _object,
}
KINDS = sorted(_WRITERS)


def pytest_generate_tests(metafunc):
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", KINDS)
