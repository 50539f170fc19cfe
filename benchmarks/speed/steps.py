"""Full training steps of one model by different decoders.

A step is all of encode, decode, loss, backward pass, Adam, proximal step, and the closed-form updates of
inclusion rates, noise variances and factor covariance, the last two of which training takes once per epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.speed.shapes import Shape, sparse_mask
from benchmarks.speed.timing import torch_threads
from sparsevae.decoder import bfloat16_supported, decode_literal
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation, SparseVAEModule, VAEModule
from sparsevae.training import Batches, RowSource
from sparsevae.training.loop import step_threads
from sparsevae.training.optimizer import ProximalAdam

__all__ = ["CANDIDATES", "Candidate", "available", "make_product", "make_step"]

N_ROWS = 10_000  # of the table that a step is part of: the priors are spread over it
RATE = 1e-6  # so small that the mask stays what it is, however often a step is timed
CACHED_ROWS = 2048  # of a matrix that stays in the cache, as a block of the decoder does


class LoopModule(SparseVAEModule):
    """The paper taken literally: one forward pass per feature."""

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        return decode_literal(self.mask.weight, z, self.decoder.weights())


class TensorModule(SparseVAEModule):
    """All features at once in one tensor, differentiated by autograd."""

    def decode(self, z: Tensor, features: Tensor | None = None) -> Tensor:
        weights = self.decoder.weights()
        assert weights.first is not None
        masked = (z.unsqueeze(1) * self.mask.weight).flatten(0, 1)  # (sample · feature) × factor
        h = torch.relu(masked @ weights.first.T)
        for weight, bias in weights.hidden:
            h = torch.relu(torch.nn.functional.linear(h, weight, bias))
        return (h.view(len(z), *weights.heads.shape) * weights.heads).sum(-1) + weights.intercept


class Candidate(NamedTuple):
    """A way to take a step.

    Attributes
    ----------
    label : str
    module : class
    options : dict
        Of the module's settings.
    n_threads : int or None
        Of torch's kernels; None as the training loop sets them, 0 for all.
    mask : (float, int) or None
        Share of the features that have so many non-zeros, the others having two or three; None is dense.
    n_replicates : int
        Models trained side by side; times are then those of one of them.
    """

    label: str
    module: type[VAEModule] = SparseVAEModule
    options: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    n_threads: int | None = None
    mask: tuple[float, int] | None = None
    n_replicates: int = 0

    @property
    def is_loop(self) -> bool:
        """Whether this is the literal loop, against which the others are measured."""
        return self.module is LoopModule

    @property
    def precision(self) -> str:
        """Of the matrix products."""
        return str(self.options.get("precision", "float32"))

    @property
    def does_all_the_work(self) -> bool:
        """Whether the step has all multiplications of the dense model, so that a rate can be stated."""
        return self.mask is None and issubclass(self.module, SparseVAEModule) and not self.n_replicates


CANDIDATES = {
    "loop-1": Candidate("literal loop, 1 thread", LoopModule, n_threads=1),
    "loop-all": Candidate("literal loop, all threads", LoopModule, n_threads=0),
    "tensor": Candidate("one big tensor", TensorModule, n_threads=0),
    "float32": Candidate("ours, float32"),
    "bfloat16": Candidate("ours, bfloat16", options={"precision": "bfloat16"}),
    "anchors": Candidate("ours, 80 % anchors", mask=(0.8, 1)),
    "empty": Candidate("ours, 80 % empty rows", mask=(0.8, 0)),
    "replicates": Candidate("ours, each of 8 side by side", n_replicates=8),
    "plain": Candidate("plain VAE", VAEModule),
}


def available(name: str, shape: Shape) -> bool:
    """Whether a candidate says something at this shape and on this machine."""
    small = shape.n_features * shape.width < 1000
    if name in ("bfloat16", "anchors", "empty"):
        return not small and (name != "bfloat16" or bfloat16_supported("cpu"))
    if name == "replicates":
        return small
    return name != "loop-all" or torch.get_num_threads() > 1


def make_step(candidate: Candidate, shape: Shape, n_hidden: int) -> Callable[[int], None]:
    """Build a model and a batch; calling the result with a number takes so many steps."""
    generator = torch.Generator().manual_seed(0)
    observation = Observation.blank(get_likelihood(shape.likelihood, shape.n_features), shape.n_features)
    config = candidate.module.config_class(
        n_factors=shape.n_factors, hidden_sizes=(shape.width,) * n_hidden, **candidate.options
    )
    replicates = (candidate.n_replicates,) if candidate.n_replicates else ()
    module = candidate.module(observation, config, replicates=replicates, generator=generator)
    mask = module.mask
    if mask is not None:
        with torch.no_grad():
            dense = torch.randn(mask.weight.shape, generator=generator)
            mask.weight.copy_(
                dense if candidate.mask is None else sparse_mask(dense, *candidate.mask, generator)
            )
        # As in all epochs of a rung but the first, zeros stay zeros.
        mask.zeros_may_return = candidate.mask is None
    module.train()
    rows = RowSource(_rows(shape, generator).numpy(), observation)
    batches = Batches(rows, torch.arange(rows.n_samples), rows.n_samples, torch.Generator())
    (whole,) = batches.sequential()
    optimizer = ProximalAdam(module, N_ROWS)

    def run(n_steps: int) -> None:
        with _threads(candidate, module, batches):
            for _ in range(n_steps):
                noise = torch.randn(*module.replicates, whole.n_rows, module.n_noise, generator=generator)
                batch = module.thin(whole, generator)
                loss, statistics = module.step(batch, noise, N_ROWS)
                optimizer.zero_grad()
                (loss.reconstruction + loss.kl + loss.weight_penalty).sum().backward()
                optimizer.step(RATE)
                module.update(statistics, N_ROWS)

    return run


def make_product(shape: Shape, dtype: torch.dtype, *, cached: bool) -> tuple[Callable[[int], None], float]:
    """A product of a layer with the activations of a step, or with as many of them as the cache holds.

    Returns
    -------
    callable, float
        Products on all threads, without allocation; 10^9 multiplications and additions in one of them.
    """
    rows = CACHED_ROWS if cached else shape.n_samples * shape.n_features
    a, weight = torch.randn(rows, shape.width).to(dtype), torch.randn(shape.width, shape.width).to(dtype)
    out = torch.empty_like(a)

    def run(n_products: int) -> None:
        for _ in range(n_products):
            torch.mm(a, weight.T, out=out)

    return run, 2e-9 * rows * shape.width**2


def _rows(shape: Shape, generator: torch.Generator) -> Tensor:
    size = (shape.n_samples, shape.n_features)
    if shape.likelihood == "gaussian":
        return torch.randn(size, generator=generator)
    return torch.poisson(torch.rand(size, generator=generator), generator=generator)


def _threads(candidate: Candidate, module: VAEModule, batches: Batches) -> AbstractContextManager[None]:
    if candidate.n_threads is not None:
        return torch_threads(candidate.n_threads or torch.get_num_threads())
    return step_threads(module, batches)
