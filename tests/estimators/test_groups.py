"""Groups of rows: batch effects stay out of the factors, factors are shared or belong to a group."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.datasets import make_grouped_factors
from sparsevae.exceptions import ConvergenceWarning, DataError, DataWarning, ParameterError
from sparsevae.metrics import support_f1
from sparsevae.report import build_content, render_html

from ..tables import MIXED, make_table

TINY = {"n_factors": 2, "hidden_sizes": (5,), "max_epochs": 4, "random_state": 0}
LABELS = np.where(np.arange(60) % 3 == 0, "b", "a")


def fit(model, X, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **more)


@pytest.fixture(scope="module")
def known():
    """A table of two groups, and a linear model fitted to it."""
    data = make_grouped_factors(500, 20, n_shared=2, nonlinear_share=0.0, shift=2.0, random_state=0)
    options = {"hidden_sizes": (), "max_epochs": 250, "random_state": 0, "learning_rate": 0.01}
    return data, fit(SparseVAE(5, **options), data.X, groups=data.target)


@pytest.mark.parametrize("effects", ["shifts", "means"])
@pytest.mark.parametrize("kind", [SparseVAE, VAE])
def test_every_likelihood_takes_groups(kind, likelihood, effects, tmp_path):
    X = make_table(likelihood)
    spec = MIXED if likelihood == "mixed" else likelihood
    options = {"recipe": "paper"} if kind is SparseVAE else {}
    model = fit(kind(**TINY, likelihood=spec, group_effects=effects, **options), X, groups=LABELS)
    Z = model.transform(X, groups=LABELS)
    assert np.isfinite(Z).all()
    assert np.isfinite(model.score_samples(X, groups=LABELS)).all()
    assert np.isfinite(model.masked_score(X, groups=LABELS))
    assert np.isfinite(model.group_shifts()).all(axis=None)
    assert np.isfinite(np.asarray(model.impute(X, groups=LABELS))).all()
    assert (model.module_.row_groups.shift == 0).all() == (effects == "means")
    again = kind.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(X, groups=LABELS), Z)


def test_roles_and_support_are_found(known):
    data, model = known
    assert len(model.active_factors_) == 4
    assert support_f1(model.mask_, data.mask) > 0.95
    table = model.group_factors()
    assert sorted(table["role"]) == ["group 0", "group 1", "shared", "shared"]
    assert (table[["group 0", "group 1"]] == 0).to_numpy().sum() == 2


def test_a_shift_stays_out_of_the_factors(known):
    data, model = known
    Z = model.transform(data.X, groups=data.target)[:, model.active_factors_]
    accuracy = cross_val_score(LogisticRegression(), Z, data.target, scoring="balanced_accuracy").mean()
    assert accuracy < 0.6
    shifts = model.group_shifts()
    true = [data.mean[data.target == g].mean(0) for g in ("group 0", "group 1")]
    found = shifts["group 0"] - shifts["group 1"]
    np.testing.assert_allclose(found, true[0] - true[1], atol=0.5)


def test_rows_of_a_new_group_get_the_codes_that_they_would_have(known):
    data, model = known
    rows = data.target == "group 0"
    expected = model.transform(data.X[rows], groups=data.target[rows])
    moved = data.X[rows] + 3.0 * np.random.default_rng(0).normal(size=20)
    with pytest.warns(DataWarning, match=r"Groups that fit did not see: 'new'. They are taken together"):
        found = model.transform(moved, groups=np.full(rows.sum(), "new"))
    shared = [k for k in model.active_factors_ if model.group_factors().iloc[k]["role"] == "shared"]
    for k in shared:
        assert np.corrcoef(found[:, k], expected[:, k])[0, 1] > 0.97
    with pytest.warns(DataWarning, match="fitted with groups and none are given here"):
        np.testing.assert_allclose(model.transform(moved), found, rtol=1e-5, atol=1e-6)


def test_fit_transform_passes_groups_on(known):
    X = make_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        Z = VAE(**TINY).fit_transform(X, groups=LABELS)
    np.testing.assert_array_equal(Z, fit(VAE(**TINY), X, groups=LABELS).transform(X, groups=LABELS))


def test_the_certificate_reads_a_fit_with_groups(known):
    data, model = known
    certificate = model.identifiability(data.X, groups=data.target)
    assert len(certificate.table) == 4
    assert (model.communalities_ <= 1).all()


@pytest.mark.parametrize(
    "groups, message",
    [
        (LABELS[:-1], r"a group for each of 60 rows; got groups of shape \(59,\)"),
        ([None, *LABELS[1:]], "got missing ones in 1 row. Give"),
        ([float("nan"), *LABELS[1:]], "got missing ones in 1 row. Give"),
        (pd.array([pd.NA, pd.NA, *LABELS[2:]]), "got missing ones in 2 rows. Give"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, message):
    with pytest.raises(DataError, match=message):
        VAE(**TINY).fit(make_table(), groups=groups)


@pytest.mark.parametrize("kind", [VSC, OIVAE])
def test_models_that_know_no_groups_say_so(kind):
    with pytest.raises(ParameterError, match=f"no groups for {kind.__name__}.* Use SparseVAE or VAE"):
        kind(**TINY).fit(make_table(), groups=LABELS)


def test_groups_for_a_model_without_are_refused(fitted, make_table):
    with pytest.raises(DataError, match="Expected no groups, as in fit"):
        fitted().transform(make_table(), groups=LABELS)
    with pytest.raises(ParameterError, match=r"this one was fitted without. Pass groups= to fit"):
        fitted().group_factors()


def test_a_report_says_which_factors_are_shared(known):
    data, model = known
    content = build_content(model, evidence=model.evidence(model.codes(data.X, groups=data.target)))
    [sentence] = [text for text in content["summary"] if "groups" in text]
    assert sentence.startswith("2 of 4 factors are shared by both groups; ")
    assert "belongs to group 1" in sentence
    assert "shared by both groups" in render_html(content)
