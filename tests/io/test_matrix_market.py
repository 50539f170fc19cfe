from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from sparsevae import read_table
from sparsevae.exceptions import DataError

from .helpers import VALUES, write

MATRIX = "%%MatrixMarket matrix coordinate real general\n% a comment\n3 3 3\n"


def test_matrix_market_stays_sparse_and_may_be_turned(tmp_path):
    mmwrite(tmp_path / "t.mtx", sparse.coo_matrix(VALUES.T))
    names = write(tmp_path / "names.txt", "a\nb\nc\n")
    table = read_table(tmp_path / "t.mtx", transpose=True, feature_names=names)
    assert sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), VALUES)
    assert list(table.feature_names) == ["a", "b", "c"]
    with pytest.raises(DataError, match="Expected 4 feature names"):
        read_table(tmp_path / "t.mtx", feature_names=names)


def test_sizes_of_a_text_matrix_are_compared_with_the_memory(tmp_path):
    for kind, sizes in (("array", "10000000 10000000"), ("coordinate", "3 3 99999999999999")):
        write(tmp_path / "t.mtx", f"%%MatrixMarket matrix {kind} real general\n{sizes}\n")
        with pytest.raises(DataError, match="fits into memory"):
            read_table(tmp_path / "t.mtx")


@pytest.mark.parametrize(
    "body,line",
    [
        ("1 1 2\0\n2 2 3\n3 3 1\n", 4),  # a crash of the library that reads it
        ("1 1 2\n2 2 3\n3 3 1 9\n", 6),  # whose last field it would leave out
        ("1 1 2\n2 2 \x8a\n3 3 1\n", 5),
        ("1 1 2\n2 2 3\n3 3\n", 6),
        ("1 1 2\n-2 2 3\n3 3 1\n", 5),
        ("1 1 2\n2 2 3\n3 3 1\t", 6),  # a crash too
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_of_a_text_matrix_that_is_no_entry_is_refused(tmp_path, body, line, packed):
    content = (MATRIX + body).encode("latin-1")
    path = tmp_path / ("t.mtx.gz" if packed else "t.mtx")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError, match=f"line {line} is something else"):
        read_table(path)


@pytest.mark.parametrize(
    "kind,body",
    [
        ("coordinate real", "1 1 1.5\r\n  2\t2 -3e-1\n\n3 3 1"),
        ("coordinate integer", "1 1 2\n2 2 3\n3 3 1\n"),
        ("coordinate pattern", "1 1\n2 2\n3 3\n"),
    ],
)
def test_text_matrices_of_every_kind_are_read(tmp_path, kind, body):
    path = write(tmp_path / "t.mtx", f"%%MatrixMarket matrix {kind} general\n3 3 3\n{body}")
    assert read_table(path).X.nnz == 3
    values = "".join(f"{v}\n" for v in VALUES.T.ravel())
    dense = write(tmp_path / "d.mtx", f"%%MatrixMarket matrix array real general\n4 3\n{values}")
    np.testing.assert_array_equal(read_table(dense).X, VALUES)
