from __future__ import annotations

import pytest
import torch

from sparsevae.decoder import decode, decode_blocked, decode_dense, decode_literal, decode_sparse
from sparsevae.exceptions import ParameterError

PATHS = [decode, decode_blocked, decode_dense, decode_literal, decode_sparse]
every_path = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.__name__)


@every_path
def test_a_mask_that_does_not_fit_is_refused(make_problem, path):
    mask, z, weights, _ = make_problem(n_features=7, n_factors=5)
    with pytest.raises(ParameterError, match=r"Expected mask of shape \(..., 7, 5\)"):
        path(mask[:6], z, weights)
    with pytest.raises(ParameterError, match=r"got \(7, 4\)"):
        path(mask[:, :4], z, weights)


@every_path
def test_layers_that_do_not_fit_are_refused(make_problem, path):
    mask, z, weights, _ = make_problem(hidden_sizes=(8, 6))
    (weight, bias), heads = weights.hidden[0], weights.heads
    with pytest.raises(ParameterError, match="Expected decoder layer 2 to take 8 inputs"):
        path(mask, z, weights._replace(hidden=((weight[:, :3], bias),)))
    with pytest.raises(ParameterError, match="as wide as the last layer"):
        path(mask, z, weights._replace(heads=heads[:, :3]))
    with pytest.raises(ParameterError, match="Expected no hidden layers in an identity network"):
        path(mask, z, weights._replace(first=None))


@pytest.mark.parametrize("hidden_sizes, depth", [((), 0), ((8,), 1), ((8, 6, 5), 3)])
def test_depth_and_tensors(make_problem, hidden_sizes, depth):
    weights = make_problem(hidden_sizes=hidden_sizes).weights
    assert weights.depth == depth
    assert weights.replicates == ()
    assert len(weights.tensors()) == (2 if depth == 0 else 3 + 2 * (depth - 1))


def test_selected_features_are_those_of_the_whole(make_problem):
    mask, z, weights, _ = make_problem()
    features = torch.tensor([4, 0, 2])
    part = decode_literal(mask[features], z, weights.select(features))
    torch.testing.assert_close(part, decode_literal(mask, z, weights)[:, features])
