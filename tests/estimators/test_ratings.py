from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from sparsevae.exceptions import DataError, ParameterError
from sparsevae.fitting.initial import start_at_means_

FILMS = ["space 1", "space 2", "space 3", "love 1", "love 2", "love 3", "both", "news"]


@pytest.fixture(scope="module")
def liked():
    """Two tastes, three films of each, one of both and one of none; (model, answers)."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((600, 2))
    mask = np.array([[2.0, 0]] * 3 + [[0, 2.0]] * 3 + [[1.5, 1.5], [0, 0]])
    X = rng.binomial(1, 1 / (1 + np.exp(-z @ mask.T))).astype(float)
    return z, mask, pd.DataFrame(X, columns=FILMS)


@pytest.fixture(scope="module")
def model(liked, linear_model):
    z, mask, X = liked
    return linear_model(X, z, mask, likelihood="bernoulli")


def test_what_was_not_seen_is_ranked_by_its_chances(model, liked):
    X = liked[2]
    ids, scores = model.recommend(X, 3)
    assert ids.shape == scores.shape == (600, 3)
    chances = model.inverse_transform(model.transform(X))
    for i in range(0, 600, 37):
        unseen = [j for j in np.argsort(-chances[i], kind="stable") if X.iloc[i, j] == 0]
        found = ids[i][ids[i] >= 0]
        np.testing.assert_allclose(
            np.sort(chances[i, unseen[: len(found)]]), np.sort(chances[i, found]), rtol=1e-4
        )
        np.testing.assert_allclose(1 / (1 + np.exp(-scores[i][: len(found)])), chances[i, found], rtol=1e-4)
        assert (X.iloc[i, found] == 0).all()
    seen_too, _ = model.recommend(X, 3, filter_seen=False)
    assert any(X.iloc[i, seen_too[i, 0]] for i in range(600))


def test_a_sparse_table_gives_the_same_and_is_never_dense_as_a_whole(model, liked, monkeypatch):
    X = sparse.csr_array(liked[2].to_numpy())
    expected = model.recommend(liked[2], 4)
    made = []
    dense = sparse.csr_array.toarray

    def watched(self, *args, **kwargs):
        made.append(self.shape[0])
        return dense(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", watched)
    given = copy.deepcopy(model)
    del given.feature_names_in_
    for found, wanted in zip(given.recommend(X, 4), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert max(made) < 600


def test_a_row_that_has_everything_gets_nothing(model):
    ids, scores = model.recommend(pd.DataFrame(np.ones((1, 8)), columns=FILMS), 2)
    assert (ids == -1).all()
    assert np.isnan(scores).all()
    ids, _ = model.recommend(pd.DataFrame(np.zeros((1, 8)), columns=FILMS), 12)
    assert ids.shape == (1, 12)
    assert (ids[0, 8:] == -1).all()


def test_only_the_items_asked_for_are_shown(model, liked):
    ids, _ = model.recommend(liked[2], 2, items=["love 1", 0])
    assert set(ids.ravel()) <= {0, 3, -1}
    with pytest.raises(ParameterError, match=r"a feature by its name or a position below 8; got 'opera'"):
        model.recommend(liked[2], 2, items=["opera"])
    for nothing in ([], "love 1", np.array([], dtype=int)):
        with pytest.raises(
            ParameterError, match="Expected items to be features to choose from, at least one"
        ):
            model.recommend(liked[2], 2, items=nothing)


def test_a_score_is_the_sum_of_its_parts(model, liked):
    ids, scores, why = model.recommend(liked[2], 3, explain=True)
    for (row, rank), parts in why.groupby(["row", "rank"]):
        assert len(parts) <= 3
        total = parts["base"].iloc[0] + parts["contribution"].sum() + parts["rest"].iloc[0]
        assert total == pytest.approx(scores[row, rank - 1], abs=1e-5)
        assert parts["item"].iloc[0] == FILMS[ids[row, rank - 1]]
    # A linear model has no interactions: a film of one taste is explained without a rest.
    alone = why[why["item"].str.startswith("space") & (why["factor"] != "")]
    assert len(alone)
    np.testing.assert_allclose(alone["rest"], 0.0, atol=1e-5)


def test_a_persons_own_films_are_the_evidence(model, liked):
    _, _, why = model.recommend(liked[2], 3, explain=True)
    for _, part in why[why["because"] != ""].iterrows():
        for film in part["because"].split(", "):
            assert liked[2].loc[part["row"], film] == 1
            j, k = FILMS.index(film), int(part["factor"][-1])
            assert model.mask_[j, k] != 0


@pytest.fixture(scope="module")
def catalogue(linear_model):
    """Three tastes, fifteen films of each, some more popular than others, and fifteen that all like alike."""
    rng = np.random.default_rng(1)
    z, popularity = rng.standard_normal((400, 3)), rng.normal(-2, 0.7, 60)
    mask = 1.5 * (np.arange(60)[:, None] // 15 == np.arange(3))
    X = rng.binomial(1, 1 / (1 + np.exp(-z @ mask.T - popularity))).astype(float)
    model = linear_model(X, z, mask, likelihood="bernoulli")
    start_at_means_(model.module_, torch.as_tensor(X.mean(0)))
    return model, X


def test_without_its_factor_an_item_falls(catalogue):
    model, X = catalogue
    ids, _, why = model.recommend(X, 5, explain=True)
    first = why[why["factor"] != ""].drop_duplicates(["row", "rank"])
    assert len(first) > 1000
    assert (first["rank_without"] > first["rank"]).all()
    part = first.iloc[0]
    z = model.transform(X)[part["row"]].copy()
    z[int(part["factor"][-1])] = 0.0
    chances = np.where(X[part["row"]] == 0, model.inverse_transform(z[None])[0], -1)
    j = ids[part["row"], part["rank"] - 1]
    assert part["rank_without"] == 1 + (chances > chances[j] + 1e-9).sum()


def test_similar_features_share_factors(model):
    table = model.similar_features("space 1", 4)
    assert table["feature"].tolist()[:2] == ["space 2", "space 3"]
    assert "both" in table["feature"].tolist()
    assert not table["feature"].str.startswith("love").any()
    assert table["similarity"].is_monotonic_decreasing
    assert (table["shared"] != "").all()
    assert model.similar_features(7).empty
    with pytest.raises(ParameterError, match="Names are 'space 1'"):
        model.similar_features("opera")


def test_features_of_different_kinds_are_not_ranked(fitted, make_table):
    with pytest.raises(DataError, match="Expected features of one kind"):
        fitted("mixed").recommend(make_table("mixed"))
    ids, scores = fitted("gaussian").recommend(make_table(), 2, filter_seen=False)
    expected = fitted("gaussian").reconstruct(make_table())
    np.testing.assert_allclose(scores, np.sort(expected, axis=1)[:, ::-1][:, :2], rtol=1e-4)
    assert (ids[:, 0] == expected.argmax(1)).all()
