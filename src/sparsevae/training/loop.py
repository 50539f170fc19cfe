"""The training loop: epochs of a schedule, closed-form updates, history, early stopping, divergence.

It knows the module contract (`LatentModule`), never a model's name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sparsevae.aliases import State
from sparsevae.decoder import single_threaded_kernels
from sparsevae.exceptions import DivergenceError
from sparsevae.modules import LatentModule, Loss, Statistics
from sparsevae.modules.mask import Rate
from sparsevae.training.batches import Batches
from sparsevae.training.callbacks import call_after_epoch
from sparsevae.training.interrupt import stop_requested, training_begins
from sparsevae.training.journal import Course, current_journal
from sparsevae.training.optimizer import ProximalAdam
from sparsevae.training.processes import current_group, summed
from sparsevae.training.records import Record, Records

__all__ = ["Phase", "Progress", "Record", "TrainingLog", "held_out_bound", "step_threads", "train"]

Progress = Callable[[Record], None]
"""Called with the record of each epoch."""

Module = TypeVar("Module", bound=LatentModule)
Options = ParamSpec("Options")
Result = TypeVar("Result")

_WORTH_THREADS = 1 << 26  # multiplications per step and layer from which kernels gain by more than one thread
_TOLERANCE = 1e-3  # nats per sample; a smaller gain in the held-out bound does not reset the patience


@dataclass(frozen=True)
class Phase:
    """A stretch of training with one setting.

    Attributes
    ----------
    name : str
        Shown in the history.
    epochs : int
    learning_rate : (float, float)
        At the beginning and at the end, changing linearly.
    spike_rate, slab_rate : float or Tensor
        Exact Laplace rates λ0, λ1.
    kl_warmup : int
        Epochs over which the KL term grows to its full weight.
    penalty_warmup : int
        Epochs over which the mask penalty grows to its full weight.
    hold_mask : bool
        Only the network moves.
    zeros_may_return : bool
        Whether entries of the mask that are zero may leave it at any time. If not, they may in the first
        epoch of the phase only; later the sparse decoder need not look at them.
    proximal : bool
        Whether the mask's penalty acts through proximal steps, which make exact zeros; see `ProximalAdam`.
    full_batch : bool
        One step per epoch with the gradient of all rows.
    patience : int
        Stop after this many epochs without a better held-out bound, and go back to the best; 0 for never.
    """

    name: str
    epochs: int
    learning_rate: tuple[float, float]
    spike_rate: Rate = 1.0
    slab_rate: Rate = 1.0
    kl_warmup: int = 0
    penalty_warmup: int = 0
    hold_mask: bool = False
    zeros_may_return: bool = False
    proximal: bool = True
    full_batch: bool = False
    patience: int = 0

    def rate_at(self, epoch: int) -> float:
        """Learning rate of an epoch of this phase."""
        start, end = self.learning_rate
        return start + (end - start) * (epoch / max(1, self.epochs - 1))


@dataclass
class TrainingLog:
    """What happened: one record per epoch, each value an array over replicates (or one value for all)."""

    epochs: Records = field(default_factory=Records)

    def frame(self) -> pd.DataFrame:
        """The history as a table: a row per epoch, a column per term."""
        return pd.DataFrame(list(self.epochs))

    def of(self, replicate: int) -> TrainingLog:
        """The history of one replicate."""

        def pick(value: object) -> object:
            return value[replicate] if isinstance(value, np.ndarray) and value.ndim else value

        epochs = [{name: pick(value) for name, value in epoch.items()} for epoch in self.epochs]
        return TrainingLog(Records(epochs))

    def followed_by(self, other: TrainingLog) -> TrainingLog:
        """One history and then another, numbered through."""
        numbered = [{**epoch, "epoch": i} for i, epoch in enumerate([*self.epochs, *other.epochs], start=1)]
        return TrainingLog(Records(numbered))


def step_threads(module: LatentModule, batches: Batches) -> AbstractContextManager[None]:
    """Context of steps through a module, in training and in scoring: which threads their kernels use.

    A masked decoder has threads of its own, each with single-threaded kernels, and the kernels around it must
    not take its cores. Small steps run on one thread: handing them to a second one costs more than it saves.
    """
    work = batches.n_rows / batches.n_batches * sum(p.numel() for p in module.parameters())
    alone = module.has_own_threads or work < _WORTH_THREADS
    return single_threaded_kernels() if alone else nullcontext()


def _on_step_threads(
    function: Callable[Concatenate[Module, Batches, Options], Result],
) -> Callable[Concatenate[Module, Batches, Options], Result]:
    """Run a function of a module and batches of rows on the threads that suit the two."""

    @functools.wraps(function)
    def run(module: Module, batches: Batches, /, *others: Options.args, **options: Options.kwargs) -> Result:
        with step_threads(module, batches):
            return function(module, batches, *others, **options)

    return run


@_on_step_threads
def train(
    module: LatentModule,
    batches: Batches,
    phases: Iterable[Phase],
    *,
    generator: torch.Generator,
    validation: Batches | None = None,
    penalty_scale: float = 1.0,
    optimizer: ProximalAdam | None = None,
    progress: Progress | None = None,
    log: TrainingLog | None = None,
) -> TrainingLog:
    """Run a schedule on a module, in place; end it early at the user's request (`stop_on_interrupt`).

    Parameters
    ----------
    module : LatentModule
    batches : Batches
        Training rows.
    phases : iterable of Phase
    generator : torch.Generator
        Of the reparameterisation noise.
    validation : Batches, optional
        Held-out rows for early stopping.
    penalty_scale : float
        Multiplies the mask penalty; 1 is the model as stated.
    optimizer : ProximalAdam, optional
        Of this module, to go on with; a new one by default.
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
    optimizer = ProximalAdam(module, batches.n_samples) if optimizer is None else optimizer
    mask, journal, group = module.mask, current_journal(), current_group()
    if group is not None:
        group.copy_first_(module.state_dict())
    course = Course(module, batches, generator, optimizer, log.epochs)
    training_begins()
    begun = None if journal is None else journal.begin(course)
    if begun is not None and "phase" not in begun:
        return log  # it was complete
    for place, phase in enumerate(phases):
        if begun is not None and place < begun["phase"]:
            continue
        if stop_requested():
            break
        if mask is not None:
            mask.set_rates(phase.spike_rate, phase.slab_rate)
        best = _Best(module, phase.patience) if phase.patience and validation is not None else None
        first = 0
        if begun is not None:
            first = begun["epoch"]
            if best is not None:
                best.load_state_dict(begun["best"])
            begun = None
        for epoch in range(first, phase.epochs):
            if best is not None and best.exhausted:  # and so it was when the fit was cut off
                break
            if mask is not None:
                mask.zeros_may_return = phase.zeros_may_return or epoch == 0 or bool(module.replicates)
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
            call_after_epoch(record)
            if group is not None:
                group.agree_to_stop()
            if journal is not None:
                journal.after_epoch(course, place, epoch + 1, None if best is None else best.state_dict)
            if (best is not None and best.exhausted) or stop_requested():
                break
        if best is not None:
            best.restore()
    if mask is not None:
        mask.zeros_may_return = True
    if journal is not None:
        journal.end(course)
    return log


@_on_step_threads
@torch.no_grad()
def held_out_bound(module: LatentModule, rows: Batches) -> Tensor:
    """Mean ELBO per row at fixed draws of the factors: shape of the replicates."""
    n_draws = min(max(400 // rows.n_rows, 1), 4)  # fewer where rows are many: their average must be exact
    training = module.training
    module.eval()
    total: Tensor | float = 0.0
    generator = torch.Generator().manual_seed(0)
    group = current_group() if rows.is_shared else None
    for batch, own, n_rows, part, fraction in rows.shares(group, shuffle=False):
        # The same draws for all replicates, so that they are compared and not their luck. All of a row in one
        # step: where rows are few, a step costs more than they do.
        draws = [torch.randn(n_rows, module.n_noise, generator=generator)[own] for _ in range(n_draws)]
        noise = torch.cat(draws).to(batch.x.device)
        loss = module.step(batch.repeated(n_draws), noise, rows.n_samples).loss
        total = total - (loss.reconstruction + loss.kl) * (fraction if group is None else fraction * part)
    module.train(training)
    return summed(group, {"bound": torch.as_tensor(total)})["bound"]


def _epoch(
    module: LatentModule,
    batches: Batches,
    optimizer: ProximalAdam,
    phase: Phase,
    learning_rate: float,
    kl_weight: float,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """One pass over the rows; the terms of the objective, averaged over them."""
    module.train()
    n_samples, n_seen, seen = batches.n_samples, 0, 0.0
    terms: dict[str, Tensor] = {}
    statistics = Statistics()
    group = current_group() if batches.is_shared else None
    if phase.full_batch:
        optimizer.zero_grad()
    for batch, rows, n_rows, part, fraction in batches.shares(group, shuffle=not phase.full_batch):
        # Of the whole batch, so that rows have the same noise whichever process they are in.
        noise = torch.randn(*module.replicates, n_rows, module.n_noise, generator=generator)[..., rows, :]
        # The last steps, on all rows, are to have little noise in their gradient: all features too.
        batch = module.thin(batch, generator, every_feature=phase.full_batch, part_of=(rows, n_rows))
        loss, sums = module.step(batch, noise.to(batch.x.device), n_samples)
        if group is not None:
            loss = Loss(loss.reconstruction * part, loss.kl * part, loss.weight_penalty / group.size)
            if not part:
                sums = Statistics({name: torch.zeros_like(value) for name, value in sums.items()})
        objective = (loss.reconstruction + kl_weight * loss.kl + loss.weight_penalty).sum()
        if phase.full_batch:
            (objective * fraction).backward()
        else:
            optimizer.zero_grad()
            objective.backward()
            if group is not None:
                group.sum_gradients_(optimizer.parameters)
            optimizer.step(learning_rate, hold_mask=phase.hold_mask, proximal=phase.proximal)
        statistics = statistics + sums
        for name, value in loss._asdict().items():
            terms[name] = terms.get(name, torch.zeros_like(value)) + value.detach() * fraction
        n_seen, seen = n_seen + n_rows, seen + fraction
        if n_seen < batches.n_rows and stop_requested():
            # Some of the rows are not enough for the closed forms, nor for a step with the gradient of all.
            terms = summed(group, terms)
            return {name: value / seen for name, value in terms.items()} | module.penalties(n_samples)
    if phase.full_batch:
        if group is not None:
            group.sum_gradients_(optimizer.parameters)
        optimizer.step(learning_rate, hold_mask=phase.hold_mask, proximal=phase.proximal)
    terms = summed(group, terms)
    module.update(Statistics(summed(group, statistics)), n_samples)
    return terms | module.penalties(n_samples)


def _record(module: LatentModule, terms: dict[str, Tensor], phase: Phase, epoch: int, rate: float) -> Record:
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

    def __init__(self, module: LatentModule, patience: int) -> None:
        self.module, self.patience = module, patience
        self.replicated = {name for name, _ in module.replicated()}
        device = next(module.parameters()).device
        self.bound = torch.full(module.replicates, -torch.inf, device=device)
        self.reference = self.bound.clone()
        self.waited = torch.zeros(module.replicates, dtype=torch.long, device=device)
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
            elif name in self.replicated:
                self.state[name][better] = value[better]

    def restore(self) -> None:
        self.module.load_state_dict(self.state)

    def state_dict(self) -> State:
        state = {name: value.clone() for name, value in self.state.items()}
        return {"bound": self.bound, "reference": self.reference, "waited": self.waited, "state": state}

    def load_state_dict(self, state: State) -> None:
        for name in ("bound", "reference", "waited"):
            setattr(self, name, state[name].to(self.bound.device))
        for name, value in self.state.items():
            value.copy_(state["state"][name])
