from __future__ import annotations

import gzip

import pytest

from sparsevae.exceptions import DataError
from sparsevae.io.gene_sets import read_gmt

GMT = "T cells\thttp://x\tCD3D\tCD3E\t\nB cells\t\tMS4A1\tCD79A,1.0\n\n"


def test_a_gmt_file_is_read_plain_and_packed(tmp_path):
    (tmp_path / "sets.gmt").write_text(GMT)
    (tmp_path / "sets.gmt.gz").write_bytes(gzip.compress(GMT.encode()))
    expected = {"T cells": ["CD3D", "CD3E"], "B cells": ["MS4A1", "CD79A"]}
    assert read_gmt(tmp_path / "sets.gmt") == expected
    assert read_gmt(str(tmp_path / "sets.gmt.gz")) == expected


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "the file is empty"),
        (b"T cells,CD3D,CD3E\n", "a name, a description and genes with tabs"),
        (b"T\tx\n", "line 1"),
        (b"T\tx\tA\nT\tx\tB\n", "has 'T' twice, again in line 2"),
        (b"T\tx\tA\xe9\n", "UTF-8"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, content, message):
    (tmp_path / "sets.gmt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_gmt(tmp_path / "sets.gmt")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="Expected a GMT file at"):
        read_gmt(tmp_path / "sets.gmt")
