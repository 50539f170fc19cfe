import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsevae.datasets.anchored import correlation_matrix, draw_curves, draw_supports, mask_of
from sparsevae.exceptions import ParameterError


def supports(seed=0, **changes):
    settings = {
        "n_features": 60,
        "n_factors": 6,
        "anchors_per_factor": 5,
        "max_factors_per_feature": 3,
        "n_noise_features": 0,
        "n_factors_without_anchors": 0,
    }
    return draw_supports(np.random.default_rng(seed), **settings | changes)


@settings(max_examples=60, deadline=None)
@given(
    n_factors=st.integers(1, 8),
    extra=st.integers(0, 40),
    anchors=st.integers(1, 6),
    most=st.integers(1, 4),
    noise=st.integers(0, 5),
    seed=st.integers(0, 100),
)
def test_every_factor_has_anchors_and_sizes_are_as_asked(n_factors, extra, anchors, most, noise, seed):
    n_features = n_factors + extra + noise
    found = supports(
        seed,
        n_features=n_features,
        n_factors=n_factors,
        anchors_per_factor=anchors,
        max_factors_per_feature=most,
        n_noise_features=noise,
    )
    sizes = [len(support) for support in found]
    assert len(found) == n_features
    assert sizes.count(0) == noise
    assert max(sizes) <= max(1, min(most, n_factors))
    per_factor = [found.count((k,)) for k in range(n_factors)]
    assert min(per_factor) >= 1
    if min(most, n_factors) > 1:
        assert per_factor == [min(anchors, (n_features - noise) // n_factors)] * n_factors


def test_factors_share_the_mixed_features_evenly():
    uses = mask_of(supports(), 6).sum(axis=0)
    assert uses.max() - uses.min() <= 1


def test_factors_without_anchors_occur_in_mixed_features_only():
    found = supports(n_factors_without_anchors=2)
    for k in (4, 5):
        assert (k,) not in found
        assert sum(k in support for support in found) >= 2
    assert all(found.count((k,)) == 5 for k in range(4))


def test_few_features_still_hold_the_factors_without_anchors():
    found = supports(n_features=8, n_factors=4, n_factors_without_anchors=2)
    assert all(sum(k in support for support in found) >= 2 for k in (2, 3))


@pytest.mark.parametrize(
    "changes",
    [
        {"n_features": 5},
        {"n_noise_features": 55},
        {"n_factors_without_anchors": 7},
        {"n_factors_without_anchors": 2, "max_factors_per_feature": 1},
    ],
)
def test_problems_without_room_are_refused(changes):
    with pytest.raises(ParameterError, match="Expected"):
        supports(**changes)


def test_first_two_anchors_of_a_factor_are_linear_and_half_the_mixed_features_interact():
    found = supports()
    curves = draw_curves(np.random.default_rng(1), found, interaction_share=0.5, nonlinear_share=1.0)
    for k in range(6):
        own = [curve for curve in curves if curve.factors == (k,)]
        assert [curve.terms[0].shape for curve in own[:2]] == ["linear", "linear"]
        assert all(curve.terms[0].shape != "linear" for curve in own[2:])
    assert sum(any(term.shape == "product" for term in curve.terms) for curve in curves) == 15
    assert [curve.factors for curve in curves] == found


@pytest.mark.parametrize("name", ["interaction_share", "nonlinear_share"])
def test_shares_outside_0_and_1_are_refused(name):
    shares = {"interaction_share": 0.5, "nonlinear_share": 0.5} | {name: 1.5}
    with pytest.raises(ParameterError, match=name):
        draw_curves(np.random.default_rng(0), supports(), **shares)


def test_one_number_becomes_an_equicorrelated_matrix():
    np.testing.assert_array_equal(correlation_matrix(0.3, 2), [[1, 0.3], [0.3, 1]])
    assert correlation_matrix(0.3, 0).shape == (0, 0)


@pytest.mark.parametrize("correlation", [1.0, -0.6, np.eye(2), np.full((3, 3), 0.5)])
def test_impossible_correlations_are_refused(correlation):
    with pytest.raises(ParameterError, match="correlation"):
        correlation_matrix(correlation, 3)
