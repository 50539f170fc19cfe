"""MuData files, written by mudata."""

from __future__ import annotations

import warnings
from dataclasses import replace

import anndata
import mudata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae.exceptions import DataError
from sparsevae.io import read_table
from sparsevae.io.suggestion import suggest_by_view, suggest_for_table

COUNTS = np.random.default_rng(0).poisson(0.5, size=(12, 4)).astype(np.float32)
LEVELS = np.random.default_rng(1).standard_normal((12, 2)).astype(np.float32)


def write(path, rna=None, protein=None):
    cells = pd.DataFrame({"batch": list("ab") * 6}, index=[f"c{i}" for i in range(12)])
    first = anndata.AnnData(
        sparse.csr_matrix(np.log1p(COUNTS)), obs=cells, var=pd.DataFrame(index=list("ABCD")),
        layers={"counts": sparse.csr_matrix(COUNTS)},
    )  # fmt: skip
    second = anndata.AnnData(LEVELS, obs=cells[[]], var=pd.DataFrame(index=["A", "P"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mudata's own on how it will join columns
        modalities = {"rna": (rna or (lambda x: x))(first), "protein": (protein or (lambda x: x))(second)}
        mudata.MuData(modalities).write_h5mu(path)
    return path


def test_modalities_stand_side_by_side(tmp_path):
    table = read_table(write(tmp_path / "x.h5mu"), layer="counts")
    assert table.feature_names.tolist() == ["rna:A", "rna:B", "rna:C", "rna:D", "protein:A", "protein:P"]
    assert table.views == ["rna"] * 4 + ["protein"] * 2
    np.testing.assert_array_equal(table.X.toarray(), np.hstack([COUNTS, LEVELS]))
    assert table.sample_names[:2].tolist() == ["c0", "c1"]
    assert "Modalities and their features: rna 4 (layer counts), protein 2." in table.assumptions
    without = read_table(tmp_path / "x.h5mu", drop="rna:B,protein:A", groups="batch")
    assert without.views == ["rna"] * 3 + ["protein"]
    np.testing.assert_allclose(without.X.toarray()[:, 0], np.log1p(COUNTS[:, 0]))
    assert without.sides["groups"].tolist() == list("ab") * 6
    assert any("there are also the layers counts" in note for note in without.assumptions)


def test_each_view_has_the_likelihood_of_its_values(tmp_path):
    table = read_table(write(tmp_path / "x.h5mu"), layer="counts")
    likelihood, words = suggest_by_view(table.X, table.views)
    assert likelihood["gaussian"] == [4, 5]
    assert len(likelihood) == 2
    assert "gaussian for protein, because some values are negative" in words
    alone, _ = suggest_by_view(table.X[:, 4:], ["one", "two"])
    assert alone == "gaussian"
    assert suggest_for_table(table) == (likelihood, words)
    whole, words = suggest_for_table(replace(table, views=None))
    assert whole == "gaussian"
    assert words == "gaussian, because some values are negative"


def test_what_is_not_there_is_said(tmp_path):
    path = write(tmp_path / "x.h5mu")
    with pytest.raises(DataError, match=r"a layer 'raw' in a modality of .*; there is counts"):
        read_table(path, layer="raw")
    with pytest.raises(DataError, match="a column 'donor'"):
        read_table(path, groups="donor")
    other = write(tmp_path / "other.h5mu", protein=lambda cells: cells[:9].copy())
    with pytest.raises(DataError, match="the same cells in every modality; 'protein' has 9 of 12"):
        read_table(other)

    def emptied(cells):
        cells.X = None
        return cells

    with pytest.raises(DataError, match=r"modality 'rna' of .* to have a matrix X; it has none"):
        read_table(write(tmp_path / "empty.h5mu", rna=emptied))
    (tmp_path / "broken.h5mu").write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataError, match="to be an H5MU file"):
        read_table(tmp_path / "broken.h5mu")
