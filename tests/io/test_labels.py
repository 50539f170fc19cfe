from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.exceptions import DataError
from sparsevae.io import read_labels

FRAME = pd.DataFrame({"id": ["p", "q", "r"], "x": [1.0, 2.0, 3.0], "site": ["Ulm", "Köln", "Ulm"]})


def test_a_column_of_text_beside_other_columns_of_text(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    assert read_labels(tmp_path / "t.csv", "site").tolist() == ["Ulm", "Köln", "Ulm"]
    assert read_labels(str(tmp_path / "t.csv"), "x").tolist() == ["1.0", "2.0", "3.0"]


def test_columns_of_other_formats(tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.to_parquet(tmp_path / "t.parquet")
    assert read_labels(tmp_path / "t.parquet", "site").tolist() == ["Ulm", "Köln", "Ulm"]


def test_a_column_of_the_cells_of_an_h5ad_file(tmp_path):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(np.ones((2, 2)), obs=pd.DataFrame({"batch": ["b", "a"]}, index=["c0", "c1"]))
    cells.write_h5ad(tmp_path / "t.h5ad")
    assert read_labels(tmp_path / "t.h5ad", "batch").tolist() == ["b", "a"]
    with pytest.raises(DataError, match=r"Expected a column 'donor' in .*; there is none\. Give its name"):
        read_labels(tmp_path / "t.h5ad", "donor")


def test_a_column_that_is_not_there_or_not_filled_is_refused(tmp_path):
    FRAME.assign(site=["Ulm", "NA", "Ulm"]).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match=r"Expected a column 'wave' in .*; there is none"):
        read_labels(tmp_path / "t.csv", "wave")
    with pytest.raises(DataError, match=r"column 'site' in every row of .*; line 3 has nothing there"):
        read_labels(tmp_path / "t.csv", "site")


def test_a_file_without_names_is_refused(tmp_path):
    np.save(tmp_path / "t.npy", np.ones((2, 2)))
    with pytest.raises(DataError, match="its columns have no names"):
        read_labels(tmp_path / "t.npy", "site")
