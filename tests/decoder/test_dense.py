from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from sparsevae.decoder import (
    DecoderWeights,
    MaskedDecoder,
    decode_dense,
    decode_literal,
    decode_shared,
    dense,
)

HIDDEN_SIZES = [(), (8,), (8, 6), (8, 6, 5)]


@pytest.mark.parametrize("hidden_sizes", HIDDEN_SIZES)
def test_values_and_all_gradients_are_those_of_the_loop(make_problem, outcome, assert_same, hidden_sizes):
    problem = make_problem(hidden_sizes=hidden_sizes)
    assert_same(outcome(decode_dense, problem), outcome(decode_literal, problem), 1e-10)


@pytest.mark.parametrize("hidden_sizes", HIDDEN_SIZES)
@pytest.mark.parametrize("replicates", [(1,), (3,), (2, 3)])
def test_replicates_do_not_mix(generator, hidden_sizes, replicates):
    decoder = MaskedDecoder(6, 4, hidden_sizes, replicates=replicates, generator=generator).double()
    mask = torch.randn(*replicates, 6, 4, generator=generator, dtype=torch.float64)
    z = torch.randn(*replicates, 9, 4, generator=generator, dtype=torch.float64)
    output = decode_dense(mask, z, decoder.weights())
    assert output.shape == (*replicates, 9, 6)
    for index in torch.cartesian_prod(*(torch.arange(size) for size in replicates)).view(-1, len(replicates)):
        at = tuple(index.tolist())
        expected = decode_literal(mask[at], z[at], _replicate(decoder.weights(), at))
        torch.testing.assert_close(output[at], expected)


@pytest.mark.parametrize("hidden_sizes", HIDDEN_SIZES[1:])
def test_replicates_shared_out_among_threads_have_the_same_gradients(monkeypatch, generator, hidden_sizes):
    decoder = MaskedDecoder(6, 4, hidden_sizes, replicates=(5,), generator=generator).double()
    mask = torch.randn(5, 6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    z = torch.randn(5, 9, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    grad_output = torch.randn(5, 9, 6, generator=generator, dtype=torch.float64)

    def gradients():
        output = decode_dense(mask, z, decoder.weights())
        return [output, *torch.autograd.grad(output, [mask, z, *decoder.weights().tensors()], grad_output)]

    together = gradients()
    monkeypatch.setattr(dense, "_PER_SHARE", 1)
    monkeypatch.setattr(dense, "n_decoder_threads", lambda: 3)
    assert [share.stop - share.start for share in dense._shares(5, 100, z.device)] == [1, 2, 2]
    for whole, shared in zip(together, gradients(), strict=True):
        torch.testing.assert_close(shared, whole)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**31))
def test_a_mask_of_ones_is_one_forward_pass(make_problem, outcome, assert_same, n, g, k, seed):
    problem = make_problem(n, g, k, seed=seed)
    ones = problem._replace(mask=torch.ones_like(problem.mask))
    shared = outcome(lambda mask, z, weights: decode_shared(z, weights), ones)
    expected = outcome(decode_literal, ones)
    assert_same(shared, {**expected, "mask": torch.zeros_like(ones.mask)}, 1e-10)


def _replicate(weights, at):
    first = None if weights.first is None else weights.first[at]
    hidden = tuple((weight[at], bias[at]) for weight, bias in weights.hidden)
    return DecoderWeights(first, hidden, weights.heads[at], weights.intercept[at])
