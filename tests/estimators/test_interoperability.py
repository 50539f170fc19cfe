"""Data frames, pipelines, searches, clones and pickles: what scikit-learn's users expect to work."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsevae
from sparsevae import SparseVAE

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

COLUMNS = list("abcdefg")
TEXTS = [
    "the cat chased the mouse and the cat slept",
    "a dog and a cat played with the mouse",
    "stocks fell as the bank raised rates",
    "the bank cut rates and stocks rose",
    "the mouse ran from the cat",
    "rates and stocks moved with the bank",
]


# -- data frames --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_data_frames_give_the_same_model_as_arrays_and_keep_their_names(fit, make_model, make_table, library):
    X = make_table()
    frame = library.DataFrame(dict(zip(COLUMNS, X.T, strict=True)))
    model = fit(make_model(), frame)
    np.testing.assert_array_equal(model.mask_, fit(make_model(), X).mask_)
    np.testing.assert_array_equal(model.feature_names_in_, COLUMNS)
    assert list(model.loadings().index) == COLUMNS
    assert list(model.effects().index) == COLUMNS
    np.testing.assert_array_equal(model.transform(frame), fit(make_model(), X).transform(X))


def test_features_without_names_are_counted(fitted):
    model = fitted()
    assert not hasattr(model, "feature_names_in_")
    assert list(model.loadings().index) == [f"x{j}" for j in range(7)]


@pytest.mark.parametrize("kind, library", [("pandas", pd), ("polars", pl)])
def test_factors_come_as_a_data_frame_where_asked_for(make_model, make_table, kind, library):
    X = make_table("mixed")
    model = make_model("mixed").set_output(transform=kind)
    Z = model.fit_transform(X)
    assert isinstance(Z, library.DataFrame)
    assert list(Z.columns) == ["sparsevae0", "sparsevae1"]
    if kind == "pandas":
        assert Z.index.equals(X.index)
    with config_context(transform_output=kind):
        assert isinstance(clone(make_model("mixed")).fit(X).transform(X), library.DataFrame)


def test_float32_columns_stay_float32_in_a_data_frame(make_model, make_table):
    X = pd.DataFrame(make_table().astype(np.float32), columns=COLUMNS)
    Z = make_model().set_output(transform="pandas").fit_transform(X)
    assert (Z.dtypes == np.float32).all()


def test_polars_columns_can_be_named_in_a_mixed_likelihood(fit, make_model, make_table):
    frame = pl.DataFrame({name: column.to_numpy() for name, column in make_table("mixed").items()})
    model = fit(make_model("mixed"), frame)
    np.testing.assert_array_equal(model.mask_, fit(make_model("mixed"), make_table("mixed")).mask_)


# -- scikit-learn's tools -----------------------------------------------------------------------------------


def test_a_pipeline_from_words_to_factors(make_model):
    words = make_pipeline(CountVectorizer(), make_model("multinomial"))
    Z = words.fit_transform(TEXTS)
    assert Z.shape == (6, 2)
    assert np.isfinite(words.score(TEXTS))
    names = words[:-1].get_feature_names_out()
    assert words[-1].n_features_in_ == len(names)
    assert list(words.get_feature_names_out()) == ["sparsevae0", "sparsevae1"]


def test_documents_of_unknown_words_get_the_prior_mean(make_model):
    words = make_pipeline(CountVectorizer(), make_model("multinomial")).fit(TEXTS)
    assert (words.transform(["quark gluon", TEXTS[0]])[0] == 0).all()


def test_factors_feed_a_classifier(make_model, make_table):
    X = make_table()
    y = X[:, 0] > np.median(X[:, 0])
    pipeline = make_pipeline(StandardScaler(), make_model(max_epochs=20), LogisticRegression())
    assert pipeline.fit(X, y).predict(X).shape == (60,)


def test_a_grid_search_compares_held_out_bounds(make_model, make_table):
    search = GridSearchCV(make_model(), {"n_factors": [1, 3], "hidden_sizes": [(), (3,)]}, cv=2)
    search.fit(make_table())
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.transform(make_table()).shape == (60, search.best_params_["n_factors"])


def test_cross_validation_on_counts_meets_constant_features(make_model):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(40, 5)).astype(float)
    X[:, 4] = 0.0
    X[:5, 4] = 1.0  # constant in the training rows of the first fold
    with pytest.warns(UserWarning, match="are constant"):
        scores = cross_val_score(make_model("poisson"), X, cv=4)
    assert np.isfinite(scores).all()


def test_more_factors_score_higher_than_none_where_there_are_factors(trained, make_table):
    X = make_table(n_samples=200, seed=8)
    independent = -0.5 * np.log(2 * np.pi * np.e * X.var(0)).sum()
    assert trained().score(X) > independent
    assert trained().score(X) < PCA(6).fit(X).score(X) + 3.0


# -- copies -------------------------------------------------------------------------------------------------


def test_a_clone_has_the_parameters_and_nothing_else(fitted):
    model = fitted("mixed")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "mask_")


def test_set_params_after_fit_does_not_disturb_the_fitted_model(fit, make_model, make_table):
    model = fit(make_model(), make_table())
    Z = model.transform(make_table())
    model.set_params(n_factors=5, hidden_sizes=(9, 9))
    np.testing.assert_array_equal(model.transform(make_table()), Z)
    assert model.inverse_transform(Z).shape == (60, 7)


def test_a_pickle_is_the_same_model(fitted, make_table, likelihood):
    model, X = fitted(likelihood), make_table(likelihood)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.sample(4, random_state=0), model.sample(4, random_state=0))
    pd.testing.assert_frame_equal(again.history_, model.history_)


def test_a_pickle_works_in_another_process(fitted, make_table, tmp_path):
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "model.pkl").write_bytes(pickle.dumps(fitted()))
    np.save(tmp_path / "X.npy", make_table())
    script = (
        "import pickle, numpy as np\n"
        "model = pickle.load(open('moved/model.pkl', 'rb'))\n"
        "np.save('Z.npy', model.transform(np.load('X.npy')))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(sparsevae.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, env=environment)
    np.testing.assert_array_equal(np.load(tmp_path / "Z.npy"), fitted().transform(make_table()))


def test_the_repr_shows_what_was_changed():
    assert repr(SparseVAE(3, likelihood="poisson")) == "SparseVAE(likelihood='poisson', n_factors=3)"


def test_warnings_point_at_the_line_that_called_fit(make_model, make_table):
    X = make_table("poisson")
    X[4], X[:, 2] = 0.0, 0.0
    with pytest.warns(UserWarning, match="no counts at all|are constant") as caught:
        make_model("poisson").fit(X)
    assert {warning.filename for warning in caught} == {__file__}
