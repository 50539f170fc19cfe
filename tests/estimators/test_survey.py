from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.exceptions import ParameterError

from ..cli.helpers import invoke, refusal


@pytest.fixture(scope="module")
def survey(linear_model):
    """Two correlated scales of three items, one of them reversed; and an item of nothing."""
    rng = np.random.default_rng(2)
    z = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], 3000)
    loadings = np.array([[0.8, 0], [0.7, 0], [-0.6, 0], [0, 0.8], [0, 0.7], [0, 0.6], [0, 0]])
    noise = rng.standard_normal((3000, 7)) * np.sqrt(1 - (loadings**2).sum(1))
    X = pd.DataFrame(z @ loadings.T + noise, columns=[f"item {j}" for j in range(7)])
    X = (X - X.mean()) / X.std()
    model = linear_model(X, z, loadings)
    return model, X, loadings


def test_the_table_has_what_papers_print(survey):
    model, _, loadings = survey
    table = model.survey_table(cut=0.0, sort=False)
    factors = model.loadings().columns
    items = table.iloc[:7]
    np.testing.assert_allclose(np.abs(items[factors]).sort_index(axis=1), np.abs(loadings), atol=0.06)
    assert (items[factors].to_numpy() == 0).sum() == 8
    np.testing.assert_allclose(items["communality"] + items["uniqueness"], 1.0)
    np.testing.assert_allclose(items["complexity"][:6], 1.0)
    np.testing.assert_allclose(table.loc["sum of squares", factors], np.square(items[factors]).sum())
    np.testing.assert_allclose(
        table.loc["proportion of variance", factors], np.square(items[factors]).sum() / 7
    )


def test_small_loadings_are_left_empty_and_features_sorted(survey):
    model, *_ = survey
    table = model.survey_table(cut=0.65)
    assert table.index[-3:].tolist() == ["item 6", "sum of squares", "proportion of variance"]
    items, every = (t.iloc[:7][model.loadings().columns] for t in (table, model.survey_table(cut=0.0)))
    assert 0 < items.notna().sum().sum() == (every.abs() >= 0.65).sum().sum() < every.notna().sum().sum()
    first = table.iloc[:3][model.loadings().columns[0]]
    assert np.isfinite(first.iloc[0])
    with pytest.raises(ParameterError, match="cut"):
        model.survey_table(cut=3)


def test_correlations_and_reliabilities_have_names(survey):
    model, X, _ = survey
    model.name_factors({0: "zeal"})
    correlation = model.factor_correlation()
    assert correlation.index[0] == correlation.columns[0] == "zeal"
    np.testing.assert_allclose(np.diag(correlation), 1.0)
    reliability = model.reliability(X)
    assert reliability.index[0] == "zeal"
    assert reliability["n_features"].tolist() == [3, 3]
    expected = 2.1**2 / (2.1**2 + 3 - 0.64 - 0.49 - 0.36)
    np.testing.assert_allclose(reliability["omega"], expected, atol=0.03)
    np.testing.assert_allclose(reliability["alpha"], expected, atol=0.04)
    assert "alpha" not in model.reliability()
    model.name_factors({0: None})


def test_a_model_that_fits_leaves_no_correlations(survey):
    model, X, _ = survey
    residuals = model.residual_correlations(X)
    assert residuals.index.tolist() == X.columns.tolist()
    np.testing.assert_allclose(np.diag(residuals), 0.0)
    within = residuals.iloc[:3, :3].to_numpy()
    assert np.abs(within).max() < 0.06
    shuffled = X.apply(lambda column: np.random.default_rng(int(column.name[-1])).permutation(column))
    assert model.srmr(X) < 0.13 < 0.2 < model.srmr(shuffled)


def test_empty_answers_leave_correlations_and_alphas_of_those_that_are_there(survey):
    model, X, _ = survey
    holes = X.mask(np.random.default_rng(0).uniform(size=X.shape) < 0.1)
    assert model.srmr(holes) == pytest.approx(model.srmr(X), abs=0.01)
    np.testing.assert_allclose(model.reliability(holes)["alpha"], model.reliability(X)["alpha"], atol=0.02)
    pair = holes[["item 0", "item 3"]].dropna()
    holes["item 6"] = 2.0
    residuals = model.residual_correlations(holes) - model.residual_correlations(X)
    expected = pair.corr().iloc[0, 1] - X[["item 0", "item 3"]].corr().iloc[0, 1]
    assert residuals.loc["item 0", "item 3"] == pytest.approx(expected, abs=0.01)
    assert np.isfinite(residuals).all(axis=None)


def test_a_fit_without_factors_has_empty_tables(linear_model):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    model = linear_model(X, rng.standard_normal((40, 1)), np.zeros((3, 1)))
    assert model.survey_table().shape == (5, 3)
    assert model.reliability().empty
    assert model.factor_correlation().empty


def test_the_tables_go_to_a_workbook(tmp_path):
    rng = np.random.default_rng(3)
    values = rng.standard_normal((40, 1)) * [1.0, 2.0, -1.0] + 0.3 * rng.standard_normal((40, 3))
    pd.DataFrame(values, columns=["=1+1", "b", "c"]).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "quick.toml").write_text('n_init = 1\nmax_epochs = 4\nn_factors = 2\nrecipe = "paper"\n')
    typed = ("fit", tmp_path / "t.csv", "--config", tmp_path / "quick.toml", "--excel", tmp_path / "out.xlsx")
    result = invoke(*typed, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    sheets = pd.read_excel(tmp_path / "out.xlsx", sheet_name=None, index_col=0)
    assert list(sheets) == [
        "loadings",
        "explained",
        "correlations",
        "reliability",
        "verdicts",
        "effects",
        "factors",
    ]
    assert "=1+1" in sheets["loadings"].index
    factors = pd.read_csv(tmp_path / "run" / "factors.csv", index_col=0)
    np.testing.assert_allclose(sheets["factors"], factors, rtol=1e-5)
    assert "exists. Add --force" in refusal(*typed, "--out", tmp_path / "b")
    # A run that is there, and whose factors have got names since.
    assert invoke("name", tmp_path / "run", "0==2+2").exit_code == 0
    again = ("report", tmp_path / "run", "-o", tmp_path / "page.html", "--excel", tmp_path / "again.xlsx")
    assert invoke(*again).exit_code == 0
    named = pd.read_excel(tmp_path / "again.xlsx", sheet_name=None, index_col=0)
    assert list(named) == list(sheets)
    assert named["factors"].columns[0] == named["verdicts"].index[0] == "=2+2"
    np.testing.assert_allclose(named["factors"], sheets["factors"], rtol=1e-5)
    np.testing.assert_array_equal(named["loadings"], sheets["loadings"])
    assert "exists. Add --force" in refusal(*again[:3], tmp_path / "new.html", *again[4:])
    assert "ends in .xlsx" in refusal("fit", tmp_path / "t.csv", "--out", tmp_path / "b", "--excel", "x.csv")
