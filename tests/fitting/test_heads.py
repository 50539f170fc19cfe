import numpy as np
import pytest
import torch

from sparsevae.decoder.weights import relu_layers
from sparsevae.fitting.heads import solve_heads_
from sparsevae.training import Batches, RowSource
from sparsevae.training.loop import held_out_bound

WIDTH = 6


def make_curved_table(n_samples, seed=0, sign=1.0):
    """Five features of two factors; the last is a parabola that no line sees."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_samples, 2))
    bent = sign * 0.7 * (np.square(z[:, 0]) - 1.0)
    columns = [z[:, 0], z[:, 0], z[:, 1], z[:, 1], bent]
    return (np.stack(columns, 1) + 0.2 * rng.standard_normal((n_samples, 5))).astype(np.float32)


@pytest.fixture
def module(make_module):
    """A spine whose encoder reads the factors off features 0 and 2, and heads that are zero."""
    module = make_module(hidden_sizes=(WIDTH,), spine=1.0, gauge=True, linear_path=True, held_means=True)
    with torch.no_grad():
        module.mask.weight.copy_(torch.tensor([[1.0, 0], [1, 0], [0, 1], [0, 1], [0.5, 0]]))
        module.encoder.linear.zero_()
        module.encoder.linear[0, 0] = module.encoder.linear[1, 2] = 1.0
        module.encoder.log_variance_weight.zero_()
        module.encoder.log_variance_bias.fill_(-30.0)
        module.decoder.heads.zero_()
        module.noise_variance.copy_(torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5]))
    return module


def batches_of(module, X, **columns):
    source = RowSource(X, module.observation, **columns)
    return Batches(source, torch.arange(len(X)), 64, torch.Generator().manual_seed(0))


def test_heads_are_the_ridge_regression_of_each_feature(module):
    batches = batches_of(module, make_curved_table(200))
    z = module.encode(batches.spread(200))[0].detach()
    left = (batches.spread(200).x - z @ module.mask.weight.mT).detach().double()
    solve_heads_(module, batches)
    for j in range(5):
        h = relu_layers(z * module.mask.weight[j], module.decoder.weights()).detach().double()
        h = torch.cat([h, torch.ones(200, 1)], 1)
        ridge = torch.full((WIDTH + 1,), WIDTH * float(module.noise_variance[j]))
        ridge[-1] = 1e-3
        expected = torch.linalg.solve(h.T @ h + torch.diag(ridge), h.T @ left[:, j])
        scale = max(float(expected[:-1].norm()), 1.0)  # the gauge bounds the norm of a head
        torch.testing.assert_close(
            module.decoder.heads[j].double(), expected[:-1] / scale, rtol=1e-3, atol=1e-3
        )
        torch.testing.assert_close(module.decoder.intercept[j].double(), expected[-1], rtol=1e-3, atol=1e-3)


def test_what_bends_is_found_without_a_gradient_step(module):
    training, held_out = (batches_of(module, make_curved_table(300, seed)) for seed in (0, 1))
    before = held_out_bound(module, held_out)
    solve_heads_(module, training, held_out)
    assert held_out_bound(module, held_out) > before + 0.2


def test_heads_that_held_out_rows_are_the_worse_for_are_not_taken(module):
    training = batches_of(module, make_curved_table(300))
    held_out = batches_of(module, make_curved_table(300, seed=1, sign=-1.0))
    solve_heads_(module, training, held_out)
    assert not module.decoder.heads.any()
    assert not module.decoder.intercept.any()


def test_a_weight_counts_a_row_as_often(module):
    X = make_curved_table(100)
    weight = np.tile([0.0, 1.0, 2.0, 1.0], 25)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    other = module.clone()
    solve_heads_(module, batches_of(module, X, weight=weight))
    solve_heads_(other, batches_of(other, repeated))
    torch.testing.assert_close(module.decoder.heads, other.decoder.heads, rtol=1e-3, atol=1e-3)


def test_features_without_links_keep_their_heads(module):
    with torch.no_grad():
        module.mask.weight[1] = 0.0
    solve_heads_(module, batches_of(module, make_curved_table(100)))
    assert not module.decoder.heads[1].any()
    assert module.decoder.heads[0].any()
