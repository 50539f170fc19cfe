"""Time the decoder's paths, forward and backward, against the literal loop and against a matrix product.

Run ``python -m benchmarks.decoder`` from the root of the repository on a machine with nothing else to do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.decoder.problems import SHAPES, Problem, Shape, make_problem, sparse_mask
from benchmarks.decoder.timing import interleaved_medians, torch_threads
from sparsevae.decoder import (
    bfloat16_supported,
    decode,
    decode_dense,
    decode_literal,
    decode_shared,
    single_threaded_kernels,
)

MATMUL_ROWS = 2048  # in the cache, as large as a block of the decoder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoder", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, action="append", help="default: all but transcriptome")
    parser.add_argument("--hidden", type=int, default=2, help="number of hidden layers")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--max-rounds", type=int, default=60, help="give up on a busy machine after so many")
    arguments = parser.parse_args()

    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {arguments.hidden} hidden layers")
    print(f"{'shape':<14}{'path':<32}{'ms':>9}{'ratio to loop':>15}{'GFLOP/s':>9}{'of matmul':>11}")
    for name in arguments.shape or [name for name in SHAPES if name != "transcriptome"]:
        report(name, SHAPES[name], arguments.hidden, arguments.repeats, arguments.max_rounds)
    return 0


def report(name: str, shape: Shape, n_hidden: int, repeats: int, max_rounds: int) -> None:
    generator = torch.Generator().manual_seed(0)
    problem = make_problem(shape, n_hidden, generator)
    anchors = problem._replace(mask=sparse_mask(problem.mask, 0.8, 1, generator))
    empty = problem._replace(mask=sparse_mask(problem.mask, 0.8, 0, generator))
    n_threads = torch.get_num_threads()

    def sparse(mask: Tensor, z: Tensor, weights: object) -> Tensor:
        return decode(mask, z, weights, zero_gradients=False)

    def half(mask: Tensor, z: Tensor, weights: object) -> Tensor:
        return decode(mask, z, weights, precision="bfloat16")

    candidates = {
        "loop, 1 thread": pass_of(decode_literal, problem, 1),
        f"loop, {n_threads} threads": pass_of(decode_literal, problem, n_threads),
        "one big tensor": pass_of(decode_dense, problem, n_threads),
        "float32, dense mask": pass_of(decode, problem),
        "bfloat16, dense mask": pass_of(half, problem),
        "float32, 80 % anchors": pass_of(sparse, anchors),
        "float32, 80 % empty rows": pass_of(sparse, empty),
        "mask of ones (plain VAE)": pass_of(lambda mask, z, weights: decode_shared(z, weights), problem),
    }
    if n_threads == 1:
        del candidates["loop, 1 thread"]
    if not bfloat16_supported("cpu"):
        del candidates["bfloat16, dense mask"]
    if shape.n_features > 2000:
        del candidates["one big tensor"]
    products = {"float32": product_of(shape, torch.float32), "bfloat16": product_of(shape, torch.bfloat16)}
    seconds, n_quiet, n_rounds = interleaved_medians({**candidates, **products}, repeats, max_rounds)

    rates = {kind: 2e-9 * MATMUL_ROWS * shape.width**2 * 10 / seconds[kind] for kind in products}
    loop = min(seconds[path] for path in candidates if path.startswith("loop"))
    for path in candidates:
        rate = shape.gflop(n_hidden) / seconds[path]
        dense = "dense" in path or "loop" in path or "tensor" in path
        matmul = rates["bfloat16" if path.startswith("bfloat16") else "float32"]
        work = f"{rate:9.1f}{rate / matmul:11.0%}" if dense else f"{'':9}{'':11}"
        print(f"{name:<14}{path:<32}{1e3 * seconds[path]:9.2f}{loop / seconds[path]:15.2f}{work}")
    for kind, rate in rates.items():
        print(f"{name:<14}{'matmul, ' + kind:<32}{'':9}{'':15}{rate:9.1f}")
    if n_quiet < repeats:
        print(
            f"{name}: others were at work in {n_rounds - n_quiet} of {n_rounds} rounds; ratios mean little."
        )


def pass_of(
    path: Callable[..., Tensor], problem: Problem, n_threads: int | None = None
) -> Callable[[], None]:
    """A forward and a backward pass; without a number of threads, as the training loop runs it."""
    mask, z, weights, grad_output = problem
    inputs = [mask, z, *weights.tensors()]

    def run() -> None:
        with single_threaded_kernels() if n_threads is None else torch_threads(n_threads):
            torch.autograd.grad(path(mask, z, weights), inputs, grad_output, allow_unused=True)

    return run


def product_of(shape: Shape, dtype: torch.dtype) -> Callable[[], None]:
    """Ten products of a block of activations and a layer, with all threads and no allocation."""
    a = torch.randn(MATMUL_ROWS, shape.width).to(dtype)
    weight = torch.randn(shape.width, shape.width).to(dtype)
    out = torch.empty_like(a)

    def run() -> None:
        for _ in range(10):
            torch.mm(a, weight.T, out=out)

    return run


if __name__ == "__main__":
    sys.exit(main())
