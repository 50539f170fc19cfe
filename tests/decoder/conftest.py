"""Small decoding problems and the comparison of one path with another; fixtures hand out the functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from sparsevae.decoder import DecoderWeights, MaskedDecoder, dispatch


@pytest.fixture
def paths(monkeypatch):
    """Names of the decoding paths taken, in order."""
    taken = []
    for name in ("decode_dense", "decode_shared", "decode_blocked", "decode_sparse"):
        path = getattr(dispatch, name)

        def spy(*args, _name=name, _path=path, **kwargs):
            taken.append(_name)
            return _path(*args, **kwargs)

        monkeypatch.setattr(dispatch, name, spy)
    return taken


@pytest.fixture(scope="session")
def make_problem():
    return _make_problem


@pytest.fixture(scope="session")
def outcome():
    return _outcome


@pytest.fixture(scope="session")
def assert_same():
    return _assert_same


@pytest.fixture(scope="session")
def without_zero_entries():
    return _without_zero_entries


class Problem(NamedTuple):
    """Arguments of a decoding function and a gradient to send back through it."""

    mask: Tensor
    z: Tensor
    weights: DecoderWeights
    grad_output: Tensor

    def inputs(self) -> dict[str, Tensor]:
        """Every tensor that has a gradient, by name."""
        first = {} if self.weights.first is None else {"first": self.weights.first}
        hidden = {
            f"{kind} {number}": tensor
            for number, layer in enumerate(self.weights.hidden, start=2)
            for kind, tensor in zip(("weight", "bias"), layer, strict=True)
        }
        named = {"mask": self.mask, "z": self.z, **first, **hidden}
        return {**named, "heads": self.weights.heads, "intercept": self.weights.intercept}


def _make_problem(
    n_samples: int = 9,
    n_features: int = 7,
    n_factors: int = 5,
    hidden_sizes: tuple[int, ...] = (8, 6),
    *,
    non_zeros: tuple[int, ...] | None = None,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
) -> Problem:
    """Draw a problem; ``non_zeros`` lists the numbers of non-zeros that rows of the mask take in turn."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    mask, z = normal(n_features, n_factors), normal(n_samples, n_factors)
    if non_zeros is not None:
        for j in range(n_features):
            keep = torch.randperm(n_factors, generator=generator)[: non_zeros[j % len(non_zeros)]]
            mask[j, [k for k in range(n_factors) if k not in keep]] = 0
    decoder = MaskedDecoder(n_features, n_factors, hidden_sizes, generator=generator).double()
    weights = decoder.weights()
    hidden = tuple((weight, 0.3 * normal(*bias.shape)) for weight, bias in weights.hidden)
    weights = weights._replace(hidden=hidden, intercept=normal(n_features))
    return _leaves(Problem(mask, z, weights, normal(n_samples, n_features)), dtype)


def _outcome(decode: Callable[..., Tensor], problem: Problem, **options: object) -> dict[str, Tensor]:
    """Decode, send the gradient back, and return the output and every gradient by name."""
    problem = _leaves(problem, problem.z.dtype)
    output = decode(problem.mask, problem.z, problem.weights, **options)
    inputs = problem.inputs()
    gradients = torch.autograd.grad(output, list(inputs.values()), problem.grad_output, allow_unused=True)
    found = {
        name: torch.zeros_like(tensor) if gradient is None else gradient
        for (name, tensor), gradient in zip(inputs.items(), gradients, strict=True)
    }
    return {"output": output.detach(), **found}


def _assert_same(actual: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float) -> None:
    """Compare by the largest difference of each tensor, relative to its largest entry."""
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        assert actual[name].shape == tensor.shape, name
        scale = tensor.abs().max().clamp_min(1e-12) if tensor.numel() else tensor.new_ones(())
        error = ((actual[name] - tensor).abs().max() / scale).item() if tensor.numel() else 0.0
        assert error <= tolerance, f"{name} differs by {error:.1e} of its largest entry"


def _without_zero_entries(result: dict[str, Tensor], mask: Tensor) -> dict[str, Tensor]:
    """The same gradients, but zero for mask entries that are exactly zero."""
    return {**result, "mask": result["mask"] * (mask != 0)}


def _leaves(problem: Problem, dtype: torch.dtype) -> Problem:
    def leaf(tensor: Tensor) -> Tensor:
        return tensor.detach().to(dtype).clone().requires_grad_()

    weights = problem.weights
    weights = DecoderWeights(
        None if weights.first is None else leaf(weights.first),
        tuple((leaf(weight), leaf(bias)) for weight, bias in weights.hidden),
        leaf(weights.heads),
        leaf(weights.intercept),
    )
    return Problem(leaf(problem.mask), leaf(problem.z), weights, problem.grad_output.to(dtype))
