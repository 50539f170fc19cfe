from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sparsevae import NMF, SparseVAE, name_features
from sparsevae.exceptions import ParameterError

DOCUMENTS = ["sun moon star", "sun sun moon", "rain cloud", "rain rain cloud wind", "moon star", "wind cloud"]
WORDS = ["cloud", "moon", "rain", "star", "sun", "wind"]


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted())


@pytest.fixture
def text():
    """A pipeline from documents to factors, not yet fitted."""
    return make_pipeline(CountVectorizer(), NMF(2, likelihood="poisson", random_state=0))


# -- factors -------------------------------------------------------------------------------------------------


def test_names_are_where_factors_are_named(model, make_table):
    assert model.name_factors({0: "stress"}) is model
    assert model.get_feature_names_out().tolist() == ["stress", "sparsevae1"]
    assert model.loadings().columns[0] == "stress"
    assert model.effects().columns[0] == "stress"
    assert next(iter(model.anchor_features())) == "stress"
    assert model.explained().index[0] == "stress"
    assert model.top_features(1)["factor"].iloc[0] == "stress"
    assert "stress" in model.identifiability(make_table()).table.index
    frame = copy.deepcopy(model).set_output(transform="pandas").transform(make_table())
    assert frame.columns.tolist() == ["stress", "sparsevae1"]


def test_names_are_saved_with_the_model(model, tmp_path):
    model.name_factors({1: "zeal", "sparsevae0": "stress"}).save(tmp_path / "model")
    again = SparseVAE.load(tmp_path / "model")
    assert again.factor_names_ == {0: "stress", 1: "zeal"}
    assert again.get_feature_names_out().tolist() == ["stress", "zeal"]


def test_a_name_can_be_changed_swapped_and_taken_back(model):
    model.name_factors({0: "a", 1: "b"}).name_factors({"a": "b", "b": "a"})
    assert model.get_feature_names_out().tolist() == ["b", "a"]
    model.name_factors({0: None})
    assert model.get_feature_names_out().tolist() == ["sparsevae0", "a"]


def test_names_end_with_the_fit(model, make_table, fit):
    model.name_factors({0: "stress"})
    assert not hasattr(clone(model), "factor_names_")
    assert fit(model, make_table()).get_feature_names_out()[0] == "sparsevae0"


@pytest.mark.parametrize(
    "names, message",
    [
        ({0: "x", 1: "x"}, "a different name for each factor; got 'x' more than once"),
        ({0: "sparsevae1"}, "got 'sparsevae1' more than once"),
        ({2: "x"}, "by its position from 0 to 1, or by its name; got 2"),
        ({True: "x"}, "got True"),
        ({"anger": "x"}, "got 'anger'. Names are 'sparsevae0', 'sparsevae1'"),
        ({0: ""}, "a name in printable letters"),
        ({0: " x"}, "without blanks around it"),
        ({0: "a\nb"}, "printable"),
        ({0: 7}, "got 7 for factor 0"),
        (["stress"], "a dict from factors to names"),
    ],
)
def test_names_that_cannot_be_used_are_refused_and_change_nothing(model, names, message):
    with pytest.raises(ParameterError, match=message):
        model.name_factors(names)
    assert model.get_feature_names_out().tolist() == ["sparsevae0", "sparsevae1"]


# -- features ------------------------------------------------------------------------------------------------


def test_a_sparse_table_is_fitted_with_names(make_model, make_table, tmp_path):
    counts = sparse.csr_array(make_table("poisson"))
    model = make_model("poisson")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(counts, feature_names=list("abcdefg"))
    assert model.feature_names_in_.tolist() == list("abcdefg")
    assert model.loadings().index.tolist() == list("abcdefg")
    # Warnings are errors here: a table without names is what this fit saw.
    np.testing.assert_array_equal(model.transform(counts), model.transform(counts.toarray()))
    model.save(tmp_path / "model")
    again = SparseVAE.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(counts), model.transform(counts))
    assert again.effects().index.tolist() == list("abcdefg")


def test_names_given_to_fit_can_be_used_in_its_parameters(make_model, make_table, fit):
    X = make_table("poisson")
    by_name = make_model({"poisson": list("abcdefg")}, anchors={"c": 0})
    by_place = make_model({"poisson": list(range(7))}, anchors={2: 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_name.fit(sparse.csr_array(X), feature_names=list("abcdefg"))
    np.testing.assert_array_equal(by_name.mask_, fit(by_place, sparse.csr_array(X)).mask_)


def test_fit_transform_passes_the_names_on(make_table):
    model = NMF(2, likelihood="poisson", random_state=0)
    model.fit_transform(sparse.csr_array(make_table("poisson")), feature_names=list("abcdefg"))
    assert model.feature_names().tolist() == list("abcdefg")


@pytest.mark.parametrize(
    "names, message",
    [
        (list("abc"), "feature_names with 7 names, one for each column of the table; got 3"),
        (list("abcdeff"), "a different name for each feature; got 'f' more than once"),
        ("abcdefg", "a sequence of names; got 'abcdefg'"),
        (7, "a sequence of names; got 7"),
    ],
)
def test_names_that_do_not_fit_the_table_are_refused(model, make_model, make_table, names, message):
    with pytest.raises(ParameterError, match=message):
        model.set_feature_names(names)
    assert model.feature_names().tolist() == [f"x{j}" for j in range(7)]
    with pytest.raises(ParameterError, match=message):
        make_model().fit(make_table(), feature_names=names)


def test_names_without_which_the_likelihood_cannot_be_read_stay(fitted):
    model = copy.deepcopy(fitted("mixed"))
    with pytest.raises(ParameterError, match="Name columns in likelihood= by their positions"):
        model.set_feature_names([f"f{j}" for j in range(7)])
    assert model.feature_names().tolist() == list("abcdefg")
    assert not hasattr(model, "_names_given")


def test_the_names_of_the_next_table_are_its_own(make_table):
    model = NMF(2, likelihood="poisson", random_state=0)
    model.fit(make_table("poisson"), feature_names=list("abcdefg"))
    model.fit(pd.DataFrame(make_table("poisson"), columns=list("hijklmn")))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.transform(make_table("poisson"))


# -- pipelines -----------------------------------------------------------------------------------------------


def test_a_pipeline_hands_its_words_on(text):
    text.fit(DOCUMENTS)
    assert text[-1].feature_names()[0] == "x0"
    assert name_features(text) is text
    assert text[-1].feature_names().tolist() == WORDS
    assert text.transform(DOCUMENTS).shape == (6, 2)
    assert text.get_feature_names_out().tolist() == ["nmf0", "nmf1"]


def test_the_line_of_the_documentation_does_the_same(text):
    text.fit(DOCUMENTS)
    text[-1].set_feature_names(text[:-1].get_feature_names_out())
    assert text[-1].loadings().index.tolist() == WORDS


def test_an_estimator_in_the_middle_is_named_too(text):
    pipe = Pipeline([*text.steps, ("scale", StandardScaler())]).fit(DOCUMENTS)
    assert name_features(pipe)[1].feature_names().tolist() == WORDS


def test_columns_of_several_kinds_are_named(text):
    frame = pd.DataFrame({"text": DOCUMENTS, "age": np.arange(6.0)})
    columns = ColumnTransformer([("words", CountVectorizer(), "text"), ("rest", "passthrough", ["age"])])
    pipe = make_pipeline(columns, NMF(2, random_state=0)).fit(frame)
    expected = [f"words__{word}" for word in WORDS] + ["rest__age"]
    assert name_features(pipe)[-1].feature_names().tolist() == expected
    inside = ColumnTransformer([("topics", text, "text")]).fit(frame)
    assert name_features(inside).transformers_[0][1][-1].feature_names().tolist() == WORDS
    union = FeatureUnion([("topics", clone(text))]).fit(DOCUMENTS)
    assert name_features(union).transformer_list[0][1][-1].feature_names().tolist() == WORDS


def test_the_best_pipeline_of_a_search_is_named(text):
    search = GridSearchCV(text, {"nmf__alpha": [0.1, 1.0]}, cv=2).fit(DOCUMENTS)
    assert name_features(search).best_estimator_[-1].feature_names().tolist() == WORDS


def test_what_has_no_names_to_hand_on_is_refused(text, model):
    for nothing in (model, make_pipeline(NMF(2)).fit(np.ones((3, 2))), "pipe"):
        with pytest.raises(ParameterError, match="Expected a fitted pipeline with an estimator"):
            name_features(nothing)
    nameless = make_pipeline(FunctionTransformer(), NMF(2)).fit(np.ones((3, 2)))
    with pytest.raises(ParameterError, match="Name the features by hand"):
        name_features(nameless)


# -- views ---------------------------------------------------------------------------------------------------


def test_two_levels_of_columns_are_views_and_names(make_table, model, tmp_path):
    names = [str(name) for name in model.feature_names()]
    table = pd.DataFrame(np.asarray(make_table()), columns=names)
    halves = ["one" if j % 2 else "two" for j in range(len(names))]
    table.columns = pd.MultiIndex.from_arrays([halves, names])
    again = clone(model).fit(table)
    assert again.feature_names().tolist() == [
        f"{view}:{name}" for view, name in zip(halves, names, strict=True)
    ]
    assert again.views_.tolist() == halves
    np.testing.assert_array_equal(again.mask_, model.mask_)
    np.testing.assert_array_equal(again.transform(table), model.transform(np.asarray(make_table())))
    again.save(tmp_path / "model")
    loaded = SparseVAE.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.explained_by_view(), again.explained_by_view(halves))
    assert clone(loaded).fit(np.asarray(make_table())).feature_views() is None


def test_views_can_be_given_and_taken_back(model):
    names = [str(name) for name in model.feature_names()]
    views = ["one", *["two"] * (len(names) - 1)]
    assert model.set_views(views).feature_views().tolist() == views
    model.set_views(dict(zip(names, reversed(views), strict=True)))
    assert model.feature_views().tolist() == views[::-1]
    with pytest.raises(ParameterError, match=f"a view for each of {len(names)} features; got 2"):
        model.set_views(["a", "b"])
    with pytest.raises(ParameterError, match="there is none for"):
        model.set_views({names[0]: "a"})
    assert model.set_views(None).feature_views() is None
    with pytest.raises(ParameterError, match="Expected a fit that knows the views"):
        model.explained_by_view()


def test_absences_that_are_modelled_are_in_the_views_of_their_columns(model):
    model.set_views([f"view {j}" for j in range(model.n_features_in_)])
    model.absent_columns_ = np.array([2, 0])
    assert model.feature_views()[-2:].tolist() == ["view 2", "view 0"]
