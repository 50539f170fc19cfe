from __future__ import annotations

import pytest
import torch

from sparsevae.decoder import DecoderWeights, decode_literal


def test_one_hidden_layer_by_hand():
    weights = DecoderWeights(
        first=torch.tensor([[1.0, 0.0], [0.0, -1.0]]),
        hidden=(),
        heads=torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        intercept=torch.tensor([0.5, -0.5]),
    )
    mask = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    z = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    # Feature 1 sees (2 z1, z2), feature 2 sees (0, 3 z2); units are relu(first input), relu(-second input).
    expected = torch.tensor([[0.5 + 2 + 2, -0.5 + 12], [0.5, -0.5]])
    torch.testing.assert_close(decode_literal(mask, z, weights), expected)


def test_identity_network_is_the_linear_factor_model(make_problem):
    mask, z, weights, _ = make_problem(hidden_sizes=())
    expected = z @ (mask * weights.heads).T + weights.intercept
    torch.testing.assert_close(decode_literal(mask, z, weights), expected)


@pytest.mark.parametrize("hidden_sizes", [(), (8,), (8, 6), (8, 6, 5)])
def test_a_feature_depends_only_on_the_factors_of_its_row(make_problem, hidden_sizes):
    mask, z, weights, _ = make_problem(hidden_sizes=hidden_sizes, non_zeros=(0, 1, 2))
    jacobian = torch.autograd.functional.jacobian(lambda z: decode_literal(mask, z, weights).sum(0), z)
    slopes = jacobian.abs().amax(1)  # feature × factor
    assert torch.all(slopes[mask == 0] == 0)
    assert torch.all(slopes[mask != 0] > 0)
