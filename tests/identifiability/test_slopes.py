from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.identifiability import slopes
from sparsevae.identifiability.slopes import anchor_positions, curve_differences, dominance, response_curves

# Two linear anchors of each of two factors, a bent anchor of the first, and a feature of both.
RISING = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, -1.0], [2.0, 0.0], [1.0, 1.0]])
FALLING = RISING.copy()
FALLING[4, 0] = 0.2


def test_anchors_are_the_features_of_one_factor():
    support = np.array([[1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]], dtype=bool)
    features, factors = anchor_positions(support)
    assert features.tolist() == [0, 1]
    assert factors.tolist() == [0, 2]


def test_the_curve_of_an_anchor_depends_on_its_factor_alone(make_module):
    module = make_module(RISING, FALLING).module
    z = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    moved = z.clone()
    moved[:, 1] += 1.0
    anchors = np.array([0, 1, 4])
    np.testing.assert_array_equal(
        response_curves(module, z, anchors), response_curves(module, moved, anchors)
    )


def test_no_anchors_have_no_curves(make_module):
    module = make_module(RISING, FALLING).module
    assert response_curves(module, torch.zeros(5, 2), np.array([], dtype=int)).shape == (5, 0)


@given(st.floats(0.01, 100).flatmap(lambda a: st.sampled_from([a, -a])), st.floats(-50, 50))
def test_curves_are_compared_up_to_scale_sign_and_shift(scale, shift):
    z = np.random.default_rng(0).standard_normal(400)
    difference = curve_differences(np.column_stack([np.tanh(z), scale * np.tanh(z) + shift]))
    np.testing.assert_allclose(difference, 0.0, atol=1e-9)


def test_the_difference_of_two_curves_is_the_residual_variance_of_a_regression(rng):
    z = rng.standard_normal(500)
    curves = np.column_stack([z, np.logaddexp(0, 2 * z)])
    target = (curves[:, 1] - curves[:, 1].mean()) / curves[:, 1].std()
    design = np.column_stack([np.ones(500), z])
    residual = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
    np.testing.assert_allclose(curve_differences(curves)[0, 1], residual.var(), rtol=1e-9)


def test_a_line_and_a_parabola_have_nothing_in_common():
    z = np.linspace(-2, 2, 401)
    assert curve_differences(np.column_stack([z, z**2]))[0, 1] == 1.0


def test_a_flat_curve_is_like_no_other():
    z = np.linspace(-2, 2, 401)
    flat = np.full(401, 0.1) + 1e-12 * z
    np.testing.assert_array_equal(curve_differences(np.column_stack([z, flat, flat])), 1 - np.eye(3))


def test_first_order_correlations_of_a_linear_model_are_exact(make_module):
    loadings = np.array([[1.0, 0.0], [-3.0, 0.0], [0.0, 2.0], [0.6, 0.8]])
    made = make_module(loadings, loadings, correlation=0.5)
    C = np.array([[1.0, 0.5], [0.5, 1.0]])
    z = torch.as_tensor(made.factors[:40], dtype=torch.float32)
    result = dominance(made.module, z, C, np.array([0, 1, 2]), np.array([0, 0, 1]))
    signal = loadings @ C @ loadings.T
    expected = np.abs(signal) / np.sqrt(np.outer(signal.diagonal(), signal.diagonal()))
    np.testing.assert_allclose(result.similarity, expected[:3], atol=1e-5)
    # Right side of A2 over its left side, |b_j| Σ|b_l| / b_j².
    expected = np.abs(loadings).sum(1) / np.abs(np.array([1.0, 3.0, 2.0]))[:, None]
    np.testing.assert_allclose(result.ratio, expected, atol=1e-5)


def test_an_anchor_with_another_curve_is_less_alike_than_one_with_the_same(make_module):
    made = make_module(RISING, FALLING)
    z = torch.as_tensor(made.factors, dtype=torch.float32)
    result = dominance(made.module, z, np.eye(2), np.array([0]), np.array([0])).similarity[0]
    np.testing.assert_allclose(result[:2], 1.0, atol=1e-4)
    assert 0.5 < result[4] < 0.95
    np.testing.assert_allclose(result[2:4], 0.0, atol=1e-5)


def test_scale_of_a_feature_changes_the_ratio_but_not_the_similarity(make_module):
    z = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    bigger = RISING.copy()
    bigger[5] *= 10
    falling = FALLING.copy()
    falling[5] *= 10
    plain, scaled = (
        dominance(make_module(r, f).module, z, np.eye(2), np.array([0]), np.array([0]))
        for r, f in ((RISING, FALLING), (bigger, falling))
    )
    np.testing.assert_allclose(plain.similarity, scaled.similarity, atol=1e-5)
    np.testing.assert_allclose(10 * plain.ratio[0, 5], scaled.ratio[0, 5], rtol=1e-4)


def test_blocks_of_samples_do_not_matter(make_module, monkeypatch):
    made = make_module(RISING, FALLING)
    z = torch.as_tensor(made.factors[:50], dtype=torch.float32)
    arguments = (made.module, z, np.eye(2), np.array([0, 2]), np.array([0, 1]))
    whole = dominance(*arguments)
    monkeypatch.setattr(slopes, "_SLOPES_AT_ONCE", 40)
    for a, b in zip(whole, dominance(*arguments), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
