"""Starts: slopes by automatic differentiation, and the sparsity of what a rotation finds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae import SparseVAE
from sparsevae.exceptions import DataWarning
from sparsevae.fitting.data import linear_inputs
from sparsevae.fitting.starts import (
    _invertible,
    change_basis_,
    dense_starts,
    masked_starts,
    slope_moments,
    sparse_start,
)

from ..training import helpers


@pytest.mark.parametrize("hidden_sizes", [(), (6,), (6, 5), (6, 5, 4)])
def test_slope_moments_are_those_of_automatic_differentiation(make_module, hidden_sizes, generator):
    module = make_module(hidden_sizes=hidden_sizes, n_factors=3, kind="plain").double()
    with torch.no_grad():
        for parameter in module.decoder.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    z = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    slopes = torch.stack(
        [torch.autograd.functional.jacobian(module.decode, row.unsqueeze(0))[0, :, 0] for row in z]
    )
    expected = torch.einsum("ijk,ijl->jkl", slopes, slopes) / len(z)
    assert_close(slope_moments(module, z), expected)


@pytest.mark.parametrize("max_rows", [12, 100])
def test_linear_analyses_see_the_same_rows_in_any_order(make_module, make_batches, generator, max_rows):
    batches = make_batches(make_module())
    inputs = linear_inputs(batches, max_rows=max_rows)
    assert inputs.shape == (min(max_rows, 48), 5)
    whole = batches.source.batch(torch.arange(48)).inputs.numpy()
    place = [int((whole == row).all(1).argmax()) for row in inputs]
    assert place == sorted(set(place))
    assert all((whole[i] == row).all() for i, row in zip(place, inputs, strict=True))
    batches.rows = batches.rows[torch.randperm(48, generator=generator)]
    np.testing.assert_array_equal(linear_inputs(batches, max_rows=max_rows), inputs)


@pytest.mark.parametrize("hidden_sizes", [(6,), (6, 5)])
def test_other_factors_are_the_same_model(make_module, make_batches, hidden_sizes, generator):
    """Behind a mask of ones in the new factors, or times the norms where the gauge took these out."""
    module = make_module(hidden_sizes=hidden_sizes, n_factors=3, kind="plain", gauge=True)
    (batch,) = make_batches(module, batch_size=48).sequential()
    basis = torch.randn(3, 3, generator=generator)
    basis = basis / torch.linalg.vector_norm(basis, dim=0)
    with torch.no_grad():
        z, _ = module.encode(batch)
        expected = module.decode(z)
        norm = change_basis_(module, basis)
        turned, _ = module.encode(batch)
        assert_close(turned, z @ basis, atol=1e-5, rtol=1e-4)
        assert_close(module.decode(turned * norm), expected, atol=1e-5, rtol=1e-4)
    width = torch.linalg.vector_norm(module.decoder.first.detach(), dim=0)
    assert_close(width, torch.full((3,), module.decoder.first_layer_norm()))


@pytest.fixture(scope="module")
def starts():
    settings = {"hidden_sizes": (6,), "n_init": 2, "batch_size": 16, "learning_rate": 0.004}
    model = SparseVAE(3, **settings, validation_fraction=0.0, random_state=0)
    settings, data = model.prepare_fit(helpers.make_table(200))
    return dense_starts(settings, data, [1, 2], 25, None), settings, data


def test_dense_starts_have_the_numbers_of_factors_asked_for(starts):
    found, _, _ = starts
    assert [int(module.used.sum()) for module, _ in found] == [1, 2]
    assert all(module.replicates == () for module, _ in found)
    assert all(len(log.epochs) == 25 for _, log in found)


def test_a_sparse_start_separates_factors_that_features_do_not_share(starts):
    found, settings, data = starts
    module = sparse_start(settings, data, found[1][0])
    mask = module.mask.weight.detach()
    assert module.mask.weight.requires_grad
    assert module.config == settings.config
    assert (mask[:, :2] > 0).all()
    assert (mask[:, 2] == 0).all()
    # Features 0 and 1 share one factor, 2 and 3 the other; the start already leans the right way.
    own = mask[:4, :2] / mask[:4, :2].amax(-1, keepdim=True)
    assert (own.argmin(-1)[:2] == own.argmin(-1)[0]).all()
    assert (own.argmin(-1)[2:] == own.argmin(-1)[2]).all()
    assert own.argmin(-1)[0] != own.argmin(-1)[2]
    assert own.amin(-1).max() < 0.5


def test_many_starts_behind_a_mask_are_raced_to_the_end_by_one():
    settings = {"hidden_sizes": (6,), "init": "rotation", "n_init": 9, "batch_size": 16}
    settings, data = SparseVAE(2, **settings, random_state=0).prepare_fit(helpers.make_table(60))
    module = helpers.make_module(replicates=(9,))
    with torch.no_grad():
        module.mask.weight[:, 0, 1] = 0.0
    best, log = masked_starts(module, settings, data, 20, None)
    assert best.replicates == ()
    assert [epoch["epoch"] for epoch in log.epochs] == [*range(1, 21)]
    assert {epoch["phase"] for epoch in log.epochs} == {"warm-up"}
    assert torch.equal(best.support(), module.support()[0])


def test_correlations_of_factors_that_coincide_are_weakened_until_they_have_an_inverse():
    singular = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    weakened = _invertible(singular)
    assert torch.linalg.cholesky_ex(weakened).info == 0
    assert_close(weakened.diagonal(), torch.ones(3))
    assert 0.999 < weakened[0, 1] < 1.0
    fine = torch.tensor([[1.0, 0.6], [0.6, 1.0]])
    assert _invertible(fine) is fine


def test_words_of_which_one_never_varies_are_fitted():
    X = np.column_stack([np.full(8, 3.0), [0, 2, 0, 1, 4, 0, 1, 0]])
    model = SparseVAE(2, likelihood="multinomial", n_init=1, max_epochs=2, random_state=0)
    with pytest.warns(DataWarning, match="constant"):
        model.fit(X)
    assert np.isfinite(model.transform(X)).all()
