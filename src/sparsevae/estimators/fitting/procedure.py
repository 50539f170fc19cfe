"""A fit from start to end: candidates, each up the ladder, the choice, the last steps on all rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from sparsevae.estimators.fitting.budget import Budget
from sparsevae.estimators.fitting.choice import (
    drop_lone_factors_,
    null_module,
    pays_for_loadings,
    reasons,
    row_bounds,
    score_table,
)
from sparsevae.estimators.fitting.constraints import (
    anchor_entries,
    count_linear_factors,
    fix_anchors_,
    fix_covariance_,
    freeze_constant_,
    freeze_spare_,
    initial_mask,
    name_factors_,
)
from sparsevae.estimators.fitting.literal import fit_literally
from sparsevae.estimators.fitting.rates import climb_phases, rate_is_free
from sparsevae.estimators.fitting.settings import is_small, module_options, n_starts
from sparsevae.estimators.preparing import FitData
from sparsevae.modules import FactorModule
from sparsevae.modules.surgery import select, stack
from sparsevae.training import Phase, TrainingLog, train
from sparsevae.training.initial import initial_outputs_, usual_start_
from sparsevae.training.interrupt import stop_requested
from sparsevae.training.loop import Progress
from sparsevae.training.progress import progress_bar
from sparsevae.training.starts import (
    dense_starts,
    masked_starts,
    sparse_start,
)

__all__ = ["Candidate", "Fitted", "candidate_counts", "climbed_candidates", "fit_default", "fit_from_mask"]

_DENSE_SPEED = 3.0  # learning rate of dense starts that are many, relative to the ladder's
_LOOSER = 0.3  # of the default rate; below it, entries without effect would stay in numbers
_LOOSER_EPOCHS = 40  # of such a ladder; half of the first one's where that is more
_SETTLED = 15  # epochs over which the support must not have changed


@dataclass
class Fitted:
    """A fitted module with its history, the candidates compared, and whether its support had settled."""

    module: FactorModule
    history: pd.DataFrame
    starts: pd.DataFrame
    dropped: dict[int, str]
    converged: bool


@dataclass
class Candidate:
    """A module on its way, its history, and what it began with.

    Attributes
    ----------
    module : FactorModule
    log : TrainingLog
    n_factors : int
        That it began with.
    share : float
        Of the default rate that its ladder has.
    n_lone : int
        Factors dropped at the top of the ladder because one feature alone used them.
    foot : Candidate, optional
        What it was before the ladder.
    bounds : ndarray of shape (n_rows,), optional
        Of held-out rows, once it has been scored.
    """

    module: FactorModule
    log: TrainingLog
    n_factors: int
    share: float = 1.0
    n_lone: int = 0
    foot: Candidate | None = None
    bounds: np.ndarray | None = None

    @property
    def label(self) -> str:
        """What the table of starts calls it."""
        if not self.n_factors:
            return "none"
        return str(self.n_factors) + (f", {self.share:g} of the rate" if self.share != 1.0 else "")


def fit_default(estimator: Any, data: FitData) -> Fitted:
    """The default recipe: plain VAEs for a few numbers of factors, a ladder from each, the best of them."""
    counts = candidate_counts(estimator, data)
    budget = Budget.of(estimator.max_epochs, data.n_steps, small=is_small(estimator, data))
    total = budget.total + len(counts) * budget.ladder
    with progress_bar(estimator.verbose, total) as progress:
        candidates = climbed_candidates(estimator, data, counts, budget, progress)
        return _conclude(estimator, data, candidates, budget, progress)


def climbed_candidates(
    estimator: Any, data: FitData, counts: list[int], budget: Budget, progress: Progress | None
) -> list[Candidate]:
    """For each number of factors the best plain VAE, turned to sparse slopes and taken up the ladder."""
    options = module_options(estimator, data)
    dense = dense_starts(
        options,
        data.table,
        data.training,
        counts,
        n_starts(estimator, data),
        data.feature_mean,
        epochs=budget.dense,
        learning_rate=(_DENSE_SPEED if is_small(estimator, data) else 1.0) * estimator.learning_rate,
        generator=data.generator,
        random_state=data.random_state,
        progress=progress,
    )
    candidates = []
    for (plain, log), count in zip(dense, counts, strict=True):
        module = sparse_start(plain, data.training, data.random_state, options["covariance"])
        name_factors_(estimator, module)
        freeze_constant_(module, data)
        fix_covariance_(estimator, module)
        fix_anchors_(estimator, module)
        if not is_small(estimator, data):  # small ones climb side by side and have `frozen` in common
            freeze_spare_(module)
        candidates.append(Candidate(module, log, count))
    _climb(estimator, data, candidates, budget, progress)
    return candidates


def fit_from_mask(estimator: Any, data: FitData) -> Fitted:
    """A fit from a given, rotated, random or anchored mask; the paper's and the authors' recipes too."""
    literal, small = estimator.recipe != "default", is_small(estimator, data)
    budget = Budget.of(estimator.max_epochs, data.n_steps, small=small or literal, from_plain=False)
    n_networks = 1 if literal or not small else n_starts(estimator, data)
    start = _masked_module(estimator, data, n_networks)
    candidates = [Candidate(start, TrainingLog(), estimator.n_factors)]
    named = sorted(set((estimator.anchors or {}).values()))
    if named and not literal and len(named) < estimator.n_factors:
        # Factors without known anchors must earn their place against a fit without them.
        candidates.insert(0, Candidate(_restricted(start, named), TrainingLog(), len(named)))
    with progress_bar(estimator.verbose, len(candidates) * budget.total) as progress:
        if literal:
            module = select(start, 0)
            log, starts, dropped = fit_literally(estimator, data, module, budget.total, progress)
            history = log.frame()
            return Fitted(module, history, starts, dropped, _settled(history))
        for candidate in candidates:
            candidate.module, candidate.log = masked_starts(
                candidate.module,
                data.training,
                epochs=budget.dense,
                learning_rate=estimator.learning_rate,
                generator=data.generator,
                progress=progress,
            )
        _climb(estimator, data, candidates, budget, progress)
        return _conclude(estimator, data, candidates, budget, progress)


def candidate_counts(estimator: Any, data: FitData) -> list[int]:
    """Numbers of factors to try: around the number of linear ones, and not below that of named ones."""
    n_named = len({factor for _, factor in anchor_entries(estimator, data.table.n_features)})
    counts = counts_around(max(count_linear_factors(data), n_named), estimator.n_factors)
    # Factors without known anchors must earn their place against a fit without them.
    return sorted({n_named, *(max(count, n_named) for count in counts)}) if n_named else counts


def counts_around(n_linear: int, n_factors: int) -> list[int]:
    """Numbers of factors to try, given the number of linear ones.

    Products of factors look like factors of their own to a linear analysis, so the truth may lie below its
    count; one more is tried where counts are small, because one is then a large share.
    """
    step = max(1, round(0.15 * n_linear))
    counts = [n_linear - 2 * step, n_linear - step, n_linear]
    if step == 1:
        counts.append(n_linear + 1)
    return sorted({min(max(count, 1), n_factors) for count in counts})


def _masked_module(estimator: Any, data: FitData, n_networks: int) -> FactorModule:
    module = FactorModule(
        data.table.observation,
        generator=data.generator,
        replicates=(n_networks,),
        **module_options(estimator, data),
    ).to(data.table.device)
    if estimator.recipe == "default":
        initial_outputs_(module, data.feature_mean)
    else:
        usual_start_(module, data.generator)
    with torch.no_grad():
        module.mask.copy_(initial_mask(estimator, data))
    freeze_constant_(module, data)
    fix_covariance_(estimator, module)
    fix_anchors_(estimator, module)
    return module


def _restricted(module: FactorModule, factors: list[int]) -> FactorModule:
    """A copy that has these factors only."""
    copy = select(module, list(range(module.replicates[0])))
    others = [k for k in range(module.n_factors) if k not in factors]
    with torch.no_grad():
        copy.mask[..., others] = 0.0
        copy.frozen[:, others] = True
    return copy


def _climb(
    estimator: Any, data: FitData, candidates: list[Candidate], budget: Budget, progress: Progress | None
) -> None:
    """Each candidate up the ladder; factors that only one feature uses at the top are dropped."""
    for candidate in candidates:
        candidate.foot = replace(candidate, module=select(candidate.module, 0), log=deepcopy(candidate.log))
    _climb_ladders(estimator, data, candidates, budget, progress)
    for candidate in candidates:
        candidate.n_lone = drop_lone_factors_(candidate.module)


def _climb_ladders(
    estimator: Any, data: FitData, candidates: list[Candidate], budget: Budget, progress: Progress | None
) -> None:
    """Small modules side by side, where the cost is Python's, not arithmetic's; large ones in turn."""

    def climb(module: FactorModule, log: TrainingLog) -> None:
        train(
            module,
            data.training,
            climb_phases(estimator, data, module, budget.ladder, candidates[0].share),
            generator=data.generator,
            validation=data.validation,
            progress=progress,
            log=log,
        )

    first = candidates[0].module
    alike = all(torch.equal(candidate.module.frozen, first.frozen) for candidate in candidates)
    if len(candidates) == 1 or not alike or not is_small(estimator, data):
        for candidate in candidates:
            climb(candidate.module, candidate.log)
        return
    together, log = stack([candidate.module for candidate in candidates]), TrainingLog()
    climb(together, log)
    for r, candidate in enumerate(candidates):
        candidate.module = select(together, r)
        candidate.log = candidate.log.followed_by(log.of(r))


def _conclude(
    estimator: Any, data: FitData, candidates: list[Candidate], budget: Budget, progress: Progress | None
) -> Fitted:
    """Choose among the candidates and the empty mask, then take the last steps on all rows."""
    everyone = [candidate for candidate in candidates if candidate.log.epochs] or candidates
    if not stop_requested():  # a fit that was cut short cannot say that there is nothing to find
        everyone.append(Candidate(null_module(candidates[0].module, data), candidates[0].log, 0))
    winner, starts = _choose(everyone, data)
    if estimator._ingredients.looser and rate_is_free(estimator):
        winner, starts = _loosen(estimator, data, everyone, winner, starts, budget, progress)
    if estimator._ingredients.polish:
        _train_on_all_rows(estimator, data, winner, budget, progress)
    history = winner.log.frame()
    dropped = reasons(winner.module, winner.n_factors, winner.n_lone)
    return Fitted(winner.module, history, starts, dropped, _settled(history))


def _loosen(
    estimator: Any,
    data: FitData,
    everyone: list[Candidate],
    winner: Candidate,
    starts: pd.DataFrame,
    budget: Budget,
    progress: Progress | None,
) -> tuple[Candidate, pd.DataFrame]:
    """The winner's ladder again with a lower rate, to be kept if held-out rows pay for its loadings."""
    if winner.foot is None or data.validation is None or stop_requested():
        return winner, starts
    short = replace(budget, ladder=min(budget.ladder, max(_LOOSER_EPOCHS, budget.ladder // 2)))
    before = data.generator.get_state()
    looser = replace(winner.foot, share=_LOOSER)
    _climb(estimator, data, [looser], short, progress)
    taken = winner
    more = int(looser.module.support().sum()) - int(winner.module.support().sum())
    if not torch.equal(looser.module.support(), winner.module.support()):
        everyone = [*everyone, looser]
        _, starts = _choose(everyone, data)
        if pays_for_loadings(_bounds(looser, data), _bounds(winner, data), more, data.everything.n_rows):
            taken = looser
        starts["chosen"] = [candidate is taken for candidate in everyone]
    if taken is winner:
        data.generator.set_state(before)  # what was tried in vain leaves no trace in the fit
    return taken, starts


def _train_on_all_rows(
    estimator: Any, data: FitData, winner: Candidate, budget: Budget, progress: Progress | None
) -> None:
    """The last steps: in batches, then with the gradient of all rows at once."""
    module, rate = winner.module, estimator.learning_rate
    phases = [
        Phase("refine", budget.refine, (rate, 0.1 * rate)),
        Phase("polish", budget.polish, (0.1 * rate, 0.05 * rate), full_batch=True),
    ]
    phases = [replace(phase, spike_rate=module.spike_rate, slab_rate=module.slab_rate) for phase in phases]
    train(module, data.everything, phases, generator=data.generator, progress=progress, log=winner.log)


def _choose(candidates: list[Candidate], data: FitData) -> tuple[Candidate, pd.DataFrame]:
    """The candidate to go on with, and the table behind the choice."""
    bounds = np.stack([_bounds(candidate, data) for candidate in candidates])
    chosen, table = score_table([candidate.module for candidate in candidates], bounds, data)
    table.insert(0, "start", [candidate.label for candidate in candidates])
    return candidates[chosen], table


def _bounds(candidate: Candidate, data: FitData) -> np.ndarray:
    """Bounds of held-out rows, computed once."""
    if candidate.bounds is None:
        candidate.bounds = row_bounds(candidate.module, data)
    return candidate.bounds


def _settled(history: pd.DataFrame) -> bool:
    tail = history["n_nonzero"].to_numpy()[-_SETTLED:]
    return bool((tail == tail[-1]).all())
