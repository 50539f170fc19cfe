from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.io import read_table

FRAME = pd.DataFrame(
    {
        "site": ["Ulm", "Bonn", "Ulm"],
        "x": [1.0, 2.0, 3.5],
        "y": [0.5, 1.0, 2.0],
        "w": [1, 0, 2],
        "h": [1.5, 2, 4],
    }
)


@pytest.fixture
def file(tmp_path):
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def test_columns_that_describe_the_rows_are_no_features(file):
    table = read_table(file, groups="site", weights="w", exposure="h")
    assert table.feature_names.tolist() == ["x", "y"]
    assert table.sample_names is None
    assert table.sides["groups"].tolist() == ["Ulm", "Bonn", "Ulm"]
    np.testing.assert_array_equal(table.sides["sample_weight"], [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(table.sides["exposure"], [1.5, 2.0, 4.0])
    assert "Column 'site' says the group of each row (2 different ones)." in table.assumptions


def test_without_them_there_are_no_sides(file):
    assert read_table(file, drop=["site"]).sides == {}


def test_columns_of_the_cells_of_an_h5ad_file(tmp_path):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"batch": ["b", "a"], "n": [2.0, 1.0]}, index=["c0", "c1"])
    anndata.AnnData(np.ones((2, 2)), obs=obs).write_h5ad(tmp_path / "t.h5ad")
    table = read_table(tmp_path / "t.h5ad", groups="batch", weights="n")
    assert table.shape == (2, 2)
    assert table.sides["groups"].tolist() == ["b", "a"]
    assert table.sides["sample_weight"].tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"weights": "site"}, "Expected numbers in column 'site' of .*row 1 has 'Ulm'"),
        ({"weights": "nothing", "groups": "site"}, "'nothing'"),
        (
            {"weights": "w", "transpose": True, "drop": ["site"], "id_column": "none"},
            "row per sample|numbers",
        ),
    ],
)
def test_refusals_are_sentences(file, options, sentence):
    with pytest.raises(DataError, match=sentence):
        read_table(file, **options)


def test_an_empty_cell_has_its_line(tmp_path):
    (tmp_path / "t.csv").write_text("x,y,w\n1,2,1\n3,4,\n")
    with pytest.raises(DataError, match="line 3 has nothing there"):
        read_table(tmp_path / "t.csv", weights="w")


def test_the_name_of_a_column_is_text(file):
    with pytest.raises(ParameterError, match="Expected groups to be the name of a column"):
        read_table(file, groups=3)


def test_a_later_table_may_lack_them(tmp_path):
    FRAME[["x", "y"]].to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv", groups="site", weights="w", strict=False).sides == {}
