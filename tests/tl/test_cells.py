"""AnnData and MuData in and out."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import anndata
import mudata
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sparsevae
from sparsevae import Run, SparseVAE
from sparsevae.exceptions import ConvergenceWarning, DataError, ParameterError
from sparsevae.tl import load_model, project, report, sparse_vae

from ..cli.helpers import invoke, refusal

QUICK = {"n_init": 1, "max_epochs": 3, "recipe": "paper", "hidden_sizes": (5,), "random_state": 0}

pytestmark = [
    pytest.mark.filterwarnings("ignore::sparsevae.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Cannot join columns with the same name:UserWarning"),
]


def make_cells(n=50, genes=8, seed=0, **obs):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(np.exp(0.8 * rng.standard_normal((n, 1)) + 0.5), size=(n, genes)).astype(np.float32)
    counts[:, 0] += 1
    return anndata.AnnData(
        sparse.csr_matrix(np.log1p(counts)),
        obs=pd.DataFrame({"batch": ["a", "b"] * (n // 2), **obs}, index=[f"cell{i}" for i in range(n)]),
        var=pd.DataFrame({"good": np.arange(genes) % 2 == 0}, index=[f"G{j}" for j in range(genes)]),
        layers={"counts": sparse.csr_matrix(counts)},
    )


@pytest.fixture(scope="module")
def fitted():
    cells = make_cells()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert sparse_vae(cells, 2, layer="counts", **QUICK) is None
    return cells


# -- fitting -------------------------------------------------------------------------------------------------


def test_batches_are_groups_of_the_fit():
    cells = make_cells()
    sparse_vae(cells, 2, layer="counts", batch_key="batch", **QUICK)
    likelihood = cells.uns["sparsevae"]["params"]["likelihood"]
    model = SparseVAE(2, likelihood=likelihood, **QUICK)
    codes = model.fit_transform(cells.layers["counts"], groups=cells.obs["batch"].to_numpy())
    assert load_model(cells).groups_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(cells.obsm["X_sparsevae"], codes[:, model.active_factors_])


def test_the_result_is_that_of_the_estimator(fitted):
    counts = fitted.layers["counts"]
    model = SparseVAE(2, likelihood=fitted.uns["sparsevae"]["params"]["likelihood"], **QUICK).fit(counts)
    active = model.active_factors_
    np.testing.assert_array_equal(fitted.obsm["X_sparsevae"], model.transform(counts)[:, active])
    np.testing.assert_array_equal(fitted.varm["sparsevae"], model.effects_[:, active])
    np.testing.assert_array_equal(fitted.varm["sparsevae_mask"], model.mask_[:, active])
    np.testing.assert_array_equal(fitted.varm["sparsevae_inclusion"], model.inclusion_[:, active])
    result = fitted.uns["sparsevae"]
    assert result["factors"].tolist() == [f"sparsevae{k}" for k in active]
    np.testing.assert_array_equal(result["variance_explained"], model.variance_explained_[active])
    assert result["version"] == sparsevae.__version__
    assert set(result["verdict"]) <= {"identified", "weak", "not identified"}
    assert result["params"]["layer"] == "counts"
    assert result["params"]["n_factors"] == 2


def test_x_is_not_touched():
    cells = make_cells()
    before = cells.X.copy(), cells.layers["counts"].copy()
    sparse_vae(cells, 2, layer="counts", **QUICK)
    assert (before[0] != cells.X).nnz == 0
    assert (cells.layers["counts"] != before[1]).nnz == 0


def test_a_copy_leaves_the_original_alone():
    cells = make_cells()
    result = sparse_vae(cells, 2, layer="counts", copy=True, key_added="mine", **QUICK)
    assert not cells.obsm
    assert not cells.uns
    assert set(result.varm) == {"mine", "mine_mask", "mine_inclusion"}
    assert result.obsm["X_mine"].dtype == np.float32


@pytest.mark.parametrize("how", ["column", "mask", "highly_variable"])
def test_features_that_are_not_used_have_no_numbers(how):
    cells = make_cells()
    good = cells.var["good"].to_numpy()
    if how == "highly_variable":
        cells.var["highly_variable"] = good
    use = {"column": "good", "mask": good, "highly_variable": None}[how]
    sparse_vae(cells, 2, layer="counts", use_var=use, **QUICK)
    for name in ("sparsevae", "sparsevae_mask", "sparsevae_inclusion"):
        assert np.isnan(cells.varm[name][~good]).all()
        assert np.isfinite(cells.varm[name][good]).all()
    assert load_model(cells).feature_names().tolist() == cells.var_names[good].tolist()


def test_all_features_can_be_asked_for():
    cells = make_cells()
    cells.var["highly_variable"] = cells.var["good"]
    sparse_vae(cells, 2, layer="counts", use_var=False, **QUICK)
    assert np.isfinite(cells.varm["sparsevae"]).all()


def test_views_and_dense_matrices_give_the_same(fitted):
    counts = fitted.layers["counts"]
    dense = anndata.AnnData(counts.toarray(), obs=fitted.obs[[]], var=fitted.var[[]])
    sparse_vae(dense, 2, **QUICK)
    np.testing.assert_allclose(dense.obsm["X_sparsevae"], fitted.obsm["X_sparsevae"], atol=1e-5)
    extra = make_cells(seed=3)[:4].copy()
    extra.obs_names = ["w", "x", "y", "z"]
    larger = anndata.concat([anndata.AnnData(counts, fitted.obs[[]], fitted.var[[]]), extra], join="inner")
    view = larger[:50]
    assert view.is_view
    sparse_vae(view, 2, **QUICK)
    np.testing.assert_allclose(view.obsm["X_sparsevae"], fitted.obsm["X_sparsevae"], atol=1e-5)
    assert "X_sparsevae" not in larger.obsm


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_backed_files_are_read(fitted, tmp_path, kind):
    counts = fitted.layers["counts"]
    X = counts.toarray() if kind == "dense" else counts
    anndata.AnnData(X, obs=fitted.obs[[]], var=fitted.var[["good"]]).write_h5ad(tmp_path / "x.h5ad")
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    result = sparse_vae(backed, 2, copy=True, use_var="good", **QUICK)
    sparse_vae(backed, 2, use_var="good", **QUICK)
    np.testing.assert_array_equal(backed.obsm["X_sparsevae"], result.obsm["X_sparsevae"])
    backed.file.close()


def test_the_result_survives_the_disk(fitted, tmp_path):
    fitted.write_h5ad(tmp_path / "x.h5ad")
    again = anndata.read_h5ad(tmp_path / "x.h5ad")
    model = load_model(again)
    np.testing.assert_array_equal(
        model.transform(again.layers["counts"])[:, model.active_factors_], again.obsm["X_sparsevae"]
    )
    assert again.uns["sparsevae"]["factors"].tolist() == fitted.uns["sparsevae"]["factors"].tolist()


def test_the_page_of_a_fit_names_cells_and_takes_counts_and_batches_from_the_object(tmp_path):
    cells = make_cells()
    sparse_vae(cells, 2, layer="counts", use_var="good", batch_key="batch", **QUICK)
    written = report(cells, tmp_path / "cells.html", title="Blood")
    content = json.loads((tmp_path / "cells.json").read_text("utf-8"))
    assert written == tmp_path / "cells.html"
    assert [feature["name"] for feature in content["features"]] == ["G0", "G2", "G4", "G6"]
    assert content["source"]["n_samples"] == 50
    for factor in content["factors"]:
        assert factor["samples"]["strongest"][0]["sample"].startswith("cell")


def test_the_page_needs_an_object_with_a_fit(fitted, tmp_path):
    with pytest.raises(DataError, match="Expected a model in uns"):
        report(make_cells(), tmp_path / "none.html")
    with pytest.raises(ParameterError, match=r"sparsevae\.tl\.report\(adata, path\)"):
        load_model(fitted).report(tmp_path / "none.html", fitted)


# -- several modalities --------------------------------------------------------------------------------------


@pytest.fixture
def modalities():
    rna = make_cells()
    rna.X = rna.layers["counts"]
    protein = anndata.AnnData(
        np.random.default_rng(1).standard_normal((50, 3)),
        obs=rna.obs[[]],
        var=pd.DataFrame(index=["P0", "P1", "P2"]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mudata's own on how it will join columns
        return mudata.MuData({"rna": rna, "protein": protein})


def test_modalities_are_fitted_together(modalities):
    sparse_vae(modalities, 2, **QUICK)
    model = load_model(modalities)
    assert model.feature_names()[[0, -1]].tolist() == ["rna:G0", "protein:P2"]
    assert model.likelihood["gaussian"] == [8, 9, 10]
    n_active = len(model.active_factors_)
    assert modalities.obsm["X_sparsevae"].shape == (50, n_active)
    assert modalities.mod["rna"].varm["sparsevae"].shape == (8, n_active)
    assert modalities.mod["protein"].varm["sparsevae_mask"].shape == (3, n_active)
    views = ["rna"] * 8 + ["protein"] * 3
    assert model.feature_views().tolist() == views
    by_view = model.explained_by_view()
    np.testing.assert_allclose(
        modalities.uns["sparsevae"]["variance_by_view"]["protein"], by_view["protein"].iloc[:-1]
    )
    np.testing.assert_allclose(
        (8 * by_view["rna"] + 3 * by_view["protein"]) / 11, model.explained()["variance_explained"]
    )
    with pytest.raises(ParameterError, match="a view for each of 11 features; got 3"):
        model.explained_by_view(["a"] * 3)


def test_a_likelihood_by_modality_is_taken(modalities):
    sparse_vae(modalities, 2, likelihood={"rna": "poisson", "protein": "gaussian"}, **QUICK)
    assert load_model(modalities).likelihood["poisson"] == list(range(8))


def test_modalities_with_other_cells_are_refused(modalities):
    part = modalities.mod["protein"][:40].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = mudata.MuData({"rna": modalities.mod["rna"], "protein": part})
    with pytest.raises(DataError, match=r"'protein' has 40 of 50.*intersect_obs"):
        sparse_vae(other, 2, **QUICK)


# -- new cells -----------------------------------------------------------------------------------------------


def test_new_cells_are_projected_whatever_the_order_of_their_genes(fitted, tmp_path):
    model = load_model(fitted)
    model.save(tmp_path / "model")
    shuffled = make_cells()[:, ::-1].copy()
    for source in (fitted, model, tmp_path / "model"):
        layer = None if source is fitted else "counts"  # the object remembers its layer
        assert project(shuffled, source, layer=layer) is None
        np.testing.assert_array_equal(shuffled.obsm["X_sparsevae"], fitted.obsm["X_sparsevae"])
        assert shuffled.uns["sparsevae"]["projected"]
    result = project(make_cells(), fitted, copy=True, key_added="ref")
    np.testing.assert_array_equal(result.obsm["X_ref"], fitted.obsm["X_sparsevae"])


def test_x_can_be_asked_for_where_the_fit_had_a_layer(fitted):
    counts = make_cells()
    counts.X = counts.layers.pop("counts")
    with pytest.raises(DataError, match=r"Expected a layer 'counts'; there are no layers.*pass layer='X'"):
        project(counts, fitted)
    project(counts, fitted, layer="X")
    np.testing.assert_array_equal(counts.obsm["X_sparsevae"], fitted.obsm["X_sparsevae"])


def test_genes_that_are_missing_are_named(fitted):
    cells = make_cells()[:, 2:].copy()
    with pytest.raises(DataError, match=r"the 8 features of the fit in var_names; 2 are missing: 'G0', 'G1'"):
        project(cells, fitted)
    assert not cells.obsm


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"layer": "raw"}, "Expected a layer 'raw'; there is 'counts'"),
        ({"use_var": "hvg"}, "Expected a column 'hvg' in var; there is 'good'"),
        ({"use_var": np.zeros(8, dtype=bool)}, "with 0 chosen"),
        ({"use_var": np.ones(3, dtype=bool)}, "choose some of 8 features"),
        ({"batch_key": "donor"}, "Expected a column 'donor' in obs.*there is 'batch'"),
    ],
)
def test_what_is_not_there_is_said(options, message):
    with pytest.raises(DataError, match=message):
        sparse_vae(make_cells(), 2, **{"layer": "counts", **options}, **QUICK)


def test_cells_without_a_batch_are_refused():
    for batch in (pd.Categorical([None, "x"] * 25), np.array([np.nan, "x"] * 25, dtype=object)):
        cells = make_cells()
        cells.obs["batch"] = batch
        with pytest.raises(DataError, match=r"in obs\['batch'\]; 25 have none, the first is 'cell0'"):
            sparse_vae(cells, 2, layer="counts", batch_key="batch", **QUICK)


@pytest.mark.parametrize("key", ["", "a/b", 3, None])
def test_keys_that_no_file_can_hold_are_refused(fitted, key):
    with pytest.raises(ParameterError, match="Expected key_added to be a name without '/'"):
        sparse_vae(make_cells(), 2, layer="counts", key_added=key, **QUICK)
    with pytest.raises(ParameterError, match="key_added"):
        project(make_cells(), fitted, key_added=key)


def test_duplicate_genes_are_refused():
    cells = make_cells()
    cells.var_names = ["A", "A", *"CDEFGH"]
    with pytest.raises(DataError, match=r"got 'A' more than once. Call adata.var_names_make_unique\(\)"):
        sparse_vae(cells, 2, layer="counts", **QUICK)


def test_other_objects_and_models_without_names_are_refused(fitted):
    with pytest.raises(ParameterError, match="Expected an AnnData or MuData object; got ndarray"):
        sparse_vae(np.ones((3, 3)))
    nameless = SparseVAE(2, likelihood="poisson", **QUICK).fit(fitted.layers["counts"])
    with pytest.raises(ParameterError, match="knows the names of its features"):
        project(make_cells(), nameless)
    with pytest.raises(DataError, match=r"Expected a model in uns\['sparsevae'\].*there is nothing"):
        project(make_cells(), make_cells())
    empty = make_cells()
    empty.X = None
    with pytest.raises(DataError, match=r"Expected a matrix X; there is none. Name a layer: 'counts'"):
        sparse_vae(empty, 2)


def test_the_tools_are_reached_without_an_import_of_their_own():
    code = (
        "import sparsevae, sys; assert callable(sparsevae.tl.sparse_vae); assert 'anndata' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- command line --------------------------------------------------------------------------------------------


def test_the_command_line_writes_the_cells_with_their_factors(tmp_path):
    cells = make_cells()
    cells.write_h5ad(tmp_path / "x.h5ad")
    (tmp_path / "quick.toml").write_text('n_init = 1\nmax_epochs = 3\nrecipe = "paper"\nn_factors = 2\n')
    typed = (
        "fit",
        tmp_path / "x.h5ad",
        "--layer",
        "counts",
        "--config",
        tmp_path / "quick.toml",
        "--drop",
        "G3",
    )
    result = invoke(*typed, "--out", tmp_path / "run", "--write-h5ad", tmp_path / "new" / "out.h5ad")
    assert result.exit_code == 0, result.stderr
    out = anndata.read_h5ad(tmp_path / "new" / "out.h5ad")
    factors = pd.read_csv(tmp_path / "run" / "factors.csv", index_col=0)
    np.testing.assert_allclose(out.obsm["X_sparsevae"], factors, rtol=1e-5)
    assert np.isnan(out.varm["sparsevae"][3]).all()
    assert np.isfinite(out.varm["sparsevae"][4]).all()
    assert out.uns["sparsevae"]["verdict"].shape == (factors.shape[1],)
    project(cells, tmp_path / "run", layer="counts")
    np.testing.assert_array_equal(cells.obsm["X_sparsevae"], out.obsm["X_sparsevae"])
    project(cells, out)
    np.testing.assert_array_equal(cells.obsm["X_sparsevae"], out.obsm["X_sparsevae"])
    assert "exists. Add --force" in refusal(
        *typed, "--out", tmp_path / "b", "--write-h5ad", tmp_path / "new" / "out.h5ad"
    )
    assert "another file" in refusal(*typed, "--out", tmp_path / "b", "--write-h5ad", tmp_path / "x.h5ad")
    assert "ends in .h5ad" in refusal(*typed, "--out", tmp_path / "b", "--write-h5ad", tmp_path / "x.csv")
    assert not (tmp_path / "b").exists()


def test_the_command_line_fits_several_modalities(modalities, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        modalities.write_h5mu(tmp_path / "x.h5mu")
    (tmp_path / "quick.toml").write_text(
        'n_init = 1\nmax_epochs = 3\nrecipe = "paper"\nn_factors = 2\nhidden_sizes = [5]\n'
    )
    typed = ("fit", tmp_path / "x.h5mu", "--config", tmp_path / "quick.toml", "--drop", "rna:G3")
    result = invoke(*typed, "--out", tmp_path / "run", "--write-h5ad", tmp_path / "out.h5mu")
    assert result.exit_code == 0, result.stderr
    assert "gaussian for protein, because some values are negative" in result.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = mudata.read_h5mu(tmp_path / "out.h5mu")
    model = load_model(out)
    assert model.likelihood["gaussian"] == [7, 8, 9]
    assert model.feature_views().tolist() == ["rna"] * 7 + ["protein"] * 3
    factors = pd.read_csv(tmp_path / "run" / "factors.csv", index_col=0)
    np.testing.assert_allclose(out.obsm["X_sparsevae"], factors, rtol=1e-5)
    active = model.active_factors_
    assert np.isnan(out.mod["rna"].varm["sparsevae"][3]).all()
    np.testing.assert_array_equal(out.mod["protein"].varm["sparsevae"], model.effects_[7:, active])
    np.testing.assert_allclose(
        out.uns["sparsevae"]["variance_by_view"]["rna"], model.explained_by_view()["rna"].iloc[:-1]
    )
    again = Run.open(tmp_path / "run").factors(tmp_path / "x.h5mu")
    np.testing.assert_allclose(again, factors, rtol=1e-5)
    refused = ("--out", tmp_path / "b", "--write-h5ad", tmp_path / "b.h5ad")
    assert "ends in .h5mu, as the table does; got b.h5ad" in refusal(*typed, *refused)
