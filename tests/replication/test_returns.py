from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from sparsevae.io.record import to_json
from sparsevae.metrics.replication import FactorSet
from sparsevae.replication import Replication
from sparsevae.replication.returns import compare_parts, find_returns

FEATURES = [f"item {j}" for j in range(12)]
SPLITS = [("1", "half 1a", "half 1b")]


@pytest.fixture
def reference():
    codes = np.random.default_rng(0).standard_normal((300, 3))
    return FactorSet(codes, np.repeat(np.eye(3), 4, axis=0) * [0.5, 0.4, 0.3])


def with_noise(factors, column, amount, seed=1):
    codes = factors.codes.copy()
    codes[:, column] += amount * np.random.default_rng(seed).standard_normal(len(codes))
    return FactorSet(codes, factors.shares)


def returns(reference, first, second):
    parts = {"half 1a": first, "half 1b": second}
    return find_returns(reference, parts, SPLITS, ["a", "b", "c"], FEATURES)


def test_a_factor_returns_if_both_parts_show_it(reference):
    factors, matches = returns(reference, with_noise(reference, 1, 2.0), reference)
    assert factors["returned"].tolist() == [1, 0, 1]
    assert factors["n_splits"].tolist() == [1, 1, 1]
    assert len(matches) == 6
    of_b = matches[matches["factor"] == "b"]["correlation"]
    assert factors["correlation"][1] == pytest.approx(of_b.mean())
    assert of_b.iloc[1] == pytest.approx(1.0)
    assert factors["features"][0][:4] == FEATURES[:4]


def test_what_both_parts_share_is_not_the_factor_unless_it_resembles_it(reference):
    other = with_noise(reference, 0, 2.0)
    factors, _ = returns(reference, other, other)
    assert compare_parts("m", {"half 1a": other, "half 1b": other}, SPLITS)[0]["back"] == 3
    assert factors["returned"].tolist() == [0, 1, 1]


def test_parts_that_resemble_the_factor_must_resemble_each_other(reference):
    first, second = with_noise(reference, 2, 0.42, seed=1), with_noise(reference, 2, 0.42, seed=2)
    factors, matches = returns(reference, first, second)
    assert (matches[matches["factor"] == "c"]["correlation"] >= 0.9).all()
    assert factors["returned"].tolist() == [1, 1, 0]


def test_a_part_with_fewer_factors_shows_none_of_some(reference):
    factors, matches = returns(reference, reference.take(np.array([2])), reference)
    assert factors["returned"].tolist() == [0, 0, 1]
    assert matches["correlation"].tolist()[:3] == [0.0, 0.0, pytest.approx(1.0)]


def test_a_factor_of_two_features_is_there_and_does_not_count(reference):
    shares = reference.shares.copy()
    shares[4:6, 1] = 0.0
    factors, _ = returns(FactorSet(reference.codes, shares), reference, reference)
    assert factors["counts"].tolist() == [True, False, True]
    assert factors["features"][1] == FEATURES[6:8]


def replication(reference, first, second, **more):
    parts = {"half 1a": first, "half 1b": second}
    rows = [*compare_parts("SparseVAE", parts, SPLITS), *compare_parts("varimax", parts, SPLITS)]
    factors, matches = returns(reference, first, second)
    return Replication(factors, pd.DataFrame(rows), matches, 300, **more)


def test_the_summary_has_every_factor_the_counts_and_varimax(reference):
    result = replication(reference, with_noise(reference, 1, 2.0), reference, notes=("Something.",))
    lines = str(result).splitlines()
    assert lines[0] == "300 rows, 1 split into random halves; 3 factors in all rows."
    assert lines[1].startswith("  a  back in 1 of 1  r 1.00  overlap 1.00  item 0, item 1, item 2, item 3")
    assert lines[4] == "2 of 3 come back in every split."
    assert lines[5].startswith("Between halves: 2 of 3 factors of SparseVAE come back (match 0.")
    assert "; 2 of 3 factors of a varimax rotation of 3 come back" in lines[5]
    assert lines[6:] == ["Something."]
    assert result.returned == ["a", "c"]


def test_parts_with_other_numbers_of_factors_are_pointed_out(reference):
    two = reference.take(np.array([0, 1]))
    result = replication(reference, two, two, studies=("x", "y"))
    assert "2 studies ('x', 'y'), 1 pair" in str(result)
    assert "Between studies: 2 of 2 factors of SparseVAE" in str(result)
    assert "Parts of the rows have 2 factors that count on average, all rows 3" in str(result)


def test_the_record_is_plain_values(reference):
    result = replication(reference, reference, reference)
    record = json.loads(to_json(result.to_dict()))
    assert record["returned"] == ["a", "b", "c"]
    assert record["factors"][0]["features"][0] == "item 0"
    assert record["means"]["varimax"]["back"] == 3
    assert [row["split"] for row in record["splits"]] == ["1", "1"]
