"""Missing values: left out of likelihoods, codes and scores, and filled in by the model."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.exceptions import ConvergenceWarning

from ..tables import MIXED, make_table

ESTIMATORS = {
    "SparseVAE": (SparseVAE, {"recipe": "paper"}),
    "VAE": (VAE, {}),
    "VSC": (VSC, {}),
    "OIVAE": (OIVAE, {}),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
TINY = {"n_factors": 2, "hidden_sizes": (5,), "max_epochs": 4, "random_state": 0}


def fit(model, X, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **more)


def make(name, **options):
    kind, own = ESTIMATORS[name]
    return kind(**{**TINY, **own, **options})


def punch(X, fraction=0.2, seed=0):
    """A table with holes, and where they are."""
    X = np.array(X, dtype=float)
    holes = np.random.default_rng(seed).uniform(size=X.shape) < fraction
    return np.where(holes, np.nan, X), holes


@every_estimator
def test_every_likelihood_takes_holes(name, likelihood):
    table = make_table(likelihood)
    X, holes = punch(table)
    spec = MIXED if likelihood == "mixed" else likelihood
    X = pd.DataFrame(X, columns=table.columns) if likelihood == "mixed" else X
    model = fit(make(name, likelihood=spec), X)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.masked_score(X))
    filled = np.asarray(model.impute(X))
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~holes], np.asarray(table)[~holes])
    draws = model.impute(X, n_draws=2, random_state=0)
    assert draws.shape == (2, *holes.shape)
    np.testing.assert_array_equal(draws[:, ~holes], np.stack(2 * [np.asarray(table)[~holes]]))
    assert (draws[0][holes] != draws[1][holes]).any()
    if likelihood in ("ordinal", "categorical"):
        assert np.isin(draws, np.unique(np.asarray(table))).all()


@every_estimator
def test_what_stands_in_a_hole_does_not_matter(name):
    X, holes = punch(make_table())
    first = fit(make(name), X)
    second = fit(make(name), np.where(holes, 1e6, X), observed=~holes)
    np.testing.assert_array_equal(first.transform(X), second.transform(X))
    np.testing.assert_array_equal(
        first.score_samples(X), first.score_samples(np.where(holes, -7.0, X), observed=~holes)
    )
    masked = np.ma.masked_array(np.where(holes, 5.0, X), holes)
    np.testing.assert_array_equal(fit(make(name), masked).transform(masked), first.transform(X))


def test_pandas_na_is_missing():
    X, _ = punch(make_table("poisson"))
    frame = pd.DataFrame(X).astype("Int64").rename(columns=str)
    assert frame.isna().any(axis=None)
    plain = fit(make("SparseVAE", likelihood="poisson"), X).transform(X)
    np.testing.assert_array_equal(fit(make("SparseVAE", likelihood="poisson"), frame).transform(frame), plain)


def test_zeros_of_a_sparse_table_stay_zeros_unless_a_mask_says_otherwise():
    X = make_table("poisson")
    observed = np.random.default_rng(0).uniform(size=X.shape) < 0.8
    options = {"likelihood": "poisson"}
    whole = fit(make("VAE", **options), sparse.csr_array(X))
    np.testing.assert_array_equal(whole.transform(X), fit(make("VAE", **options), X).transform(X))
    holed = fit(make("VAE", **options), sparse.csr_array(X), observed=observed)
    expected = fit(make("VAE", **options), np.where(observed, X, np.nan))
    np.testing.assert_allclose(
        holed.transform(sparse.csr_array(X), observed=observed),
        expected.transform(np.where(observed, X, np.nan)),
        atol=1e-5,
    )


def test_a_row_gets_the_same_codes_beside_rows_with_holes(fitted, make_table):
    X, _ = punch(make_table())
    X[0] = make_table()[0]
    model = fitted()
    np.testing.assert_array_equal(model.transform(X)[:1], model.transform(make_table()[:1]))
    np.testing.assert_allclose(model.transform(X)[5:9], model.transform(X[5:9]), rtol=1e-6)
    np.testing.assert_array_equal(model.score_samples(X)[:1], model.score_samples(make_table()[:1]))


def test_the_score_of_a_hole_is_that_of_the_others_alone(trained, make_table):
    """With no factor the features are independent: leaving cells out takes their terms off the score."""
    X = make_table(n_samples=200)
    model = trained()
    holes = np.zeros(X.shape, dtype=bool)
    holes[:, 1] = True
    scores = model.score_samples(X, observed=~holes)
    assert np.isfinite(scores).all()
    nothing = model.score_samples(X[:3], observed=np.zeros((3, 7), dtype=bool))
    np.testing.assert_allclose(nothing, 0.0, atol=0.05)


def test_imputation_beats_the_mean_where_features_share_factors():
    data = make_anchored_factors(400, 12, 2, nonlinear_share=0.0, random_state=0)
    X, holes = punch(data.X, 0.15)
    options = {"max_epochs": 150, "hidden_sizes": (), "n_init": 1, "learning_rate": 0.02}
    model = fit(SparseVAE(2, random_state=0, **options), X)
    error = np.square(model.impute(X) - data.X)[holes].mean()
    of_means = np.square(np.nanmean(X, 0) - data.X)[holes].mean()
    assert error < 0.6 * of_means
    spread = model.impute(X, n_draws=60, random_state=0).std(0)[holes]
    np.testing.assert_allclose(np.square(spread).mean(), error, rtol=0.35)


def test_masked_score_prefers_the_model_with_the_factors():
    data = make_anchored_factors(400, 12, 2, nonlinear_share=0.0, random_state=0)
    options = {"max_epochs": 80, "hidden_sizes": (), "random_state": 0, "learning_rate": 0.02}
    scores = [fit(VAE(k, **options), data.X).masked_score(data.X, fraction=0.2) for k in (1, 2)]
    assert scores[1] > scores[0] + 0.05
    model = fit(VAE(1, **options), data.X)
    assert model.masked_score(data.X) == model.masked_score(data.X, random_state=0)
    with pytest.raises(ValueError, match="Expected some cells to hide; got none at fraction=0"):
        model.masked_score(data.X, fraction=0.0)


def test_a_data_frame_is_filled_as_a_data_frame(fitted, make_table):
    frame = make_table("mixed")
    frame.index = [f"row {i}" for i in range(len(frame))]
    holed = frame.mask(np.random.default_rng(0).uniform(size=frame.shape) < 0.2)
    filled = fitted("mixed").impute(holed)
    assert filled.index.equals(frame.index)
    assert filled.columns.equals(frame.columns)
    pd.testing.assert_frame_equal(filled.where(holed.notna()), holed.astype(float))


def test_a_model_with_holes_is_read_back(tmp_path):
    X, _ = punch(make_table())
    for name, (kind, _) in ESTIMATORS.items():
        model = fit(make(name), X)
        again = kind.load(model.save(tmp_path / name))
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
        np.testing.assert_array_equal(again.impute(X), model.impute(X))


def test_everything_about_a_fit_copes_with_holes():
    data = make_anchored_factors(150, 12, 2, random_state=0)
    X, _ = punch(data.X, 0.15)
    model = fit(SparseVAE(3, random_state=0, max_epochs=40, n_init=1, hidden_sizes=(8,)), X)
    certificate = model.identifiability(X)
    assert len(certificate.table) == len(model.active_factors_)
    assert np.isfinite(model.communalities_).all()
    assert np.isfinite(model.effects_).all()
    evidence = model.evidence(X)
    for curves in evidence["curves"].values():
        for curve in curves:
            assert len(curve["at"]) == len(curve["points"])
            assert None not in curve["points"]


def test_nmf_reconstructs_what_is_missing():
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(150, 2)) @ rng.gamma(1.0, size=(2, 8))
    holed, holes = punch(X)
    model = NMF(2, alpha=0.0, random_state=0).fit(holed)
    assert np.square(model.reconstruct(holed) - X)[holes].mean() < 0.02 * X.var()
    filled = model.impute(pd.DataFrame(holed)).to_numpy()
    np.testing.assert_array_equal(filled, np.where(holes, model.reconstruct(holed), X))
    whole = ~holes.any(1)
    np.testing.assert_allclose(model.transform(holed)[whole], model.transform(X[whole]), rtol=1e-6, atol=1e-9)
    assert np.isfinite(model.score(holed))
    np.testing.assert_array_equal(
        model.score_samples(np.where(holes, 3.0, X), observed=~holes), model.score_samples(holed)
    )


@every_estimator
def test_informative_absence_is_modelled_beside_the_table(name, tmp_path):
    X, _ = punch(make_table())
    X[:, 0] = make_table()[:, 0]
    model = fit(make(name, missing="informative"), X)
    assert model.module_.n_features == 7 + 6
    assert model.feature_names()[7:].tolist() == [f"x{j} is missing" for j in range(1, 7)]
    assert model.effects().shape[0] == 13
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.masked_score(X))
    assert model.impute(X).shape == X.shape
    assert model.impute(X, n_draws=2).shape == (2, *X.shape)
    assert model.sample(3, random_state=0).shape == (3, 7)
    assert model.reconstruct(X).shape == X.shape
    again = type(model).load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_allclose(model.transform(sparse.csr_array(X)), model.transform(X), atol=1e-5)


def test_absence_that_tells_of_a_factor_helps_to_find_it():
    rng = np.random.default_rng(0)
    z = rng.normal(size=400)
    X = z[:, None] * np.linspace(0.6, 1.2, 6) + rng.normal(size=(400, 6))
    X[:, 1:][rng.uniform(size=(400, 5)) < 1.0 / (1.0 + np.exp(2.5 - 2.5 * z[:, None]))] = np.nan
    options = {"max_epochs": 120, "hidden_sizes": (), "random_state": 0, "learning_rate": 0.02}
    found = [fit(VAE(1, missing=m, **options), X).transform(X)[:, 0] for m in ("ignorable", "informative")]
    plain, informed = (abs(np.corrcoef(values, z)[0, 1]) for values in found)
    assert informed > plain + 0.02
    with pytest.warns(UserWarning, match="nothing to model: the table has no missing value"):
        fit(VAE(1, missing="informative", max_epochs=1), make_table())
