from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sparsevae.identifiability.verdict import (
    THRESHOLDS,
    FactorEvidence,
    describe_covariance,
    describe_return,
    describe_theorem,
    judge,
)

GOOD = FactorEvidence(
    anchors=["a", "b", "c"],
    pair=("a", "b"),
    n_same_curve=2,
    curve_difference=0.003,
    data_difference=0.0,
    p_value=0.4,
    strength=0.6,
    a2_margin=0.2,
    a2_rival="d",
    a2_ratio=1.5,
    a3_margin=0.7,
    nearest_factor="sparsevae1",
    returns=0.95,
)


def changed(**values):
    return dataclasses.replace(GOOD, **values)


def test_good_evidence_identifies_a_factor():
    verdict, reason = judge(GOOD, "gaussian")
    assert verdict == "identified"
    assert "a and b" in reason
    assert "not proved" not in reason


@pytest.mark.parametrize(
    "item, verdict, phrase",
    [
        (FactorEvidence(), "not identified", "No feature depends on this factor alone"),
        (FactorEvidence(anchors=["a"]), "not identified", "Only a depends"),
        (FactorEvidence(anchors=["a"], given=["a"]), "weak", "A1 asks for two"),
        (changed(curve_difference=0.1), "weak", "the data alone do not tell them apart (p = 0.4)"),
        (changed(curve_difference=0.1, p_value=1e-5), "weak", "differ by 0.1 where A1 allows 0.02"),
        (changed(strength=0.01), "weak", "explains only 1.0%"),
        (changed(data_difference=0.2, p_value=1e-9), "weak", "explain 20% of the difference"),
        (changed(a2_margin=-0.1), "weak", "d is no anchor"),
        (changed(returns=0.7), "weak", "returned in only 70%"),
        (changed(returns=0.3), "not identified", "returned in only 30%"),
    ],
)
def test_each_shortcoming_has_its_verdict_and_its_sentence(item, verdict, phrase):
    result, reason = judge(item, "gaussian")
    assert result == verdict
    assert phrase in reason
    assert reason.endswith(".")
    assert reason.count(". ") == 0


@pytest.mark.parametrize(
    "values",
    [
        {"returns": np.nan},
        {"data_difference": np.nan, "p_value": np.nan},
        {"data_difference": 0.2, "p_value": 0.3},
        {"data_difference": 0.01, "p_value": 1e-12},
        {"a2_margin": -0.005},
        {"a2_margin": np.nan},
    ],
)
def test_what_is_unknown_or_within_chance_does_not_count_against_a_factor(values):
    assert judge(changed(**values), "gaussian")[0] == "identified"


def test_given_anchors_need_not_share_a_curve():
    verdict, reason = judge(changed(curve_difference=0.4, given=["a", "b"]), "gaussian")
    assert verdict == "identified"
    assert "Theorem 1" in reason


def test_other_likelihoods_say_what_is_not_proved():
    assert "not proved for the multinomial likelihood" in judge(GOOD, "multinomial")[1]


def test_thresholds_are_ordered():
    assert 0 < THRESHOLDS["returns_weak"] < THRESHOLDS["returns_identified"] < 1


@pytest.mark.parametrize(
    "match, verdict, phrase",
    [
        (0.97, "identified", "another sample should show it too"),
        (THRESHOLDS["match_weak"] + 0.01, "weak", "agree on it roughly"),
        (0.3, "not identified", "do not agree on it"),
    ],
)
def test_what_halves_of_the_rows_show_decides_whatever_the_curves_say(match, verdict, phrase):
    for item in (changed(match=match, n_pairs=10), changed(match=match, n_pairs=10, anchors=[], pair=None)):
        result, reason = judge(item, "gaussian")
        assert result == verdict
        assert phrase in reason


def test_a_group_whose_space_returns_is_named():
    item = changed(match=0.3, n_pairs=10, group=["F2", "F5"], group_match=0.98)
    assert "as a group {F2, F5} it is identified" in judge(item, "gaussian")[1]
    assert "The space of {F2, F5} comes back to 0.98." in describe_return(item)


def test_a_factor_without_halves_is_judged_by_the_theorem_and_says_so():
    assert "judged by the theorem alone" in judge(changed(), "gaussian")[1]
    assert describe_return(changed()).startswith("Not known")


def test_what_correlations_say_of_fewer_than_two_anchors_is_no_fraction():
    assert describe_covariance(changed(anchors=[])).endswith("it has none.")
    assert describe_covariance(changed(anchors=["a"])).endswith("it has only one.")
    assert describe_covariance(changed(confirmed=2)).endswith("confirm 2 of 3 anchors.")


def test_the_line_of_the_theorem_has_statistics_and_thresholds():
    line = describe_theorem(changed(curve_difference=0.1), "gaussian")
    assert "A1 fails" in line
    assert "(at most 0.02)" in line
    assert "A2 holds" in line
    assert describe_theorem(changed(anchors=["a"], pair=None), "gaussian").startswith(
        "A1 fails: only 1 feature"
    )
