from __future__ import annotations

import numpy as np

from sparsevae.identifiability.evidence import pair_evidence

FACTORS = np.array([0, 0, 0, 1, 1])


def draw(rng, n_samples=2000):
    """Lines and a bent curve of the first factor, two lines of the second, and three mixed features."""
    z = rng.standard_normal((n_samples, 2)) @ np.array([[1.0, 0.4], [0.0, 0.9]])
    a, b = z.T
    mean = np.column_stack([a, 2 * a, np.maximum(a, 0), b, -b, a + b, a - b, 0.5 * a + np.maximum(b, 0)])
    return mean, mean + 0.4 * mean.std(0) * rng.standard_normal(mean.shape)


def test_only_anchors_of_one_factor_are_paired(rng):
    mean, X = draw(rng)
    evidence = pair_evidence(mean[:, :5], np.arange(5), FACTORS, X)
    assert list(zip(evidence.first, evidence.second, strict=True)) == [(0, 1), (0, 2), (1, 2), (3, 4)]


def test_the_data_tell_different_curves_apart_and_equal_ones_not(rng):
    mean, X = draw(rng)
    evidence = pair_evidence(mean[:, :5], np.arange(5), FACTORS, X)
    equal = np.array([True, False, False, True])
    assert (evidence.p_value[equal] > 0.01).all()
    assert (evidence.p_value[~equal] < 1e-6).all()
    assert (evidence.data_difference[equal] < 0.01).all()
    assert (evidence.data_difference[~equal] > 0.02).all()
    np.testing.assert_allclose(evidence.curve_difference[equal], 0.0, atol=1e-9)


def test_anchors_are_found_by_their_position_in_the_table(rng):
    mean, X = draw(rng)
    order = np.array([5, 0, 6, 1, 2, 7, 3, 4])
    moved = pair_evidence(mean[:, :5], np.array([1, 3, 4, 6, 7]), FACTORS, X[:, order])
    plain = pair_evidence(mean[:, :5], np.arange(5), FACTORS, X)
    np.testing.assert_allclose(moved.p_value, plain.p_value, rtol=1e-3)


def test_without_data_only_curves_are_compared(rng):
    mean, _ = draw(rng)
    evidence = pair_evidence(mean[:, :5], np.arange(5), FACTORS, None)
    assert np.isnan(evidence.p_value).all()
    assert np.isfinite(evidence.curve_difference).all()


def test_three_features_leave_nothing_to_compare_by(rng):
    mean, X = draw(rng)
    evidence = pair_evidence(mean[:, :2], np.arange(2), FACTORS[:2], X[:, :3])
    assert np.isnan(evidence.data_difference).all()


def test_no_pairs_are_no_trouble(rng):
    mean, X = draw(rng)
    evidence = pair_evidence(mean[:, [0, 3]], np.array([0, 3]), np.array([0, 1]), X)
    assert all(len(column) == 0 for column in evidence)


def test_features_of_two_values_have_no_squares_to_compare_by(rng):
    mean, _ = draw(rng, 100)
    answers = np.where(mean[:, [0, 1, 3, 4, 5]] > 0, 1.0, -1.0)
    evidence = pair_evidence(mean[:, :2], np.arange(2), FACTORS[:2], answers)
    assert np.isfinite(evidence.p_value).all()
