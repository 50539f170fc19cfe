from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from sparsevae.identifiability import certify
from sparsevae.inspection.codes import Codes

# Factor 0: two lines of different scale. Factor 1: a line and a bent curve. Factor 2: a single anchor.
# Factor 3: none. Factor 4: inactive.
RISING = np.zeros((12, 5))
RISING[[0, 1], 0] = 1.0, -4.0
RISING[[2, 3], 1] = 1.0, 2.0
RISING[4, 2] = 1.5
RISING[5:, :4] = [
    [1, 1, 0, 0],
    [0, 1, 1, 0],
    [0, 0, 1, 1],
    [1, 0, 0, 1],
    [0, 1, 0, -1],
    [1, -1, 0, 0],
    [0.5, 0, 1, 0],
]
FALLING = RISING.copy()
FALLING[3, 1] = 0.1
FEATURES = [f"item {j}" for j in range(12)]
NAMES = [f"factor {k}" for k in range(5)]


@pytest.fixture
def certificate(make_module):
    made = make_module(RISING, FALLING, n_samples=1500)
    return certify(made.module, made.codes, feature_names=FEATURES, factor_names=NAMES)


def test_there_is_a_row_per_active_factor(certificate):
    assert certificate.table.index.tolist() == NAMES[:4]


def test_verdicts_follow_the_anchors(certificate):
    verdicts = certificate.table["verdict"]
    assert verdicts.tolist() == ["identified", "weak", "not identified", "not identified"]


def test_anchors_and_the_best_pair_are_named(certificate):
    table = certificate.table
    assert set(table["anchors"].iloc[0]) == {"item 0", "item 1"}
    assert table["n_anchors"].tolist() == [2, 2, 1, 0]
    assert table["pair"].iloc[0] == ("item 0", "item 1")
    assert table["pair"].iloc[2] is None


def test_curves_are_compared_by_the_fit_and_by_the_data(certificate):
    pairs = certificate.pairs.set_index("factor")
    assert pairs["same_curve"].to_dict() == {"factor 0": True, "factor 1": False}
    assert pairs["curve_difference"]["factor 0"] < 1e-4 < pairs["threshold"]["factor 0"]
    assert pairs["p_value"]["factor 0"] > 0.001
    assert pairs["p_value"]["factor 1"] < 1e-6


def test_dominance_is_positive_where_anchors_stand_out(certificate):
    row = certificate.table.loc["factor 0"]
    assert 0.1 < row["a2_margin"] < 1.0
    assert row["a2_rival"] in FEATURES[5:]


def test_distance_to_the_nearest_factor_is_that_of_the_model(certificate):
    np.testing.assert_allclose(certificate.table["a3_margin"], 0.7, atol=1e-5)
    assert not (certificate.table["nearest_factor"] == certificate.table.index).any()


def test_strength_is_the_share_of_variance_explained(certificate):
    expected = 1.0 / (1.0 + 0.3**2)  # of the weaker anchor of factor 0
    assert abs(certificate.table["strength"]["factor 0"] - expected) < 0.02


def test_correlations_confirm_anchors_without_the_fit(certificate):
    assert certificate.table["confirmed"].iloc[0] == 2
    assert certificate.table["confirmed"].iloc[2:].tolist() == [0, 0]


def test_correlations_suggest_anchors_that_the_mask_has_missed(make_module):
    """A third line whose mask has a needless second entry."""
    rising = np.vstack([RISING, [2.0, 0, 0, 0, 0]])
    made = make_module(rising, np.vstack([FALLING, rising[-1]]), n_samples=1500)
    with torch.no_grad():
        made.module.mask.weight[12, 1] = 1.0
    names = [*FEATURES, "item 12"]
    result = certify(made.module, made.codes, feature_names=names, factor_names=NAMES)
    assert result.table["suggested"]["factor 0"] == ["item 12"]


def test_the_summary_has_a_line_per_factor_and_the_limits(certificate):
    text = certificate.summary()
    assert "4 active factors: 1 identified, 1 weak, 2 not identified." in text
    assert all(name in text for name in NAMES[:4])
    assert "Limits:" in text
    assert str(certificate) == text
    assert max(map(len, text.splitlines())) <= 100


def test_stability_enters_the_verdict(make_module):
    class Result:
        reproducibility = pd.Series({"factor 0": 0.6, "factor 1": 1.0})

    made = make_module(RISING, FALLING)
    result = certify(made.module, made.codes, feature_names=FEATURES, factor_names=NAMES, stability=Result())
    assert result.table["returns"].iloc[:2].tolist() == [0.6, 1.0]
    assert np.isnan(result.table["returns"].iloc[2])
    assert result.table["verdict"].iloc[0] == "weak"


def test_given_anchors_are_recognised(make_module):
    made = make_module(RISING, FALLING)
    made.module.mask.frozen[[2, 3]] = True
    result = certify(made.module, made.codes, feature_names=FEATURES, factor_names=NAMES)
    row = result.table.loc["factor 1"]
    assert row["verdict"] == "identified"
    assert "Theorem 1" in row["reason"]


def test_few_samples_leave_out_what_they_cannot_tell(make_module):
    made = make_module(RISING, FALLING)
    result = certify(made.module, Codes(made.module, made.X[:20]), feature_names=FEATURES, factor_names=NAMES)
    assert result.table["p_value"].isna().all()
    assert any("20 samples are too few" in note for note in result.notes)


def test_a_model_without_factors_has_an_empty_table(make_module):
    made = make_module(np.zeros((6, 2)), np.zeros((6, 2)))
    result = certify(made.module, made.codes, feature_names=FEATURES[:6], factor_names=NAMES[:2])
    assert result.table.empty
    assert result.summary().startswith("0 active factors")


def test_under_an_identity_prior_the_correlation_is_that_of_the_posterior_means(make_module):
    made = make_module(RISING[:, :2], FALLING[:, :2], correlation=0.6, covariance="identity")
    with torch.no_grad():
        made.module.factor_covariance.copy_(torch.eye(2))
    result = certify(made.module, made.codes, feature_names=FEATURES, factor_names=NAMES[:2])
    assert (result.table["a3_margin"] < 0.6).all()


@pytest.mark.parametrize("likelihood", ["poisson", "multinomial"])
def test_counts_say_what_is_not_proved(make_module, likelihood):
    made = make_module(RISING, FALLING, likelihood=likelihood)
    result = certify(made.module, made.codes, feature_names=FEATURES, factor_names=NAMES)
    assert any("not proved" in note for note in result.notes)
    assert any("shift" in note for note in result.notes) == (likelihood == "multinomial")
    assert (result.table["strength"].dropna().between(0, 1)).all()


def test_the_certificate_is_the_same_every_time(make_module):
    made = make_module(RISING, FALLING)
    first, second = (
        certify(made.module, made.codes, feature_names=FEATURES, factor_names=NAMES).table for _ in range(2)
    )
    pd.testing.assert_frame_equal(first, second)


def test_structure_has_a_line_of_its_own(make_module):
    rising = np.array([[1, 0], [2, 0], [1.5, 0], [0, 1], [0, 2], [0, 1.5], [1, 1]])
    made = make_module(rising, rising)
    names = {"feature_names": list("abcdefg"), "factor_names": ["f0", "f1"]}
    table = certify(made.module, made.codes, **names).table
    assert table["structure"].str.startswith("No other factor has all of its features").all()
    assert table["structure"].str.contains("Three features that depend on it alone").all()
    nested = make_module(rising[[0, 1, 2, 6]], rising[[0, 1, 2, 6]])
    table = certify(nested.module, nested.codes, **{**names, "feature_names": list("abcg")}).table
    assert table["mixed_with"].tolist() == [["f1"], ["f0"]]
