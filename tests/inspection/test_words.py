from __future__ import annotations

import numpy as np
import pytest

from sparsevae.exceptions import ParameterError
from sparsevae.inspection.samples import extreme_samples, list_samples
from sparsevae.inspection.words import coherence_of, relevance


def test_relevance_goes_from_lift_to_frequency():
    high, overall = np.array([4.0, 1.0]), np.array([4.0, 0.1])
    np.testing.assert_allclose(relevance(high, overall, 1.0), np.log(high))
    np.testing.assert_allclose(relevance(high, overall, 0.0), [0.0, np.log(10.0)])
    half = (relevance(high, overall, 0.0) + relevance(high, overall, 1.0)) / 2
    np.testing.assert_allclose(relevance(high, overall, 0.5), half)


def test_words_that_are_never_used_have_a_finite_relevance():
    assert np.isfinite(relevance(np.zeros(2), np.array([0.0, 1.0]), 0.3)).all()


def test_coherence_is_of_the_features_that_rise():
    X = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]])
    effects = np.array([[1.0], [1.0], [-1.0]])
    np.testing.assert_allclose(coherence_of(effects, np.ones((3, 1)), X, np.array([0]), 10), [1.0])
    assert coherence_of(effects, np.ones((3, 1)), X, np.array([], dtype=int), 10).shape == (0,)


def test_the_ends_of_a_factor_are_its_largest_and_smallest_values(rng):
    Z, rows = rng.standard_normal((9, 2)), np.arange(100, 109)
    found = extreme_samples(Z, rows, 3)
    for k in range(2):
        np.testing.assert_array_equal(found["high"][:, k], np.sort(Z[:, k])[::-1][:3])
        np.testing.assert_array_equal(found["low"][:, k], np.sort(Z[:, k])[:3])
        np.testing.assert_array_equal(found["strongest"][:, k], rows[np.argsort(-Z[:, k])[:3]])
    table = list_samples(found, 2, {1: "zeal"})
    assert table["factor"].unique().tolist() == ["zeal"]
    assert table["end"].tolist() == ["strongest", "strongest", "weakest", "weakest"]
    assert table["value"].iloc[0] == Z[:, 1].max()
    with pytest.raises(ParameterError, match="Expected n of at most 3"):
        list_samples(found, 4, {1: "zeal"})


def test_one_row_has_both_ends():
    assert extreme_samples(np.zeros((1, 2)), np.arange(1))["weakest"].shape == (1, 2)
