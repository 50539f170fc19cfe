"""A fit from start to end, in the order of docs/explanation/how-the-fit-works.md.

Each stage takes the state of the fit and leaves the next one; between two stages the state can be written and
read (`FitState.to_dict`). `fitting.checkpoint` does so, with a journal of the training inside a stage.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from sparsevae.fitting.agreement import agreeing_networks
from sparsevae.fitting.choice import (
    drop_lone_factors_,
    held_out_weight,
    null_module,
    pays_for_loadings,
    reasons,
    row_bounds,
    score_table,
    simplest,
)
from sparsevae.fitting.constraints import (
    constrain_,
    count_linear_factors,
    freeze_spare_,
    initial_mask,
    name_factors_,
)
from sparsevae.fitting.data import FitData
from sparsevae.fitting.heads import solve_heads_
from sparsevae.fitting.initial import pytorch_start_, start_at_means_
from sparsevae.fitting.ladder import climb_phases
from sparsevae.fitting.plan import plan_fit
from sparsevae.fitting.recipes import Lengths, Looser
from sparsevae.fitting.settings import FitSettings, new_module
from sparsevae.fitting.single_rate import train_at_one_rate
from sparsevae.fitting.spine import Spine, find_spine, linear_module, network_module
from sparsevae.fitting.starts import masked_starts, rotated_starts
from sparsevae.fitting.state import Candidate, FitState, Fitted
from sparsevae.modules import SparseVAEModule
from sparsevae.training import Phase, ProximalAdam, TrainingLog, train
from sparsevae.training.interrupt import stop_requested
from sparsevae.training.loop import Progress
from sparsevae.training.progress import progress_bar

__all__ = ["STAGES", "candidate_counts", "counts_around", "fit_module"]

_ON_SPINE = ("linear", "network")  # candidates that keep the axes of the spine
_SETTLED = 15  # epochs over which the support must not have changed


def fit_module(
    settings: FitSettings,
    data: FitData,
    *,
    state: FitState | None = None,
    on_stage: Callable[[FitState], None] | None = None,
) -> Fitted:
    """Fit a sparse VAE, stage by stage.

    Parameters
    ----------
    settings : FitSettings
    data : FitData
    state : FitState, optional
        Where an earlier fit with the same settings and rows stopped; the fit goes on from there.
    on_stage : callable, optional
        Called with the state at the end of each stage.
    """
    stages = STAGES if settings.recipe.rates is None else SINGLE_RATE_STAGES
    state = FitState() if state is None else state
    state.restore_randomness_(data)
    names = [stage.__name__ for stage in stages]
    left = stages[names.index(state.stage) + 1 :] if state.stage else stages
    plan = plan_fit(settings, data, names, state)
    with progress_bar(settings.verbose, plan.total) as progress:
        for stage in left:
            name = stage.__name__
            if progress is not None:
                progress.expect(plan.seconds[name], plan.epochs[name], plan.before[name])
            state = stage(settings, data, state, progress).completed(name, data)
            plan = plan_fit(settings, data, names, state)
            if progress is not None:
                progress.reach(plan.until(name), plan.total)
            if on_stage is not None:
                on_stage(state)
    winner = state.winner
    history = winner.log.frame()
    tail = history["n_nonzero"].to_numpy()[-_SETTLED:]
    dropped = reasons(winner.module, winner.n_factors, winner.n_lone)
    if settings.recipe.rates is not None:
        dropped = dict.fromkeys(dropped, "the penalty emptied its column")
    assert state.starts is not None
    # The history of a fit without factors begins with the mask of the spine, which took no training to find.
    empty_spine = state.spine is not None and not winner.n_factors
    settled = empty_spine or bool((tail == tail[-1]).all())
    return Fitted(winner.module, history, state.starts, dropped, settled, state.n_linear, state.spine)


# -- stages --------------------------------------------------------------------------------------------------


def find_axes(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """The linear spine, whose axes are kept unless networks agree on factors that predict rows as well."""
    if not settings.spine_first:
        return state
    spine = find_spine(settings, data)
    if spine is None:
        return state
    state.n_linear = spine.n_linear
    linear = linear_candidate(settings, data, spine, progress)
    if settings.linear and spine.factors.n_factors and not _says_something(linear, data):
        # Of short texts a straight line from codes held to words says little; other codes say more.
        linear = linear_candidate(settings, data, spine, progress, held=False)
    state.spine, state.candidates = spine, [linear]
    if settings.linear or settings.most_predictive:
        return state
    # The networks have encoders that learn; so must the linear model that they are measured by.
    real = bool(data.source.observation.real_columns.all())
    rival = linear if real else linear_candidate(settings, data.in_memory, spine, progress, held=False)
    rivals = null_module(linear.module, data), rival.module
    counts = candidate_counts(settings, data)
    networks = agreeing_networks(settings, data.in_memory, counts, rivals, progress)
    if networks:
        state.networks_agree, state.spine, state.candidates = True, None, networks
    return state


def find_starts(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """Candidates at the foot of the ladder: plain VAEs turned to sparse slopes, or networks behind a mask."""
    if state.spine is not None and not settings.linear:
        [linear] = state.candidates
        module = network_module(settings, data, linear.module, state.spine)
        state.candidates = [linear, Candidate(module, TrainingLog(), linear.n_factors, kind="network")]
    if state.spine is not None and not settings.most_predictive:
        return state
    if not settings.from_vae:
        state.candidates = [*state.candidates, *_starts_from_mask(settings, data.in_memory, progress)]
        return state
    if not state.networks_agree:
        counts = candidate_counts(settings, data)
        starts = rotated_starts(settings, data.in_memory, counts, progress)
        state.candidates = [*state.candidates, *starts]
    for candidate in _climbers(state):
        name_factors_(settings, candidate.module)
        constrain_(settings, data.in_memory, candidate.module)
        if not settings.small:  # small ones climb side by side and have `frozen` in common
            freeze_spare_(candidate.module)
    return state


def climb(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """Each candidate up the ladder; factors that only one feature uses at the top are dropped.

    A network on a spine has no ladder to climb: its links are settled, and it learns curves and interactions.
    """
    for candidate in state.candidates:
        if candidate.kind == "network":
            train_network(settings, data, candidate, progress)
    epochs = settings.budget(data).ladder
    if state.networks_agree and settings.recipe.spine is not None:
        epochs = min(epochs, settings.recipe.spine.ladder.epochs(data.n_steps))
    if climbers := _climbers(state):
        _climb(settings, data, climbers, epochs, progress)
    return state


def choose(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """The best of the candidates and the empty mask, by held-out rows; the simpler one wins near ties."""
    first = state.candidates[0]
    trained = [c for c in state.candidates if c.log.epochs or c.kind == "linear"] or state.candidates
    if not stop_requested():  # a fit that was cut short cannot say that there is nothing to find
        trained.append(Candidate(null_module(first.module, data), first.log, 0))
    state.candidates = trained
    state.chosen, state.starts = _choose(trained, data)
    if state.spine is not None and settings.most_predictive:
        # First among ladders; what stands on the spine is weighed when the best of them is known.
        climbers = _climbers(state)
        best = climbers[_choose(climbers, data)[0]] if climbers else state.winner
        _take(state, best)
    elif state.spine is not None and trained[-1].n_factors == 0:
        # What sparse links have cost already counts.
        kept = min(settings.gain_kept / state.spine.gain_kept, 1.0)
        bounds = np.stack([_bounds(candidate, data) for candidate in trained])
        state.chosen = simplest(bounds, kept, held_out_weight(data))
        state.starts["chosen"] = np.arange(len(trained)) == state.chosen
    return state


def loosen(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """The winner's ladder again with a lower rate, to be kept if held-out rows pay for its loadings.

    So must they for what stands on the spine, if the most predictive fit is asked for.
    """
    if state.spine is not None and not settings.most_predictive:
        return state
    _loosen(settings, data, state, progress)
    if state.spine is not None:
        _weigh_spine(settings, data, state)
    return state


def refine(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """Train the winner on all rows, in batches."""
    rate = settings.learning_rate
    phase = Phase("refine", settings.budget(data).refine, (rate, 0.1 * rate))
    if state.spine is not None and settings.recipe.spine is not None:
        # A history has an epoch; without factors the parameters of the likelihood are still to be learnt.
        budget, least = settings.budget(data), int(not (state.winner.log.epochs and state.winner.n_factors))
        allowed = budget.refine + budget.polish if settings.max_epochs is not None else phase.epochs
        phase = replace(phase, epochs=max(min(settings.recipe.spine.refine, allowed), least), hold_mask=True)
        if state.winner.kind == "network" and state.winner.n_factors and _has_closed_heads(data):
            # An epoch for the closed forms of the rest: noise, covariance of the factors.
            solve_heads_(state.winner.module, data.everything)
            phase = replace(phase, epochs=min(phase.epochs, 1), learning_rate=(0.1 * rate, 0.1 * rate))
    elif state.networks_agree and settings.recipe.spine is not None:
        phase = replace(phase, epochs=min(phase.epochs, settings.recipe.spine.settle.epochs(data.n_steps)))
    return _train_on_all_rows(settings, data, state, phase, progress)


def polish(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """Train the winner on all rows at once: without noise in the gradient, null entries reach zero."""
    if state.spine is not None:
        return state
    rate, epochs = settings.learning_rate, settings.budget(data).polish
    if state.networks_agree and settings.recipe.spine is not None and not settings.small:
        epochs = min(epochs, settings.recipe.spine.polish)
    phase = Phase("polish", epochs, (0.1 * rate, 0.05 * rate), full_batch=True)
    return _train_on_all_rows(settings, data, state, phase, progress)


def train_once(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> FitState:
    """The algorithm as printed: one pair of rates from the first step to the last."""
    state.starts = train_at_one_rate(settings, data, state.winner, progress)
    return state


Stage = Callable[[FitSettings, FitData, FitState, Progress | None], FitState]
STAGES: tuple[Stage, ...] = (find_axes, find_starts, climb, choose, loosen, refine, polish)
"""Of a fit whose rates are set from the table."""
SINGLE_RATE_STAGES: tuple[Stage, ...] = (find_starts, train_once)
"""Of a recipe with given rates."""


# -- candidates ----------------------------------------------------------------------------------------------


def candidate_counts(settings: FitSettings, data: FitData) -> list[int]:
    """Numbers of factors to try: around the number of linear ones, and not below that of named ones."""
    n_named = len(settings.named_factors)
    counts = counts_around(max(count_linear_factors(data), n_named), settings.n_factors)
    # Factors without known anchors must earn their place against a fit without them.
    return sorted({n_named, *(max(count, n_named) for count in counts)}) if n_named else counts


def counts_around(n_linear: int, n_factors: int) -> list[int]:
    """Numbers of factors to try, given the number of linear ones.

    Products of factors look like factors of their own to a linear analysis, so the truth may lie below its
    count; one more is tried where counts are small, because one is then a large part.
    """
    step = max(1, round(0.15 * n_linear))
    counts = [n_linear - 2 * step, n_linear - step, n_linear]
    if step == 1:
        counts.append(n_linear + 1)
    return sorted({min(max(count, 1), n_factors) for count in counts})


def linear_candidate(
    settings: FitSettings, data: FitData, spine: Spine, progress: Progress | None, *, held: bool = True
) -> Candidate:
    """The spine as a module; of likelihoods that are not Gaussian the loadings are trained, zeros stay.

    With holes the encoder is trained too: rows that lack other features need other maps.
    """
    module, log = linear_module(settings, data, spine, held=held), TrainingLog()
    n_lone = drop_lone_factors_(module)
    assert settings.recipe.spine is not None
    phase = _spine_phase(settings, data, module, "spine", settings.recipe.spine.network)
    if data.source.observation.real_columns.all():
        phase = replace(phase, hold_mask=True)
        if not data.source.has_missing:  # closed forms are exact: an epoch for the history
            phase = replace(phase, epochs=1)
    train(
        module,
        data.training,
        [phase],
        generator=data.generator,
        validation=data.validation,
        progress=progress,
        log=log,
    )
    return Candidate(module, log, spine.factors.n_factors, kind="linear", n_lone=n_lone)


def _says_something(candidate: Candidate, data: FitData) -> bool:
    """Whether it gains on held-out rows over no factors, beyond chance."""
    bounds = np.stack([_bounds(candidate, data), row_bounds(null_module(candidate.module, data), data)])
    return simplest(bounds, 1.0, held_out_weight(data)) == 0


def train_network(
    settings: FitSettings, data: FitData, candidate: Candidate, progress: Progress | None
) -> None:
    """Train a network on a spine with the mask held; it stops when held-out rows gain nothing more.

    Heads of Gaussian features have a closed form: gradient steps between two of them teach the hidden layers.
    """
    drop_lone_factors_(candidate.module)
    closed = _has_closed_heads(data)
    if closed:
        solve_heads_(candidate.module, data.training, data.validation)
    assert settings.recipe.spine is not None
    lengths = settings.recipe.spine.hidden if closed else settings.recipe.spine.network
    phase = replace(_spine_phase(settings, data, candidate.module, "network", lengths), hold_mask=True)
    train(
        candidate.module,
        data.training,
        [phase],
        generator=data.generator,
        validation=data.validation,
        progress=progress,
        log=candidate.log,
    )
    if closed:
        solve_heads_(candidate.module, data.training, data.validation)


def _has_closed_heads(data: FitData) -> bool:
    return bool(data.source.observation.real_columns.all())


def _spine_phase(
    settings: FitSettings, data: FitData, module: SparseVAEModule, name: str, lengths: Lengths
) -> Phase:
    recipe, mask = settings.recipe.spine, module.mask
    assert recipe is not None
    epochs = lengths.epochs(data.n_steps)
    if settings.max_epochs is not None:
        epochs = min(epochs, settings.budget(data).ladder)
    rate = settings.learning_rate
    patience = recipe.patience if data.validation is not None else 0
    return Phase(name, epochs, (rate, 0.1 * rate), mask.spike_rate, mask.slab_rate, patience=patience)


def _starts_from_mask(settings: FitSettings, data: FitData, progress: Progress | None) -> list[Candidate]:
    """Networks behind a given, rotated, random or anchored mask."""
    recipe, named = settings.recipe, settings.named_factors
    once = recipe.rates is not None
    module = new_module(settings, data, 1 if once or not settings.small else settings.n_starts)
    if recipe.start_at_means:
        start_at_means_(module, data.feature_mean)
    else:
        pytorch_start_(module, data.generator)
    with torch.no_grad():
        module.mask.weight.copy_(initial_mask(settings, data))
    constrain_(settings, data, module)
    if once:
        return [Candidate(module.select(0), TrainingLog(), settings.n_factors)]
    modules = [(module, settings.n_factors)]
    if named and len(named) < settings.n_factors:
        # Factors without known anchors must earn their place against a fit without them.
        modules.insert(0, (_restricted(module, named), len(named)))
    epochs = settings.budget(data).dense
    return [Candidate(*masked_starts(m, settings, data, epochs, progress), count) for m, count in modules]


def _restricted(module: SparseVAEModule, factors: list[int]) -> SparseVAEModule:
    """A copy that has these factors only."""
    copy = module.clone()
    others = [k for k in range(module.n_factors) if k not in factors]
    with torch.no_grad():
        copy.mask.weight[..., others] = 0.0
        copy.mask.frozen[:, others] = True
    return copy


def _climb(
    settings: FitSettings,
    data: FitData,
    candidates: list[Candidate],
    epochs: int,
    progress: Progress | None,
) -> None:
    """Small modules side by side, where the cost is Python's, not arithmetic's; large ones in turn."""

    def up(module: SparseVAEModule, log: TrainingLog) -> None:
        phases = climb_phases(settings, data, module, epochs, candidates[0].rate)
        train(
            module,
            data.training,
            phases,
            generator=data.generator,
            validation=data.validation,
            progress=progress,
            log=log,
        )

    for candidate in candidates:
        candidate.foot = replace(candidate, module=candidate.module.clone(), log=deepcopy(candidate.log))
    first = candidates[0].module.mask.frozen
    alike = all(torch.equal(candidate.module.mask.frozen, first) for candidate in candidates)
    if len(candidates) > 1 and alike and settings.small:
        together, log = SparseVAEModule.stack([candidate.module for candidate in candidates]), TrainingLog()
        up(together, log)
        for r, candidate in enumerate(candidates):
            candidate.module = together.select(r)
            candidate.log = candidate.log.followed_by(log.of(r))
    else:
        for candidate in candidates:
            up(candidate.module, candidate.log)
    for candidate in candidates:
        candidate.n_lone = drop_lone_factors_(candidate.module)


def _train_on_all_rows(
    settings: FitSettings, data: FitData, state: FitState, phase: Phase, progress: Progress | None
) -> FitState:
    if not settings.recipe.polish:
        return state
    module, mask = state.winner.module, state.winner.module.mask
    if state.optimizer is None:
        state.optimizer = ProximalAdam(module, data.everything.n_samples)
    train(
        module,
        data.everything,
        [replace(phase, spike_rate=mask.spike_rate, slab_rate=mask.slab_rate)],
        generator=data.generator,
        optimizer=state.optimizer,
        progress=progress,
        log=state.winner.log,
    )
    return state


def _climbers(state: FitState) -> list[Candidate]:
    """Those that have a ladder to climb."""
    return [candidate for candidate in state.candidates if candidate.kind not in _ON_SPINE]


def _take(state: FitState, candidate: Candidate) -> None:
    """Go on with this one."""
    taken = [other is candidate for other in state.candidates]
    state.chosen = taken.index(True)
    if state.starts is not None:
        state.starts["chosen"] = taken


def _loosen(settings: FitSettings, data: FitData, state: FitState, progress: Progress | None) -> None:
    looser, winner = settings.recipe.looser, state.winner
    if looser is None or not settings.rate_is_free or state.networks_agree:
        return
    if winner.foot is None or data.validation is None or stop_requested():
        return
    full = settings.budget(data).ladder
    before = data.generator.get_state()
    other = replace(winner.foot, rate=looser.rate)
    _climb(settings, data, [other], min(full, max(looser.epochs, full // 2)), progress)
    taken = winner
    if not torch.equal(other.module.support(), winner.module.support()):
        state.candidates = [*state.candidates, other]
        _, state.starts = _choose(state.candidates, data)
        if _pays(looser, data, other, winner):
            taken = other
        _take(state, taken)
    if taken is winner:
        data.generator.set_state(before)  # what was tried in vain leaves no trace in the fit


def _weigh_spine(settings: FitSettings, data: FitData, state: FitState) -> None:
    """Keep what stands on the spine if held-out rows pay for its links beyond those of the winner."""
    best = state.winner
    for candidate in state.candidates:
        if candidate.kind in _ON_SPINE and _pays(settings.recipe.looser or Looser(), data, candidate, best):
            best = candidate
    _take(state, best)
    if best.kind not in _ON_SPINE:
        state.spine = None


def _pays(looser: Looser, data: FitData, candidate: Candidate, other: Candidate) -> bool:
    """Whether held-out rows pay for the loadings that a candidate has more than another one."""
    more = int(candidate.module.support().sum()) - int(other.module.support().sum())
    bounds = _bounds(candidate, data), _bounds(other, data)
    return pays_for_loadings(looser, *bounds, more, data.everything.n_samples, held_out_weight(data))


def _choose(candidates: list[Candidate], data: FitData) -> tuple[int, pd.DataFrame]:
    """Position of the candidate to go on with, and the table behind the choice."""
    bounds = np.stack([_bounds(candidate, data) for candidate in candidates])
    chosen, table = score_table([candidate.module for candidate in candidates], bounds, data)
    table.insert(0, "start", [candidate.label for candidate in candidates])
    return chosen, table


def _bounds(candidate: Candidate, data: FitData) -> np.ndarray:
    """Bounds of held-out rows, computed once."""
    if candidate.bounds is None:
        candidate.bounds = row_bounds(candidate.module, data)
    return candidate.bounds
