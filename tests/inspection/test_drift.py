"""Drift: a moved mix of factors is told from a broken curve."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparsevae.exceptions import DataError

LOADINGS = np.kron(np.eye(2), np.array([[1.0], [0.8], [-1.2], [0.9], [1.1]]))
NOISE = 0.5


def draw(n_samples, seed, mean=0.0, deviation=1.0):
    """Rows of ten features of two factors, in units of their own."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n_samples, 2)) * deviation + mean
    return z, (z @ LOADINGS.T + NOISE * rng.normal(size=(n_samples, 10))) * np.arange(1, 11) + 3.0


@pytest.fixture(scope="module")
def model(linear_model):
    """The true linear model, with the reference that a fit keeps."""
    factors, X = draw(1000, 0)
    return linear_model(X, factors, LOADINGS * np.arange(1, 11)[:, None] / X.std(0)[:, None])


def test_nothing_is_said_of_rows_like_those_of_the_fit(model):
    alarms = [model.drift(draw(500, seed)[1]) for seed in range(1, 13)]
    assert sum(bool(drift.broken) for drift in alarms) <= 2
    assert sum(bool(drift.moved) for drift in alarms) <= 2
    assert "follows its factors as in the fit" in min(alarms, key=lambda d: len(d.broken)).summary()


@pytest.mark.parametrize("j", [0, 4, 7])
def test_a_shifted_feature_is_found_alone(model, j):
    _, X = draw(500, 20 + j)
    X[:, j] += X[:, j].std()
    drift = model.drift(X)
    assert drift.broken == [f"x{j}"]
    row = drift.features.loc[f"x{j}"]
    assert row["shift"] > 1.0
    assert row["slope"] == pytest.approx(1.0, abs=0.2)
    assert f"x{j}: shift +" in drift.summary()


@pytest.mark.parametrize("j", [1, 8])
def test_a_halved_slope_is_found_alone(model, j):
    z, X = draw(500, 30 + j)
    X[:, j] -= 0.5 * (j + 1) * (z @ LOADINGS.T)[:, j]
    drift = model.drift(X)
    assert drift.broken == [f"x{j}"]
    assert drift.features.loc[f"x{j}", "slope"] == pytest.approx(0.5, abs=0.15)


def test_a_moved_mix_is_no_fault_of_features(model):
    drift = model.drift(draw(500, 40, mean=np.array([1.0, 0.0]))[1])
    assert drift.broken == []
    assert len(drift.moved) == 1
    assert abs(drift.factors.loc[drift.moved[0], "mean"]) == pytest.approx(1.0, abs=0.25)
    columns = drift.features["column_p_value"]
    assert (columns[[f"x{j}" for j in range(5)]] < 1e-4).all()
    assert (columns[[f"x{j}" for j in range(5, 10)]] > 1e-4).all()


def test_a_feature_turned_round_has_the_slope_turned_round(model):
    _, X = draw(500, 90)
    X[:, 2] = 6.0 - X[:, 2]  # about its mean
    drift = model.drift(X)
    assert drift.broken == ["x2"]
    row = drift.features.loc["x2"]
    assert row["slope"] == pytest.approx(-1.0, abs=0.2)
    assert row["shift"] == pytest.approx(0.0, abs=0.3)


@pytest.mark.parametrize("deviation", [0.0, 0.2, 0.5, 2.0])
@pytest.mark.parametrize("n_samples", [300, 1000])
def test_factors_that_vary_less_or_more_are_no_fault_of_features(model, deviation, n_samples):
    drift = model.drift(draw(n_samples, 70, deviation=np.array([deviation, 1.0]))[1])
    assert drift.broken == []
    assert len(drift.moved) == 1
    assert drift.factors.loc[drift.moved[0], "deviation"] == pytest.approx(deviation, abs=0.3)


def test_a_fault_is_found_where_a_factor_hardly_varies(model):
    _, X = draw(500, 80, deviation=np.array([0.1, 1.0]))
    X[:, 2] += 3.0  # a standard deviation of the fit
    X[:, 8] += 9.0
    assert set(model.drift(X).broken) == {"x2", "x8"}


def test_two_faults_are_both_found(model):
    _, X = draw(500, 50)
    X[:, 2] += X[:, 2].std()
    X[:, 3] -= 1.5 * X[:, 3].std()
    assert set(model.drift(X).broken) == {"x2", "x3"}


def test_holes_and_json(model):
    _, X = draw(500, 60)
    X[:, 6] += X[:, 6].std()
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.1] = np.nan
    drift = model.drift(X)
    assert drift.broken == ["x6"]
    record = json.loads(json.dumps(drift.to_dict(), allow_nan=False, default=lambda value: value.item()))
    assert record["broken"] == ["x6"]
    assert len(record["features"]) == 10


def test_too_few_rows_are_refused(model):
    with pytest.raises(DataError, match="at least 20 new rows; got 5"):
        model.drift(draw(5, 1)[1])
