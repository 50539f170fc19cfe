"""The page on scanpy runs, on real blood cells."""

from __future__ import annotations

from pathlib import Path

import anndata
import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ..docs.helpers import blocks, run

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "scanpy.md"

# What scanpy, umap and numba say of their own future is not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_page_runs_and_finds_the_b_cells(real_data, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    folder = real_data("pbmc3k")
    cells, genes = (pd.read_csv(folder / name, index_col=0) for name in ("cells.csv", "genes.csv"))
    counts = sparse.csr_matrix(sparse.load_npz(folder / "counts.npz"))[::3].astype(np.float32)
    adata = anndata.AnnData(counts, obs=cells.iloc[::3], var=genes.set_index("symbol"))
    adata.var_names_make_unique()
    adata.write_h5ad(tmp_path / "pbmc3k.h5ad")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "scanpy-page"}
    printed = [run(code, names) for code in blocks(PAGE.read_text("utf-8"), "python")]
    fitted = names["adata"]
    assert fitted.obsm["X_sparsevae"].shape[0] == fitted.n_obs
    assert np.isnan(fitted.varm["sparsevae"][~fitted.var["highly_variable"]]).all()
    top = dict(line.split(maxsplit=1) for line in printed[1].splitlines()[1:])
    strongest = names["marks"].iloc[0]
    assert strongest["pvals_adj"] < 1e-6
    # Genes of B cells, among those that are variable here.
    assert set(top[strongest["names"]].split(", ")) & {"HVCN1", "IRF8", "HLA-DMB", "CD79A", "MS4A1"}
    assert "100 cells projected" in printed[-1]
