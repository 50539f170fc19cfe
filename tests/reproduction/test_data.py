from __future__ import annotations

import gzip
import json
import os

import numpy as np
import pytest

from sparsevae.datasets import DataNotFoundError
from sparsevae.exceptions import ParameterError
from sparsevae.reproduction.data import load_source, make_data
from sparsevae.reproduction.spec import load_spec

from .helpers import make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data directory with a few hundred abstracts of made-up words, in the layout of the real file."""
    rng = np.random.default_rng(0)
    words = np.array([a + b for a in ("ba", "de", "ki", "lo", "mu", "ra") for b in ("nal", "tor", "vis")])
    place = tmp_path_factory.mktemp("data")
    with gzip.open(place / "peerread_abstracts.jsonl.gz", "wt") as file:
        for number in range(300):
            weights = rng.dirichlet(np.full(len(words), 0.3))
            text = " ".join(rng.choice(words, 30, p=weights))
            print(json.dumps({"id": number, "venue": "arxiv.cs.ai", "abstract": text}), file=file)
    return place


def test_generated_data_are_cut_in_half_and_follow_the_seed():
    run = make_run(data_parameters={"n_samples": 50, "correlation": 0.2})
    train, test = make_data(run, load_source("synthetic", {}))
    assert (train.n_samples, test.n_samples) == (25, 25)
    other, _ = make_data(make_run(seed=1, data_parameters=run.data_parameters), load_source("synthetic", {}))
    assert not np.allclose(train.X, other.X)


def test_folds_share_the_rows_among_themselves(folder):
    source = load_source("peerread", {"n_features": 12, "lemmatise": False}, folder)
    tests = []
    for split in range(5):
        run = make_run(source="peerread", splitting="folds", n_splits=5, split=split)
        train, test = make_data(run, source)
        assert train.n_samples + test.n_samples == 300
        tests.append(test.X.toarray())
    assert np.vstack(tests).sum() == source.table.X.sum()


def test_a_smaller_scale_takes_some_of_the_rows(folder):
    source = load_source("peerread", {"n_features": 12, "n_samples": 40, "lemmatise": False}, folder)
    assert source.table.X.shape == (40, 12)
    assert "PeerRead" in source.description


def test_shifted_data_come_from_one_fit_of_topics(folder):
    parameters = {"n_features": 12, "n_factors": 4, "lemmatise": False}
    source = load_source("semisynthetic", parameters, folder)
    run = make_run(source="semisynthetic", splitting="given", data_parameters={"difference": "low"})
    train, test = make_data(run, source)
    assert train.X.shape[1] == test.X.shape[1] == 12
    assert train.factors.shape[1] == 4
    rounded = make_run(
        source="semisynthetic", splitting="given", data_parameters={"difference": "low", "form": "rounded"}
    )
    assert "rounded" in make_data(rounded, source)[0].description


def test_without_a_split_all_rows_serve_both_ends(folder):
    source = load_source("peerread", {"n_features": 12, "lemmatise": False}, folder)
    train, test = make_data(make_run(source="peerread", splitting="none"), source)
    assert train is test


def test_cell_types_keep_their_shares(real_data):
    source = load_source("zeisel", {"n_features": 20}, real_data("zeisel").parent)
    train, test = make_data(make_run(source="zeisel", splitting="stratified", n_splits=5), source)
    for kind in np.unique(train.target):
        assert (test.target == kind).mean() == pytest.approx((train.target == kind).mean(), abs=0.01)


def test_the_largest_release_of_movielens_that_is_there_is_taken(real_data):
    folder = real_data("ml-latest-small").parent
    source = load_source("movielens", {"n_features": 20, "count": "all"}, folder)
    assert source.description.startswith("Release latest-small.")
    assert source.table.X.shape[1] == 20


@pytest.mark.parametrize("name", ["peerread", "movielens", "zeisel", "semisynthetic"])
def test_data_that_are_not_there_are_missed_by_name(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSEVAE_DATA", "elsewhere")
    with pytest.raises(DataNotFoundError, match=str(tmp_path)):
        load_source(name, {}, tmp_path)
    assert os.environ["SPARSEVAE_DATA"] == "elsewhere"


def test_unknown_sources_and_splits_are_refused():
    with pytest.raises(ParameterError, match="a source among synthetic"):
        load_source("newsgroups", {})
    with pytest.raises(ParameterError, match="folds, stratified, half"):
        make_data(
            make_run(splitting="thirds", data_parameters={"n_samples": 9}), load_source("synthetic", {})
        )


def test_every_description_names_sources_there_are():
    for name in ("movielens", "shift", "zeisel", "topics"):
        for run in load_spec(name).runs("paper"):
            assert run.source in ("movielens", "peerread", "semisynthetic", "zeisel")
