from __future__ import annotations

import pytest
import torch

from sparsevae.decoder import (
    bfloat16_supported,
    decode,
    decode_blocked,
    decode_literal,
    decode_sparse,
    dispatch,
)

# The arithmetic works on any CPU; hardware support only decides whether it pays.


@pytest.mark.parametrize("path, non_zeros", [(decode_blocked, None), (decode_sparse, (0, 1, 1, 2, 3))])
@pytest.mark.parametrize("hidden_sizes", [(40,), (40, 30), (40, 30, 20)])
def test_bfloat16_is_within_its_rounding_of_float32(
    make_problem, outcome, without_zero_entries, hidden_sizes, path, non_zeros
):
    problem = make_problem(60, 40, 5, hidden_sizes, non_zeros=non_zeros, dtype=torch.float32)
    problem = problem._replace(grad_output=problem.grad_output.abs())  # sums that do not cancel
    rough = outcome(path, problem, precision="bfloat16")
    exact = outcome(decode_literal, problem)
    if path is decode_sparse:
        exact = without_zero_entries(exact, problem.mask)
    for name, tensor in exact.items():
        assert rough[name].dtype == torch.float32
        error = ((rough[name] - tensor).norm() / tensor.norm()).item()
        # A unit whose input is within rounding of zero may switch, and its gradient with it.
        assert error < (0.01 if name in {"output", "heads", "intercept"} else 0.1), (name, error)


def test_bfloat16_activations_are_relu_of_their_inputs():
    values = torch.tensor([-1.5, -0.0, 0.0, 2.5, float("inf"), -float("inf")], dtype=torch.bfloat16)
    from sparsevae.decoder.kernels import _gate_, _relu_

    activation = values.clone()
    _relu_(activation)
    assert torch.equal(activation, torch.relu(values))
    gradient = torch.full_like(values, -3.0)
    _gate_(gradient, activation)
    assert torch.equal(gradient, torch.where(values > 0, -3.0, 0.0).to(torch.bfloat16))


def test_a_device_without_bfloat16_falls_back_with_a_warning(monkeypatch, make_problem):
    mask, z, weights, _ = make_problem(50, 50, 5, (64, 64), dtype=torch.float32)
    monkeypatch.setattr(dispatch, "bfloat16_supported", lambda device: False)
    with pytest.warns(UserWarning, match="decoding in float32"):
        output = decode(mask, z, weights, precision="bfloat16")
    assert torch.equal(output, decode(mask, z, weights, precision="float32"))


def test_other_precisions_are_refused(make_problem):
    mask, z, weights, _ = make_problem()
    with pytest.raises(ValueError, match="Expected precision to be one of 'float32', 'bfloat16'; got 'half'"):
        decode(mask, z, weights, precision="half")


def test_support_is_a_question_about_the_device():
    assert bfloat16_supported("cpu") in (True, False)
    assert bfloat16_supported(torch.device("meta")) is False
