"""Whether networks find the same factors in two halves of the rows: where they do, they may settle the axes.

On tables with factors that a network can identify (anchors, clear zeros), plain VAEs fitted to disjoint
halves and turned to sparse slopes agree on every factor, and disagree on one that is too many: the number of
factors that return is the number there is. On most real tables they agree on few, or one factor more disturbs
the others, and the axes of the linear spine come back more often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from sparsevae.decoder.threads import side_by_side
from sparsevae.fitting.axes import matched_correlations
from sparsevae.fitting.data import FitData
from sparsevae.fitting.settings import FitSettings
from sparsevae.fitting.starts import dense_starts, rotated_starts, rotation_seed, sparse_start
from sparsevae.fitting.state import Candidate
from sparsevae.modules import LatentModule, SparseVAEModule, VAEModule
from sparsevae.training import Batches, Phase, TrainingLog, train
from sparsevae.training.loop import Progress, held_out_bound

__all__ = ["agreeing_networks"]

_MUCH = 1.08  # gain of a network that predicts much better, in gains of the linear model
_MUCH_OF_LEVELS = 1.15  # the same of ordered answers: bfi gives 1.04 to 1.11, known factors 1.2 and above
_RETURNS = 0.8  # rank correlation of a factor that the other half shows too, where they predict much better
_RETURNS_CLOSELY = 0.97  # the same elsewhere: known factors are at 0.98 and above, those of bfi at 0.96
_RETURNS_IN_COUNTS = 0.75  # the same of counts, whose rows say less: known factors are all at 0.8 to 0.9
_RETURNS_ALONE = 0.9  # the same, at least, of networks that have just the factors agreed upon
_BLUR = 0.25  # power of the fraction of values seen, by which these correlations are less
_LEAST = 0.3  # gain of a network that is fitted to half of the rows, in gains of the linear model of all
_HOLES_COST = 2.0  # power of the fraction that is seen, by which that gain is less where values are missing
_AS_WELL = 0.95  # of the best gain of the numbers of factors tried; that of one start is not exact
_NEARLY = 0.75  # the same of numbers of factors that are tried again with more starts
_TRIED = 2  # numbers of factors in the second half of a large table, those that predict best in the first
_ON = (0.8, 0.4)  # of their epochs, for which networks of small and large tables go on with all rows
_ROWS = 2000  # rows on which the two sets of codes are compared


def agreeing_networks(
    settings: FitSettings,
    data: FitData,
    counts: list[int],
    rivals: tuple[SparseVAEModule, SparseVAEModule],
    progress: Progress | None,
) -> list[Candidate]:
    """Networks that agree with another one on all of their factors, each fitted to half of the training rows.

    Factors that are there are found again by networks that have one more, beside one that is not. So networks
    agree on as many factors as return between the halves; a network with this number must predict as well as
    any. If none predicts much better than the linear model, the factors must return closely, in networks that
    have more of them if such are tried, and those that have just these must not lose one. Networks of ordered
    answers are then not asked: now and then they agree closely on axes that the next start does not show.

    Parameters
    ----------
    settings : FitSettings
    data : FitData
    counts : list of int
        Numbers of factors to try.
    rivals : (SparseVAEModule, SparseVAEModule)
        Fits without factors, and with linear ones.
    progress : callable, optional

    Returns
    -------
    list of Candidate
        For each number of factors on which they agree the better of the two, trained on with all rows and
        turned to sparse slopes: where a ladder begins. Of a small table both, for all numbers, if there is
        agreement on one: a ladder for each is cheap there, and tells better how many factors there are. Of a
        small table that is much curved, new ones of all rows, for all numbers that predict nearly as well.
    """
    recipe = settings.recipe.spine
    assert recipe is not None
    few = replace(settings, n_init=recipe.n_starts(settings.small, settings.n_init))
    epochs = max(1, round(recipe.check * settings.budget(data).dense))
    one, other = _halves(data)

    def networks(settings: FitSettings, half: FitData, counts: list[int]) -> dict[int, _Network]:
        """The best network of one half for each number of factors, by the rows of the other one."""
        unseen = [other.training if half is one else one.training]
        starts = dense_starts(settings, half, counts, epochs, progress, judge=unseen[0])
        found = dict(zip(counts, starts, strict=True))
        unseen += [] if data.validation is None else [data.validation]
        null, linear = (_bound(module, unseen) for module in rivals)
        scale = max(linear - null, 1e-9)
        gains = {k: (_bound(vae, unseen) - null) / scale for k, (vae, _) in found.items()}
        lost = {k: -math.inf for k, gain in gains.items() if not math.isfinite(gain)}  # it diverged
        return {k: _Network((gains | lost)[k], *network) for k, network in found.items()}

    first = networks(few, one, counts)
    least = _LEAST * (1.0 - data.holes) ** _HOLES_COST
    if max(network.gain for network in first.values()) < least:  # the other half would hardly do better
        return []
    tried = sorted(counts, key=lambda k: -first[k].gain)[: None if settings.small else _TRIED]
    found = _compare(few, data, (one, other), first, networks(few, other, tried))
    if settings.small and found.much:
        # Curved tables have many poor optima, and half of few rows is little: many starts, of all rows.
        return rotated_starts(settings, data, found.plausible, progress)
    better, agreed = found.better, found.agreed
    least = 1.0 if found.much else max(least, _AS_WELL * found.best)
    for k in sorted(agreed):
        if better[k].gain < least and not settings.small:
            # Larger networks have found these factors; this one had one start, and needs more.
            better[k] = max(better[k], networks(settings, one, [k])[k], key=lambda network: network.gain)
    agreed = {k for k in agreed if better[k].gain >= least}
    if settings.small and agreed:
        both = [(k, n) for k in counts for n in found.pairs[k] if n.gain > -math.inf]
        return _starts(few, data, both, epochs, progress)
    return _starts(few, data, [(k, better[k]) for k in sorted(agreed)], epochs, progress)


class _Network(NamedTuple):
    """A plain VAE of half of the rows; its gain on all others, in gains of the linear model of all."""

    gain: float
    vae: VAEModule
    log: TrainingLog


@dataclass(frozen=True)
class _Comparison:
    """Networks of two halves of the rows.

    Attributes
    ----------
    pairs : dict from int to list of _Network
        For each number of factors the network of the first half, and of the other one where it was tried.
    much : bool
        Whether the best predicts much better than the linear model.
    agreed : set of int
        Numbers of factors that return.
    """

    pairs: dict[int, list[_Network]]
    much: bool
    agreed: set[int]

    @property
    def better(self) -> dict[int, _Network]:
        """Of each pair the network that predicts held-out rows better."""
        return {k: max(pair, key=lambda network: network.gain) for k, pair in self.pairs.items()}

    @property
    def best(self) -> float:
        """The largest gain."""
        return max(network.gain for network in self.better.values())

    @property
    def plausible(self) -> list[int]:
        """Numbers of factors that predict nearly as well as any, if some of them return."""
        least = _NEARLY * self.best
        numbers = [k for k, network in self.better.items() if network.gain >= least]
        return numbers if self.agreed.intersection(numbers) else []


def _compare(
    settings: FitSettings,
    data: FitData,
    halves: tuple[FitData, FitData],
    first: dict[int, _Network],
    second: dict[int, _Network],
) -> _Comparison:
    """How many factors of networks of the first half return in those of the second one."""
    counts = list(first)
    pairs = {k: [network, *([second[k]] if k in second else [])] for k, network in first.items()}
    best = max(network.gain for pair in pairs.values() for network in pair)
    ordered = bool(data.source.observation.level_columns.all())
    much = best >= (_MUCH_OF_LEVELS if ordered else _MUCH)
    if ordered and not much:
        return _Comparison(pairs, much, set())
    # One factor is soon agreed upon: without a clear gain the smallest of several numbers proves nothing.
    fewest = min(counts) if len(counts) > 2 and not much else 0
    batch = data.everything.spread(_ROWS)

    def codes(job: tuple[FitData, VAEModule, int, int]) -> np.ndarray:
        half, vae, count, seed = job
        with torch.no_grad():
            start = sparse_start(settings, half, vae.clone(), seed)
            return start.encode(batch)[0].cpu().numpy()[:, :count]

    counted = bool(data.source.observation.count_columns.all())
    returns = _RETURNS if much else _RETURNS_IN_COUNTS if counted else _RETURNS_CLOSELY
    returns *= (1.0 - data.holes) ** _BLUR
    agreed, refuted = set(), set()
    numbers = [k for k in second if k > fewest and min(first[k].gain, second[k].gain) > -math.inf]
    networks = [
        (half, found[k].vae, k) for k in numbers for half, found in zip(halves, (first, second), strict=True)
    ]
    found = side_by_side(codes, [(*network, rotation_seed(data)) for network in networks])
    for k, one, other in zip(numbers, found[::2], found[1::2], strict=True):
        matches = matched_correlations(one, other)
        n_returned = int((matches >= returns).sum())
        if much or n_returned < k or k == max(counts):
            agreed.add(n_returned)
        if not much and matches.min() < min(returns, _RETURNS_ALONE):
            refuted.add(k)
    return _Comparison(pairs, much, {k for k in agreed.intersection(counts) - refuted if k > fewest})


def _bound(module: LatentModule, parts: list[Batches]) -> float:
    """Bound per row of some sets of rows."""
    weights = [rows.n_samples for rows in parts]
    return float(np.average([float(held_out_bound(module, rows)) for rows in parts], weights=weights))


def _halves(data: FitData) -> list[FitData]:
    """The training rows in two halves, by chance."""
    order = torch.as_tensor(data.random_state.permutation(data.training.n_rows))
    rows = [data.training.rows[half] for half in order.tensor_split(2)]
    return [replace(data, training=Batches(data.source, r, data.batch_size, data.generator)) for r in rows]


def _starts(
    settings: FitSettings,
    data: FitData,
    networks: list[tuple[int, _Network]],
    epochs: int,
    progress: Progress | None,
) -> list[Candidate]:
    """Networks of half of the rows, trained on with all of them and turned to sparse slopes."""
    rate = settings.effort.speed * settings.learning_rate
    on = _ON[0] if settings.small else _ON[1]
    phases = [Phase("dense", max(1, round(on * epochs)), (rate, 0.1 * rate))]
    vaes, logs = [network.vae for _, network in networks], [network.log for _, network in networks]
    if settings.small and networks:  # side by side, where the cost is Python's
        together = VAEModule.stack(vaes)
        log = train(together, data.training, phases, generator=data.generator, progress=progress)
        vaes = [together.select(r) for r in range(len(vaes))]
        logs = [before.followed_by(log.of(r)) for r, before in enumerate(logs)]
    else:
        for vae, log in zip(vaes, logs, strict=True):
            train(vae, data.training, phases, generator=data.generator, progress=progress, log=log)
    return [
        Candidate(sparse_start(settings, data, vae), log, k)
        for (k, _), vae, log in zip(networks, vaes, logs, strict=True)
    ]
