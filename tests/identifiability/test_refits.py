from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from sparsevae import SparseVAE
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.identifiability import Stability, stability

from ..tables import make_items


def small_model(**parameters):
    return SparseVAE(
        **{
            "n_factors": 2,
            "n_init": 1,
            "max_epochs": 6,
            "hidden_sizes": (8,),
            "random_state": 0,
            **parameters,
        }
    )


@pytest.fixture(scope="module")
def table():
    return make_items(120, 8, anchors_per_factor=3)


@pytest.fixture(scope="module")
def model(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few epochs do not settle the mask
        return small_model().fit(table)


@pytest.fixture(scope="module")
def result(model, table):
    return stability(model, table, n_refits=2, n_jobs=1, how="seed")


def test_names_are_those_of_the_fit(model, table, result):
    names = model.get_feature_names_out()[model.active_factors_].tolist()
    assert result.reproducibility.index.tolist() == names
    assert result.selection_probability.index.tolist() == table.columns.tolist()
    assert result.selection_probability.columns.tolist() == names
    assert result.table.index.tolist() == names


def test_shares_are_those_of_the_matches(result):
    assert len(result.matches) == 2 * len(result.reproducibility)
    by_hand = result.matches.groupby("factor")["returned"].mean()
    assert (result.reproducibility == by_hand.reindex(result.reproducibility.index)).all()
    assert result.selection_probability.isin([0.0, 0.5, 1.0]).all(axis=None)
    assert (result.selection_probability.max() <= result.reproducibility).all()


def test_refits_are_recorded(result):
    assert len(result.refits) == 2
    assert result.refits["seed"].is_unique
    assert (result.refits["failure"] == "").all()
    assert (result.refits["n_new"] <= result.refits["n_active"]).all()


def test_the_consensus_is_what_is_selected_often_enough(result):
    assert (result.consensus_mask(0.5) == (result.selection_probability >= 0.5)).all(axis=None)
    assert result.consensus_mask(0.0).all(axis=None)


def test_the_summary_has_a_line_per_factor(result):
    text = str(result)
    assert "2 refits on other seeds" in text
    assert all(name in text for name in result.reproducibility.index)


def test_the_same_seed_gives_the_same_result(model, table, result):
    again = stability(model, table, n_refits=2, n_jobs=1, how="seed")
    pd.testing.assert_frame_equal(again.matches, result.matches)
    pd.testing.assert_frame_equal(again.selection_probability, result.selection_probability)


def test_another_seed_gives_other_refits(model, table, result):
    other = stability(model, table, n_refits=1, n_jobs=1, how="seed", random_state=7)
    assert not set(other.refits["seed"]) & set(result.refits["seed"])


def test_the_model_stays_as_it_was(model, table, result):
    np.testing.assert_array_equal(
        model.mask_ != 0, (model.loadings() != 0).reindex(table.columns).to_numpy()[:, :2]
    )
    assert model.random_state == 0


def test_bootstraps_differ_from_seeds(model, table):
    result = stability(model, table, n_refits=1, how="bootstrap", n_jobs=1)
    assert result.how == "bootstrap"
    assert "bootstraps of the samples" in result.summary()


def test_processes_give_what_one_process_with_one_thread_gives(model, table):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = stability(model, table, n_refits=2, n_jobs=1, how="seed")
    finally:
        torch.set_num_threads(threads)
    parallel = stability(model, table, n_refits=2, n_jobs=2, how="seed")
    pd.testing.assert_frame_equal(parallel.matches, alone.matches)
    assert parallel.refits["seed"].tolist() == alone.refits["seed"].tolist()


def test_a_sparse_table_will_do():
    counts = sparse.csr_matrix(np.random.default_rng(0).poisson(1.0, size=(60, 6)).astype(float))
    model = small_model(likelihood="poisson", max_epochs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(counts)
        result = stability(model, counts, n_refits=1, n_jobs=1, how="seed")
    assert isinstance(result, Stability)
    assert result.selection_probability.shape[0] == 6


def test_progress_is_shown_on_request(model, table, capsys):
    stability(model, table, n_refits=1, n_jobs=1, how="seed", verbose=1)
    assert "1/1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, phrase", [({"n_refits": 0}, "n_refits"), ({"how": "jackknife"}, "'seed', 'bootstrap'")]
)
def test_bad_parameters_are_refused(model, table, arguments, phrase):
    with pytest.raises(ParameterError, match=phrase):
        stability(model, table, **arguments)


def test_another_table_is_refused(model, table):
    with pytest.raises(DataError, match="8 features"):
        stability(model, table.iloc[:, :5], n_refits=1, n_jobs=1)


def test_refits_have_the_weights_and_groups_of_the_rows(table):
    weight, groups = np.tile([0.0, 1.0, 2.0], 40), np.repeat(["a", "b"], 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small_model().fit(table, sample_weight=weight, groups=groups)
        for how in ("seed", "bootstrap"):
            result = stability(
                model, table, n_refits=1, how=how, n_jobs=1, sample_weight=weight, groups=groups
            )
            assert (result.refits["failure"] == "").all()
        # Weights that leave one group out make other groups of a refit than no weights do.
        alone = stability(
            model,
            table,
            n_refits=1,
            how="seed",
            n_jobs=1,
            sample_weight=np.repeat([1.0, 0.0], 60),
            groups=groups,
        )
        both = stability(model, table, n_refits=1, how="seed", n_jobs=1, groups=groups)
    assert not alone.matches["overlap"].equals(both.matches["overlap"]) or not alone.matches[
        "rank_correlation"
    ].equals(both.matches["rank_correlation"])


def test_what_describes_rows_has_an_entry_for_each(model, table):
    with pytest.raises(DataError, match="Expected an entry of sample_weight for each of 120 rows; got 3"):
        stability(model, table, n_refits=1, n_jobs=1, sample_weight=[1.0, 2.0, 3.0])
    with pytest.raises(ParameterError, match=r"Expected arguments of SparseVAE.fit; got checkpoint"):
        stability(model, table, n_refits=1, n_jobs=1, checkpoint="x")


def test_halves_are_the_default_and_repeat_themselves(model, table):
    result = stability(model, table, n_refits=20)
    assert result.how == "halves"
    assert len(result.refits) == 20
    assert result.reproducibility.between(0.0, 1.0).all()
    assert "halves of the samples, by a linear model" in result.summary()
    pd.testing.assert_series_equal(
        stability(model, table, n_refits=20).reproducibility, result.reproducibility
    )


def test_a_model_without_evidence_of_halves_is_fitted_again(model, table):
    old = copy.deepcopy(model)
    old.resamples_ = {}
    assert stability(old, table, n_refits=1, n_jobs=1).how == "seed"
