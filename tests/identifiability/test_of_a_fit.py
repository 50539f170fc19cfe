"""`SparseVAE.identifiability` and `communalities` on small fits; what they rest on is tested file by file."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import sparsevae
from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.exceptions import DataError

from ..tables import make_items


def fit(X, **parameters):
    model = SparseVAE(
        **{
            "n_factors": 3,
            "n_init": 1,
            "max_epochs": 30,
            "hidden_sizes": (16,),
            "random_state": 0,
            **parameters,
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few epochs do not settle the mask
        return model.fit(X)


@pytest.fixture(scope="module")
def table():
    return make_items(300, 12, anchors_per_factor=4)


@pytest.fixture(scope="module")
def model(table):
    return fit(table)


def test_rows_are_the_active_factors_by_name(model, table):
    certificate = model.identifiability(table)
    assert certificate.table.index.tolist() == model.get_feature_names_out()[model.active_factors_].tolist()
    anchors = model.anchor_features()
    assert {name: set(row) for name, row in certificate.table["anchors"].items()} == {
        name: set(features) for name, features in anchors.items()
    }


def test_the_nearest_factor_is_as_near_as_the_correlations_of_the_factors_say(model, table):
    correlation = model.factor_correlation().abs().to_numpy()
    np.fill_diagonal(correlation, 0.0)
    margin = model.identifiability(table).table["a3_margin"]
    np.testing.assert_allclose(margin, 1.0 - correlation.max(0), rtol=1e-12)


def test_what_is_proved_is_not_said_of_a_verdict_by_halves(model, table):
    notes = " ".join(model.identifiability(table).notes)
    assert "a verdict says whether their assumptions hold" not in notes


def test_every_factor_has_a_verdict_and_a_sentence(model, table):
    rows = model.identifiability(table).table
    assert rows["verdict"].isin(["identified", "weak", "not identified"]).all()
    assert rows["reason"].str.endswith(".").all()


def test_a_stability_result_fills_the_returns(model, table):
    refits = sparsevae.stability(model, table, n_refits=1, n_jobs=1)
    returns = model.identifiability(table, stability=refits).table["returns"]
    assert returns.tolist() == refits.reproducibility.tolist()


def test_known_anchors_count_as_given():
    data = make_anchored_factors(200, 10, 2, anchors_per_factor=3, nonlinear_share=0.0, random_state=0)
    model = fit(data.X, n_factors=2, anchors={0: 0, 1: 0, 3: 1, 4: 1})
    given = model.identifiability(data.X).table["given"]
    assert given["sparsevae0"] == ["x0", "x1"]
    assert given["sparsevae1"] == ["x3", "x4"]


def test_a_multinomial_fit_says_what_is_not_proved():
    counts = np.random.default_rng(0).poisson(2.0, size=(80, 6)).astype(float)
    model = fit(sparse.csr_matrix(counts), likelihood="multinomial", max_epochs=2)
    notes = model.identifiability(sparse.csr_matrix(counts)).notes
    assert sum("not proved" in note for note in notes) == 2


def test_the_linear_model_can_be_certified(table):
    model = fit(table, hidden_sizes=())
    assert (model.identifiability(table).pairs["curve_difference"] < 1e-6).all()


def test_another_table_is_refused(model, table):
    with pytest.raises(DataError, match="Pass the columns"):
        model.identifiability(table.iloc[:, :5])


@pytest.mark.parametrize("call", [lambda m: m.identifiability(np.zeros((5, 2))), lambda m: m.communalities()])
def test_an_unfitted_model_says_so(call):
    with pytest.raises(NotFittedError):
        call(SparseVAE())


def test_communalities_are_what_noise_leaves(model, table):
    shares = model.communalities()
    assert shares.index.tolist() == table.columns.tolist()
    used = (model.mask_ != 0).any(1)
    expected = 1.0 - model.noise_variance_ / table.var(ddof=0).to_numpy()
    np.testing.assert_allclose(shares[used], np.clip(expected[used], 0.0, 1.0), atol=1e-5)
    assert (shares[~used] == 0.0).all()


def test_communalities_of_counts_are_shares():
    counts = np.random.default_rng(0).poisson(2.0, size=(60, 5)).astype(float)
    shares = fit(counts, likelihood="poisson", max_epochs=2).communalities()
    assert shares.between(0.0, 1.0).all()


def test_explained_has_a_row_per_factor_and_one_for_all(model):
    explained = model.explained()
    assert explained.index.tolist() == [*model.loadings().columns, "all factors"]
    factors = explained.iloc[:-1]
    np.testing.assert_allclose(
        factors["variance_explained"], model.variance_explained_[model.active_factors_]
    )
    assert factors["n_features"].tolist() == (model.loadings() != 0).sum().tolist()
    assert factors["n_anchors"].tolist() == [len(own) for own in model.anchor_features().values()]
    assert explained["variance_explained"].iloc[-1] == pytest.approx(model.communalities().mean())
