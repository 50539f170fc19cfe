from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from sparsevae.decoder.anchors import decode_curves

FLOAT64 = torch.float64


def direct(w, z, factors, lines, bias, heads):
    s = w * z[:, factors]  # sample × anchor
    above, below = lines[:, factors]
    h = torch.relu(s).unsqueeze(2) * above + torch.relu(-s).unsqueeze(2) * below + bias
    return (torch.relu(h) * heads).sum(-1)


def draw(n_samples, n_anchors, n_factors, n_units, seed, dtype=FLOAT64):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=FLOAT64).to(dtype).requires_grad_()

    factors = torch.randint(n_factors, (n_anchors,), generator=generator).sort().values
    w, z, lines, bias = (
        normal(n_anchors),
        normal(n_samples, n_factors),
        normal(2, n_factors, n_units),
        normal(n_units),
    )
    return w, z, factors, lines, bias, normal(n_anchors, n_units)


def outcome(function, arguments):
    output = function(*arguments)
    grad_output = torch.linspace(-1, 2, output.numel(), dtype=output.dtype).view(output.shape)
    inputs = [argument for argument in arguments if argument.requires_grad]
    return [output.detach(), *torch.autograd.grad(output, inputs, grad_output)]


@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 4), st.integers(1, 10), st.integers(0, 2**31))
def test_curves_are_the_sum_over_units(n_samples, n_anchors, n_factors, n_units, seed):
    arguments = draw(n_samples, n_anchors, n_factors, n_units, seed)
    for actual, expected in zip(outcome(decode_curves, arguments), outcome(direct, arguments), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("what", ["bias", "lines", "both", "z"])
def test_zeros_among_the_weights_are_no_places_to_switch(what):
    w, z, factors, lines, bias, heads = draw(15, 6, 3, 8, seed=1)
    if what in ("bias", "both"):
        bias.data[::2] = 0
    if what in ("lines", "both"):
        lines.data[..., ::3] = 0
    if what == "z":
        z.data[::2] = 0
    arguments = (w, z, factors, lines, bias, heads)
    for actual, expected in zip(outcome(decode_curves, arguments), outcome(direct, arguments), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_units_that_switch_at_one_place_switch_together():
    w, z, factors, lines, bias, heads = draw(30, 6, 3, 8, seed=2)
    lines.data[:] = lines.data[..., :1]
    bias.data[:] = bias.data[:1]
    arguments = (w, z, factors, lines, bias, heads)
    for actual, expected in zip(outcome(decode_curves, arguments), outcome(direct, arguments), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_float32_is_within_rounding_for_many_units():
    arguments = draw(100, 40, 5, 500, seed=3, dtype=torch.float32)
    exact = [a.detach().double().requires_grad_() if a.is_floating_point() else a for a in arguments]
    for actual, expected in zip(outcome(decode_curves, arguments), outcome(direct, exact), strict=True):
        assert (actual - expected).abs().max() < 1e-5 * expected.abs().max()


@settings(max_examples=5)
@given(st.integers(0, 2**31))
def test_gradients_pass_torchs_own_check(seed):
    w, z, factors, lines, bias, heads = draw(5, 4, 2, 3, seed)

    def decode(w, z, lines, bias, heads):
        return decode_curves(w, z, factors, lines, bias, heads)

    assert torch.autograd.gradcheck(decode, (w, z, lines, bias, heads))


def test_no_samples_are_an_empty_output():
    w, z, factors, lines, bias, heads = draw(1, 4, 2, 3, seed=0)
    assert decode_curves(w, z[:0], factors, lines, bias, heads).shape == (0, 4)
