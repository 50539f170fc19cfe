"""The training loop: epochs of a schedule, closed-form updates, history, early stopping, divergence.

It knows the module contract (`loss`, `closed_form_update`, rates, replicates), never a model's name.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sparsevae.decoder import single_threaded_kernels
from sparsevae.exceptions import DivergenceError
from sparsevae.modules.base import Loss, is_replicated
from sparsevae.training.batches import Batches
from sparsevae.training.interrupt import stop_requested, training_begins
from sparsevae.training.optimizer import ProximalAdam
from sparsevae.training.schedule import Phase, Rate

__all__ = ["TrainingLog", "held_out_bound", "importance_bounds", "step_threads", "train"]

logger = logging.getLogger(__name__)

Progress = Callable[[dict[str, Any]], None]
Options = ParamSpec("Options")
Result = TypeVar("Result")

_WORTH_THREADS = 1 << 26  # multiplications per step and layer from which kernels gain by more than one thread
_TOLERANCE = 1e-3  # nats per sample; a smaller gain in the held-out bound does not reset the patience


@dataclass
class TrainingLog:
    """What happened: one record per epoch, each value an array over replicates (or one value for all)."""

    epochs: list[dict[str, Any]] = field(default_factory=list)
    stopped_early: bool = False

    def frame(self) -> pd.DataFrame:
        """The history as a table: a row per epoch, a column per term."""
        return pd.DataFrame(self.epochs)

    def of(self, replicate: int) -> TrainingLog:
        """The history of one replicate."""

        def pick(value: Any) -> Any:
            return value[replicate] if isinstance(value, np.ndarray) and value.ndim else value

        epochs = [{name: pick(value) for name, value in epoch.items()} for epoch in self.epochs]
        return TrainingLog(epochs, self.stopped_early)

    def followed_by(self, other: TrainingLog) -> TrainingLog:
        """One history and then another, numbered through."""
        numbered = [{**epoch, "epoch": i} for i, epoch in enumerate([*self.epochs, *other.epochs], start=1)]
        return TrainingLog(numbered, other.stopped_early)


def step_threads(module: Any, batches: Batches) -> AbstractContextManager[None]:
    """Context of steps through a module, in training and in scoring: which threads their kernels use.

    A masked decoder has threads of its own, each with single-threaded kernels, and the kernels around it must
    not take its cores. Small steps run on one thread: handing them to a second one costs more than it saves.
    """
    work = batches.n_rows / batches.n_batches * sum(p.numel() for p in module.parameters())
    masked = module.config["learned_mask"] and module.decoder.first is not None
    return single_threaded_kernels() if masked or work < _WORTH_THREADS else nullcontext()


def _on_step_threads(
    function: Callable[Concatenate[Any, Batches, Options], Result],
) -> Callable[Concatenate[Any, Batches, Options], Result]:
    """Run a function of a module and batches of rows on the threads that suit the two."""

    @functools.wraps(function)
    def run(module: Any, batches: Batches, /, *others: Options.args, **options: Options.kwargs) -> Result:
        with step_threads(module, batches):
            return function(module, batches, *others, **options)

    return run


@_on_step_threads
def train(
    module: Any,
    batches: Batches,
    phases: Iterable[Phase],
    *,
    generator: torch.Generator,
    validation: Batches | None = None,
    penalty_scale: float = 1.0,
    progress: Progress | None = None,
    log: TrainingLog | None = None,
) -> TrainingLog:
    """Run a schedule on a module, in place; end it early at the user's request (`stop_on_interrupt`).

    Parameters
    ----------
    module : nn.Module
        See `FactorModule` for what it offers.
    batches : Batches
        Training rows.
    phases : iterable of Phase
    generator : torch.Generator
        Of the reparameterisation noise.
    validation : Batches, optional
        Held-out rows for early stopping.
    penalty_scale : float
        Multiplies the mask penalty; 1 is the model as stated.
    progress : callable, optional
        Called with the record of each epoch.
    log : TrainingLog, optional
        Continued if given.

    Raises
    ------
    DivergenceError
        If no replicate has finite terms left.
    """
    log = TrainingLog() if log is None else log
    optimizer = ProximalAdam(module, batches.n_rows)
    training_begins()
    for phase in phases:
        if stop_requested():
            break
        module.spike_rate, module.slab_rate = phase.spike_rate, phase.slab_rate
        best = _Best(module, phase.patience) if phase.patience and validation is not None else None
        for epoch in range(phase.epochs):
            # Zeros may come back at the first epoch of a rung only; later the sparse decoder need not look at
            # them. Without proximal steps there are none.
            may_return = phase.name == "lasso" or epoch == 0 or not phase.proximal
            module.zero_gradients = may_return or bool(module.replicates)
            optimizer.penalty_scale = penalty_scale * min(1.0, (epoch + 1) / max(1, phase.penalty_warmup))
            kl_weight = min(1.0, (epoch + 1) / max(1, phase.kl_warmup))
            rate = phase.rate_at(epoch)
            terms = _epoch(module, batches, optimizer, phase, rate, kl_weight, generator)
            _check_finite(terms, phase, len(log.epochs) + 1)
            record = _record(module, terms, phase, len(log.epochs) + 1, rate)
            if best is not None and validation is not None:
                bound = held_out_bound(module, validation)
                record["validation"] = bound.cpu().numpy()
                best.see(bound)
            log.epochs.append(record)
            if progress is not None:
                progress(record)
            if best is not None and best.exhausted:
                log.stopped_early = True
                break
            if stop_requested():
                break
        if best is not None:
            best.restore()
    module.zero_gradients = True
    return log


@_on_step_threads
@torch.no_grad()
def held_out_bound(module: Any, rows: Batches) -> Tensor:
    """Mean ELBO per row at fixed draws of the factors: shape of the replicates."""
    n_draws = _enough_draws(rows, 1, 4)
    training = module.training
    module.eval()
    total: Tensor | float = 0.0
    generator = torch.Generator().manual_seed(0)
    for x in rows.sequential():
        n_rows = x.shape[-2]
        # The same draws for all replicates, so that they are compared and not their luck. All of a row in one
        # step: where rows are few, a step costs more than they do.
        draws = [torch.randn(n_rows, module.n_noise, generator=generator) for _ in range(n_draws)]
        loss = module.loss(torch.cat([x] * n_draws, -2), torch.cat(draws).to(x.device), rows.n_rows)
        total = total - (loss.reconstruction + loss.kl) * (n_rows / rows.n_rows)
    module.train(training)
    return torch.as_tensor(total)


@_on_step_threads
@torch.no_grad()
def importance_bounds(module: Any, rows: Batches) -> Tensor:
    """Importance-weighted bound on log p(x) of each row, with fixed draws: shape (..., n_rows)."""
    n_draws = _enough_draws(rows, 8, 64)
    generator = torch.Generator().manual_seed(0)
    bounds = []
    for x in rows.sequential():
        weights = []
        for _ in range(n_draws):
            draw = torch.randn(x.shape[-2], module.n_factors, generator=generator).to(x.device)
            weights.append(module.log_weight(x, draw))
        bounds.append(torch.logsumexp(torch.stack(weights), 0) - math.log(n_draws))
    return torch.cat(bounds, -1)


def _enough_draws(rows: Batches, fewest: int, most: int) -> int:
    """Fewer draws per row where rows are many: their average is what must be exact."""
    return min(max(most * 100 // rows.n_rows, fewest), most)


def _epoch(
    module: Any,
    batches: Batches,
    optimizer: ProximalAdam,
    phase: Phase,
    learning_rate: float,
    kl_weight: float,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    module.train()
    n_rows = batches.n_rows
    sums: dict[str, Tensor] = {}
    n_seen = 0
    if phase.full_batch:
        optimizer.zero_grad()
    for x in batches.sequential() if phase.full_batch else batches.shuffled():
        share = x.shape[-2] / n_rows
        noise = torch.randn(*module.replicates, x.shape[-2], module.n_noise, generator=generator).to(x.device)
        # The last steps, on all rows, are to have little noise in their gradient: all features too.
        features = None if phase.full_batch else module.draw_features(generator)
        loss = module.loss(x, noise, n_rows, features=features, seen=module.draw_seen(x, generator))
        objective = (loss.reconstruction + kl_weight * loss.kl + loss.weight_penalty).sum()
        if phase.full_batch:
            (objective * share).backward()
        else:
            optimizer.zero_grad()
            objective.backward()
            optimizer.step(learning_rate, hold_mask=phase.hold_mask, proximal=phase.proximal)
        _accumulate(sums, loss, share)
        n_seen += x.shape[-2]
        if n_seen < n_rows and stop_requested():
            # Some of the rows are not enough for the closed forms, nor for a step with the gradient of all.
            seen = {name: value * (n_rows / n_seen) for name, value in sums.items()}
            return seen | module.penalties(n_rows)
    if phase.full_batch:
        optimizer.step(learning_rate, hold_mask=phase.hold_mask, proximal=phase.proximal)
    module.closed_form_update(n_rows)
    return sums | module.penalties(n_rows)


def _accumulate(sums: dict[str, Tensor], loss: Loss, share: float) -> None:
    for name, value in loss.items():
        sums[name] = sums.get(name, torch.zeros_like(value)) + value.detach() * share


def _record(module: Any, terms: dict[str, Tensor], phase: Phase, epoch: int, rate: float) -> dict[str, Any]:
    objective = torch.stack(list(terms.values())).sum(0)
    return {
        "epoch": epoch,
        "phase": phase.name,
        "spike_rate": _mean(phase.spike_rate),
        "slab_rate": _mean(phase.slab_rate),
        "learning_rate": rate,
        "objective": objective.cpu().numpy(),
        **{name: value.cpu().numpy() for name, value in terms.items()},
        "n_nonzero": module.support().sum((-2, -1)).cpu().numpy(),
        "n_active": module.active().sum(-1).cpu().numpy().astype(int),
        "validation": np.nan,
    }


def _mean(rate: Rate) -> float:
    return float(rate.mean()) if isinstance(rate, Tensor) else float(rate)


def _check_finite(terms: dict[str, Tensor], phase: Phase, epoch: int) -> None:
    finite = torch.stack([value.isfinite() for value in terms.values()])
    if finite.all(0).any():
        return
    culprit = next(name for name, value in terms.items() if not value.isfinite().any())
    raise DivergenceError(
        f"Expected every term of the objective to stay finite; the {culprit.replace('_', ' ')} term did not "
        f"in epoch {epoch} (phase '{phase.name}', learning rate {phase.learning_rate[0]:g}). Try a smaller "
        "learning_rate, look for extreme values in the table, or scale its features."
    )


class _Best:
    """The best state of each replicate by its held-out bound."""

    def __init__(self, module: Any, patience: int) -> None:
        self.module, self.patience = module, patience
        self.bound = torch.full(module.replicates, -torch.inf, device=module.mask.device)
        self.reference = self.bound.clone()
        self.waited = torch.zeros(module.replicates, dtype=torch.long, device=module.mask.device)
        self.state = {name: value.clone() for name, value in module.state_dict().items()}

    @property
    def exhausted(self) -> bool:
        return bool((self.waited >= self.patience).all())

    def see(self, bound: Tensor) -> None:
        better = bound > self.bound
        self.waited = torch.where(bound > self.reference + _TOLERANCE, 0, self.waited + 1)
        self.reference = torch.where(self.waited == 0, bound, self.reference)
        self.bound = torch.where(better, bound, self.bound)
        depth = len(self.module.replicates)
        for name, value in self.module.state_dict().items():
            if not depth:
                if better:
                    self.state[name].copy_(value)
            elif is_replicated(name):
                self.state[name][better] = value[better]

    def restore(self) -> None:
        self.module.load_state_dict(self.state)
