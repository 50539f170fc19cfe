"""How sure a fit is: intervals, selection, posterior deviations, practical anchors, correlations."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsevae import SparseVAE
from sparsevae.datasets import load_ability_tests, make_anchored_factors
from sparsevae.exceptions import DataError, ParameterError

SAVED = Path(__file__).parents[1] / "saved"


@pytest.fixture(scope="module")
def tests():
    return load_ability_tests()


@pytest.fixture(scope="module")
def model(tests):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseVAE(5, max_epochs=10, random_state=0).fit(tests.X)


def test_every_link_has_an_interval_and_a_selection(model):
    table = model.effects(ci=0.9)
    assert len(table) == model.effects().size
    assert (table["low"] < table["high"]).all()
    assert table["selection"].between(0, 1).all()
    linked = table["effect"] != 0
    assert table.loc[linked, "selection"].mean() > table.loc[~linked, "selection"].mean()


def test_a_higher_level_has_wider_intervals_and_nonsense_is_refused(model):
    narrow, wide = (model.effects(ci=level) for level in (0.5, 0.95))
    assert ((wide["high"] - wide["low"]) > (narrow["high"] - narrow["low"])).all()
    with pytest.raises(ParameterError, match="ci"):
        model.effects(ci=90)


def test_posterior_deviations_are_those_of_factors_that_rows_tell(model, tests):
    means, deviations = model.transform(tests.X, return_std=True)
    np.testing.assert_array_equal(means, model.transform(tests.X))
    active = np.isin(np.arange(model.n_factors_), model.active_factors_)
    assert (deviations[:, active] < 1).all()
    assert (deviations[:, ~active] == 1).all()


def test_exact_anchors_that_matter_are_practical_ones(model):
    exact, practical = model.anchor_features(), model.anchor_features(practical=True)
    for name, features in exact.items():
        strong = [f for f in features if model.communalities()[f] >= 0.05]
        assert set(strong) <= set(practical[name])


def test_a_feature_is_a_practical_anchor_of_one_factor_at_most(model):
    assert model.practical_anchors().sum(1).max() <= 1


def test_the_verdicts_of_the_ability_tests_are_signed(model, tests):
    certificate = model.identifiability(tests.X)
    assert (certificate.table["verdict"] == "identified").sum() >= 2
    assert certificate.table["match"].notna().all()
    assert (certificate.table["n_practical"] >= 2).all()


def test_evidence_survives_saving(model, tests, tmp_path):
    model.save(tmp_path / "model")
    again = SparseVAE.load(tmp_path / "model")
    assert again.effects(ci=0.9).equals(model.effects(ci=0.9))
    assert again.factor_correlation().equals(model.factor_correlation())


def test_correlations_of_anchored_factors_are_near_the_truth():
    options = {"nonlinear_share": 0.0, "interaction_share": 0.0, "correlation": 0.5, "random_state": 3}
    data = make_anchored_factors(1500, 15, 3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SparseVAE(3, max_epochs=10, random_state=0).fit(data.X)
    found = np.abs(model.factor_correlation().to_numpy()[np.triu_indices(3, 1)])
    assert np.abs(found - 0.5).mean() < 0.06


@pytest.mark.filterwarnings("ignore:The model in .* was saved by sparsevae 0.1")
def test_models_of_the_first_version_say_what_they_do_not_know():
    saved = SAVED / "0.1" / "SparseVAE-gaussian"
    model = SparseVAE.load(saved)
    assert model.effects(ci=0.9)["low"].isna().all()
    with pytest.raises(DataError, match="earlier version"):
        model.anchor_features(practical=True)
    with np.load(f"{saved}.npz") as file:
        X = pd.DataFrame(file["X"], columns=model.feature_names_in_)
    certificate = model.identifiability(X)
    assert certificate.table["reason"].str.contains("judged by the theorem alone").all()
