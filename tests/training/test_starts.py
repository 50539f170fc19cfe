"""Starts: slopes by automatic differentiation, and the sparsity of what a rotation finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.training.starts import (
    dense_starts,
    encoder_inputs,
    slope_moments,
    sparse_start,
)


@pytest.mark.parametrize("hidden_sizes", [(), (6,), (6, 5), (6, 5, 4)])
def test_slope_moments_are_those_of_automatic_differentiation(make_module, hidden_sizes, generator):
    module = make_module(hidden_sizes=hidden_sizes, n_factors=3, learned_mask=False).double()
    with torch.no_grad():
        for parameter in module.decoder.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    z = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    slopes = torch.stack(
        [torch.autograd.functional.jacobian(module.decode, row.unsqueeze(0))[0, :, 0] for row in z]
    )
    expected = torch.einsum("ijk,ijl->jkl", slopes, slopes) / len(z)
    assert_close(slope_moments(module, z), expected)


def test_many_rows_are_thinned_evenly(make_module, make_batches):
    table = make_batches(make_module()).table
    inputs = encoder_inputs(table, torch.arange(48), max_rows=12)
    assert inputs.shape == (12, 5)
    np.testing.assert_array_equal(inputs[0], table.rows(torch.tensor([0]))[0])
    np.testing.assert_array_equal(inputs[-1], table.rows(torch.tensor([47]))[0])


@pytest.fixture(scope="module")
def starts(make_module, make_batches, make_table):
    module = make_module(n_factors=3)
    batches = make_batches(module, make_table(200))
    options = {k: v for k, v in module.config.items() if k != "learned_mask"}
    options["noise_scale"] = torch.full((5,), 0.05)
    random_state = np.random.RandomState(0)
    found = dense_starts(
        options,
        batches.table,
        batches,
        [1, 2],
        2,
        torch.zeros(5),
        epochs=25,
        learning_rate=0.01,
        generator=torch.Generator().manual_seed(0),
        random_state=random_state,
    )
    return found, batches, random_state


def test_dense_starts_have_the_numbers_of_factors_asked_for(starts):
    found, _, _ = starts
    assert [int(module.used.sum()) for module, _ in found] == [1, 2]
    assert all(module.replicates == () for module, _ in found)
    assert all(len(log.epochs) == 25 for _, log in found)


def test_a_sparse_start_separates_factors_that_features_do_not_share(starts):
    found, batches, random_state = starts
    module = sparse_start(found[1][0], batches, random_state)
    mask = module.mask.detach()
    assert module.mask.requires_grad
    assert (mask[:, :2] > 0).all()
    assert (mask[:, 2] == 0).all()
    # Features 0 and 1 share one factor, 2 and 3 the other; the start already leans the right way.
    own = mask[:4, :2] / mask[:4, :2].amax(-1, keepdim=True)
    assert (own.argmin(-1)[:2] == own.argmin(-1)[0]).all()
    assert (own.argmin(-1)[2:] == own.argmin(-1)[2]).all()
    assert own.argmin(-1)[0] != own.argmin(-1)[2]
    assert own.amin(-1).max() < 0.5
