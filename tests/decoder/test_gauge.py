"""The norms that give the mask its scale."""

from __future__ import annotations

import math

import pytest
import torch
from torch.testing import assert_close

from sparsevae.decoder import MaskedDecoder

DEPTHS = pytest.mark.parametrize("hidden_sizes", [(5,), (5, 4), (5, 4, 3)])


def make_decoder(hidden_sizes, generator, *, replicates=(), size=3.0):
    decoder = MaskedDecoder(6, 3, hidden_sizes, replicates=replicates, generator=generator).double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(size * torch.randn(parameter.shape, generator=generator))
    return decoder


@DEPTHS
@pytest.mark.parametrize("replicates", [(), (2,)])
def test_every_layer_gets_its_norm(hidden_sizes, replicates, generator):
    decoder = make_decoder(hidden_sizes, generator, replicates=replicates)
    decoder.fix_gauge_()
    columns = torch.linalg.vector_norm(decoder.first, dim=-2)
    assert_close(columns, torch.full_like(columns, math.sqrt(2 * hidden_sizes[0])))
    assert decoder.first_layer_norm() == math.sqrt(2 * hidden_sizes[0])
    for weight in decoder.hidden_weights:
        rows = torch.linalg.vector_norm(weight, dim=-1)
        assert_close(rows, torch.full_like(rows, math.sqrt(2)))
    assert (torch.linalg.vector_norm(decoder.heads, dim=-1) <= 1 + 1e-12).all()


@DEPTHS
def test_it_is_a_projection(hidden_sizes, generator):
    decoder = make_decoder(hidden_sizes, generator)
    decoder.fix_gauge_()
    before = {name: value.clone() for name, value in decoder.state_dict().items()}
    decoder.fix_gauge_()
    assert_close(decoder.state_dict(), before)


@DEPTHS
def test_directions_biases_and_intercepts_are_left_alone(hidden_sizes, generator):
    decoder = make_decoder(hidden_sizes, generator)
    before = {name: value.clone() for name, value in decoder.state_dict().items()}
    decoder.fix_gauge_()
    cosine = torch.nn.functional.cosine_similarity
    assert_close(cosine(decoder.first, before["first"], dim=-2), torch.ones(3, dtype=torch.float64))
    assert_close(cosine(decoder.heads, before["heads"], dim=-1), torch.ones(6, dtype=torch.float64))
    assert torch.equal(decoder.intercept, before["intercept"])
    for i, bias in enumerate(decoder.hidden_biases):
        assert torch.equal(bias, before[f"hidden_biases.{i}"])


@DEPTHS
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_scale_moved_between_mask_and_network_is_put_back_into_the_mask(hidden_sizes, factor, generator):
    """W c with H/c is the same decoder before the gauge and c times as steep after it."""
    decoder = make_decoder(hidden_sizes, generator)
    decoder.fix_gauge_()
    first = decoder.first.detach().clone()
    with torch.no_grad():
        decoder.first.div_(factor)
    decoder.fix_gauge_()
    assert_close(decoder.first.detach(), first)


@pytest.mark.parametrize("width", [16, 64, 256])
def test_unit_inputs_stay_of_unit_size_through_layers_of_any_width(width, generator):
    decoder = MaskedDecoder(200, 1, (width, width), generator=generator).double()
    decoder.fix_gauge_()
    z = torch.randn(500, 1, generator=generator, dtype=torch.float64)
    first = torch.relu(z @ decoder.first.T)
    second = torch.relu(first @ decoder.hidden_weights[0].T)
    assert 0.3 < first.square().mean() < 3.0
    assert 0.3 < second.square().mean() < 3.0


def test_the_identity_network_leaves_all_numbers_to_the_mask(generator):
    decoder = make_decoder((), generator)
    decoder.fix_gauge_()
    assert (decoder.heads == 1).all()
