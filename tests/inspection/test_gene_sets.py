from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control, fisher_exact

from sparsevae.exceptions import DataError
from sparsevae.inspection.gene_sets import compare_sets

FEATURES = [f"g{j}" for j in range(20)]
SETS = {"first": FEATURES[:5], "last": FEATURES[-5:], "unknown": ["x", "y", "z"], "small": FEATURES[:2]}


def test_p_values_are_those_of_fishers_exact_test():
    table = compare_sets({"a": np.array([0, 1, 2, 9])}, SETS, FEATURES)
    assert table["set"].tolist() == ["first"]
    row = table.iloc[0]
    exact = fisher_exact([[3, 1], [2, 14]], alternative="greater").pvalue
    assert row["p_value"] == pytest.approx(exact)
    assert row["fold"] == pytest.approx(3 / (4 * 5 / 20))
    assert row["features"] == "g0, g1, g2"
    assert (row["n_overlap"], row["n_factor"], row["n_set"]) == (3, 4, 5)


def test_all_tests_count_in_the_false_discovery_rate():
    supports = {"a": np.array([0, 1, 2, 3, 4]), "b": np.array([15, 16, 3]), "empty": np.array([], dtype=int)}
    table = compare_sets(supports, SETS, FEATURES)
    # Two sets are large enough, for three factors: six tests, of which four have an overlap or p = 1.
    first = table[table["factor"] == "a"].iloc[0]
    p = [first["p_value"], 1.0, *table[table["factor"] == "b"]["p_value"], 1.0, 1.0]
    assert first["q_value"] == pytest.approx(false_discovery_control(p).min())
    assert table["factor"].tolist() == ["a", "b", "b"]
    assert (table["q_value"] >= table["p_value"]).all()


def test_a_smaller_least_size_tests_more_sets():
    table = compare_sets({"a": np.array([0, 1])}, SETS, FEATURES, min_size=2)
    assert set(table["set"]) == {"first", "small"}


def test_sets_of_unknown_genes_are_refused():
    with pytest.raises(
        DataError, match=r"such as 'g0', 'g1' and 18 more; got 1 with fewer, of names such as 'CD3D'"
    ):
        compare_sets({"a": np.array([0])}, {"T": ["CD3D", "CD3E", "CD3G"]}, FEATURES)


def test_sets_that_are_not_tested_are_said_to_be(caplog):
    with caplog.at_level("INFO", logger="sparsevae"):
        compare_sets({"a": np.array([0, 1])}, SETS, FEATURES)
    assert caplog.messages == ["2 of 4 sets are not tested: fewer than 3 of their features are in the fit."]


def test_no_sets_are_refused():
    with pytest.raises(DataError, match="Expected at least one set of features; got none"):
        compare_sets({"a": np.array([0])}, {}, FEATURES)
