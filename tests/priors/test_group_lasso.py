from __future__ import annotations

import hypothesis.strategies as st
import torch
from hypothesis import given
from scipy.optimize import minimize

from sparsevae.priors import group_norm, group_proximal_step, proximal_step

FLOAT64 = torch.float64
seeds = st.integers(0, 2**31)


def _weights(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=FLOAT64)


@given(seeds, st.floats(0.01, 3.0))
def test_proximal_step_minimises_distance_plus_penalty(seed, threshold):
    weights = _weights(seed, 3)

    def objective(v):
        v = torch.as_tensor(v)
        return float(0.5 * (v - weights).square().sum() + threshold * torch.linalg.vector_norm(v))

    found = group_proximal_step(weights, threshold, (0,))
    searched = minimize(
        objective, weights.numpy() + 0.1, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    assert objective(found) <= searched.fun + 1e-8


@given(seeds)
def test_groups_are_zero_as_a_whole_or_point_where_they_did(seed):
    weights = _weights(seed, 4, 5, 3)
    found = group_proximal_step(weights, 2.0, (-2,))
    norms, lengths = group_norm(weights, (-2,)), group_norm(found, (-2,))
    assert ((found == 0).all(-2) == (norms.squeeze(-2) <= 2.0)).all()
    torch.testing.assert_close(lengths, (norms - 2.0).clamp_min(0.0))
    torch.testing.assert_close(found * norms, weights * lengths)


@given(seeds)
def test_groups_of_one_are_soft_thresholded(seed):
    weights, threshold = _weights(seed, 4, 3), _weights(seed + 1, 4, 3).abs()
    torch.testing.assert_close(group_proximal_step(weights, threshold, ()), proximal_step(weights, threshold))


def test_zero_groups_stay_zero_and_finite():
    zero = torch.zeros(2, 5, 3)
    assert torch.equal(group_proximal_step(zero, 0.0, (-2,)), zero)
    assert torch.equal(group_proximal_step(zero, 1.0, (-2,)), zero)
