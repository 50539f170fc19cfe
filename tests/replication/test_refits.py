from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sparsevae
from sparsevae import NMF, VAE, SparseVAE
from sparsevae.exceptions import DataError, ParameterError

from ..tables import make_items

QUICK = {"n_init": 1, "max_epochs": 30, "hidden_sizes": (8,), "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sparsevae.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def table():
    """Two factors with four features each, and two features of both."""
    return make_items(160, 10, anchors_per_factor=4)


@pytest.fixture(scope="module")
def fitted(table):
    return SparseVAE(4, **QUICK).fit(table).name_factors({0: "stress"})


def test_factors_of_a_simple_table_come_back_by_their_names(fitted, table):
    before = fitted.mask_.copy()
    result = sparsevae.replicate(fitted, table, n_splits=2, n_jobs=1)
    names = fitted.get_feature_names_out()[fitted.active_factors_]
    assert result.factors["factor"].tolist() == names.tolist()
    assert names[0] == "stress"
    assert result.factors["n_splits"].eq(2).all()
    assert result.factors["returned"].eq(2).all(), str(result)
    assert result.splits["method"].tolist() == ["SparseVAE"] * 2 + ["varimax"] * 2
    assert result.splits["back"].eq(2).all()
    assert len(result.matches) == 4 * len(names)
    assert np.array_equal(fitted.mask_, before)
    assert fitted.random_state == 0


def test_a_model_that_is_not_fitted_stays_so_and_gives_the_same(fitted, table):
    fresh = SparseVAE(4, **QUICK)
    results = [sparsevae.replicate(model, table, n_splits=1, n_jobs=1) for model in (fresh, fitted)]
    assert not hasattr(fresh, "module_")
    numbers = [result.factors.drop(columns="factor") for result in results]
    pd.testing.assert_frame_equal(*numbers)
    assert results[0].factors["factor"][0] == "sparsevae0"


def test_processes_give_what_one_gives(fitted, table):
    alone = sparsevae.replicate(fitted, table, n_splits=1, n_jobs=1)
    spread = sparsevae.replicate(fitted, table, n_splits=1, n_jobs=2)
    assert np.allclose(alone.matches["correlation"], spread.matches["correlation"], atol=1e-3)


def test_studies_are_compared_each_with_each(table):
    study = np.array(["first", "second", "third"])[np.arange(len(table)) % 3]
    model = SparseVAE(2, **{**QUICK, "max_epochs": 5})
    given = sparsevae.replicate(model, table, study, n_jobs=1)
    named = sparsevae.replicate(model, table.assign(wave=study), "wave", n_jobs=1)
    assert given.studies == ("first", "second", "third")
    assert given.splits["split"].unique().tolist() == ["first, second", "first, third", "second, third"]
    assert given.matches["part"].unique().tolist() == ["first", "second", "third"]
    pd.testing.assert_frame_equal(given.factors, named.factors)


def test_varimax_is_left_out_of_tables_with_holes(table):
    holes = table.mask(np.random.default_rng(0).random(table.shape) < 0.02)
    result = sparsevae.replicate(SparseVAE(2, **{**QUICK, "max_epochs": 5}), holes, n_splits=1, n_jobs=1)
    assert result.splits["method"].tolist() == ["SparseVAE"]
    assert "Varimax is left out: the table has missing values." in result.notes


def test_an_answer_that_a_half_does_not_have_counts_as_missing_there():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((60, 1))
    X = np.clip(np.rint(3 + z + 0.5 * rng.standard_normal((60, 5))), 2, 4)
    X[7, 1] = 6.0
    model = SparseVAE(1, likelihood="ordinal", **{**QUICK, "max_epochs": 5})
    result = sparsevae.replicate(model, X, n_splits=1, n_jobs=1)
    assert not any("failed" in note for note in result.notes), result.notes
    assert len(result.factors) == 1


@pytest.mark.parametrize("kind", [VAE, NMF])
def test_other_estimators_of_the_package_have_it_too(kind, table):
    X = table - table.min()
    quick = {"max_iter": 50, "alpha": 0.01} if kind is NMF else {"max_epochs": 10}
    result = sparsevae.replicate(kind(2, random_state=0, **quick), X, n_splits=1, n_jobs=1)
    assert result.splits["method"].tolist() == [kind.__name__, "varimax"]
    assert len(result.factors) == 2


def test_weights_are_cut_as_the_rows_are(table):
    model = SparseVAE(2, **{**QUICK, "max_epochs": 5})
    weight = np.ones(len(table))
    plain = sparsevae.replicate(model, table, n_splits=1, n_jobs=1)
    result = sparsevae.replicate(model, table, n_splits=1, n_jobs=1, sample_weight=weight)
    assert np.allclose(result.matches["correlation"], plain.matches["correlation"], atol=0.02)
    assert "Varimax counts every row once." in result.notes
    with pytest.raises(DataError, match="an entry of sample_weight for each of 160 rows; got 2"):
        sparsevae.replicate(model, table, sample_weight=[1.0, 2.0])


def test_counts_in_a_sparse_table_keep_the_names_given():
    rng = np.random.default_rng(0)
    rates = np.exp(rng.standard_normal((80, 1)) * [1.0, 1.0, 1.0, -1.0, -1.0, -1.0] + 1.0)
    counts = rng.poisson(rates).astype(float)
    words = [f"word {j}" for j in range(6)]
    model = SparseVAE(1, likelihood="poisson", **QUICK)
    result = sparsevae.replicate(model, sparse.csr_matrix(counts), n_splits=1, n_jobs=1, feature_names=words)
    assert set(result.factors["features"][0]) <= set(words)


def test_a_table_without_factors_has_nothing_to_look_for():
    noise = np.random.default_rng(0).standard_normal((60, 5))
    result = sparsevae.replicate(SparseVAE(1, spike_rate=1e4, **QUICK), noise, n_splits=1, n_jobs=1)
    assert len(result.factors) == 0
    assert result.splits["back"].tolist() == [0]
    assert any(note.startswith("Varimax is left out: the fit has no factor") for note in result.notes)
    assert "0 factors in all rows" in str(result)
    assert result.plot().get_title(loc="left") == "Come back between halves: SparseVAE 0 of 0"


def test_a_fit_that_fails_is_said_and_shows_nothing(table):
    broken = table.copy()
    broken.iloc[:80, 3] = np.nan
    study = ["a"] * 80 + ["b"] * 80
    result = sparsevae.replicate(SparseVAE(2, **{**QUICK, "max_epochs": 5}), broken, study, n_jobs=1)
    assert any(note.startswith("The fit to a failed: Expected") for note in result.notes), result.notes
    assert result.splits["factors_a"].tolist() == [0]
    assert result.factors["returned"].eq(0).all()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"n_splits": 0}, "Expected n_splits to be a whole number"),
        ({"random_state": -1}, "Expected random_state to be a whole number"),
        ({"random_state": None}, "Expected random_state to be a whole number"),
        ({"callbacks": []}, "Expected arguments of SparseVAE.fit; got callbacks"),
        ({"weights": [1.0]}, "Expected arguments of SparseVAE.fit; got weights"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message, table):
    with pytest.raises(ParameterError, match=message):
        sparsevae.replicate(SparseVAE(2), table, **settings)


@pytest.mark.parametrize("model", [SparseVAE, "SparseVAE"])
def test_what_is_no_estimator_is_refused(model, table):
    with pytest.raises(ParameterError, match="Expected an estimator of this package"):
        sparsevae.replicate(model, table)
