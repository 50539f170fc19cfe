"""Whether networks find the same factors in two halves of the rows: where they do, they may settle the axes.

On tables with factors that a network can identify (anchors, clear zeros), plain VAEs fitted to disjoint
halves and turned to sparse slopes agree on every factor, and disagree on one that is too many. On most real
tables they agree on few, and the axes of the linear spine come back more often.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from sparsevae.fitting.axes import matched_correlations
from sparsevae.fitting.data import FitData
from sparsevae.fitting.settings import FitSettings
from sparsevae.fitting.starts import dense_starts, sparse_start
from sparsevae.fitting.state import Candidate
from sparsevae.modules import VAEModule
from sparsevae.training import Batches, Phase, TrainingLog, train
from sparsevae.training.loop import Progress, held_out_bound

__all__ = ["agreeing_networks"]

_MUCH = 1.08  # gain of a network that predicts much better, in gains of the linear model
_RETURNS = 0.8  # rank correlation of a factor that the other half shows too, where they predict much better
_RETURNS_CLOSELY = 0.97  # the same elsewhere: known factors are at 0.98 and above, those of bfi at 0.96
_LEAST = 0.8  # gain of a network that is fitted to half of the rows, in gains of the linear model of all
_HOLES_COST = 2.0  # power of the fraction that is seen, by which that gain is less where values are missing
_AS_WELL = 0.97  # of the best gain of the numbers of factors tried
_TRIED = 2  # numbers of factors in the second half of a large table, those that predict best in the first
_ON = 0.4  # of their epochs, for which networks that agree are trained with all rows
_ROWS = 2000  # rows on which the two sets of codes are compared


def agreeing_networks(
    settings: FitSettings,
    data: FitData,
    counts: list[int],
    bounds: tuple[float, float],
    progress: Progress | None,
) -> list[Candidate]:
    """Networks that agree with another one on all of their factors, each fitted to half of the training rows.

    Networks that predict much better than a linear model must agree for one number of factors; others
    closely, and for a number that predicts as well as any.

    Parameters
    ----------
    settings : FitSettings
    data : FitData
    counts : list of int
        Numbers of factors to try.
    bounds : (float, float)
        Held-out bounds per row without factors, and with a linear model.
    progress : callable, optional

    Returns
    -------
    list of Candidate
        For each number of factors on which they agree the better of the two, trained on with all rows and
        turned to sparse slopes: where a ladder begins. Of a small table new networks for all numbers, if
        there is agreement on one: a ladder for each is cheap there, and tells better than few starts how many
        factors there are.
    """
    first_spine = settings.recipe.spine
    assert first_spine is not None
    order = torch.as_tensor(data.random_state.permutation(data.training.n_rows))
    halves = [
        replace(
            data, training=Batches(data.source, data.training.rows[half], data.batch_size, data.generator)
        )
        for half in order.tensor_split(2)
    ]
    epochs = max(1, round(first_spine.check * settings.budget(data).dense))
    few = replace(settings, n_init=first_spine.n_starts(settings.small, settings.n_init))
    scored = data.validation if data.validation is not None else data.training
    batch = data.everything.spread(_ROWS)

    def networks(half: FitData, counts: list[int]) -> dict[int, tuple[float, VAEModule, TrainingLog]]:
        """The best network for each number of factors: its held-out bound, itself, its history."""
        found = dense_starts(few, half, counts, epochs, progress)
        return {
            k: (float(held_out_bound(vae, scored)), vae, log)
            for k, (vae, log) in zip(counts, found, strict=True)
        }

    def codes(half: FitData, vae: VAEModule, count: int) -> np.ndarray:
        with torch.no_grad():
            return sparse_start(few, half, vae.clone()).encode(batch)[0].cpu().numpy()[:, :count]

    first = networks(halves[0], counts)
    tried = sorted(counts, key=lambda k: -first[k][0])[: None if settings.small else _TRIED]
    second = networks(halves[1], tried)
    null, linear = bounds
    gains = {k: (max(first[k][0], second[k][0]) - null) / max(linear - null, 1e-9) for k in tried}
    best = max(gains.values())
    much = best >= _MUCH
    least = max(_LEAST * (1.0 - data.holes) ** _HOLES_COST, _AS_WELL * best)
    # One factor is soon agreed upon: without a clear gain the smallest of several numbers proves nothing.
    fewest = min(counts) if len(counts) > 2 and not much else 0
    agreed = []
    for k in sorted(tried):
        if k > fewest and gains[k] >= (1.0 if much else least):
            both = [codes(halves[0], first[k][1], k), codes(halves[1], second[k][1], k)]
            if matched_correlations(*both).min() >= (_RETURNS if much else _RETURNS_CLOSELY):
                agreed.append(k)
    if agreed and settings.small:
        agreed = counts
    better = [max(first[k], second[k], key=lambda network: network[0]) for k in agreed]
    return _starts(few, data, agreed, [network[1:] for network in better], epochs, progress)


def _starts(
    settings: FitSettings,
    data: FitData,
    counts: list[int],
    networks: list[tuple[VAEModule, TrainingLog]],
    epochs: int,
    progress: Progress | None,
) -> list[Candidate]:
    """Networks of half of the rows, trained on with all of them and turned to sparse slopes.

    Of a small table half of the rows are few, and new networks cost little.
    """
    if settings.small and counts:
        networks = dense_starts(settings, data, counts, settings.budget(data).dense, progress)
    else:
        rate = settings.effort.speed * settings.learning_rate
        phase = Phase("dense", max(1, round(_ON * epochs)), (rate, 0.1 * rate))
        for vae, log in networks:
            train(vae, data.training, [phase], generator=data.generator, progress=progress, log=log)
    return [
        Candidate(sparse_start(settings, data, vae), log, count)
        for count, (vae, log) in zip(counts, networks, strict=True)
    ]
