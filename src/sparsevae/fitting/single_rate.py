"""The paper's algorithm as printed: one pair of rates from the first step to the last."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from sparsevae.fitting.data import FitData
from sparsevae.fitting.ladder import patience_for
from sparsevae.fitting.settings import FitSettings
from sparsevae.fitting.state import Candidate
from sparsevae.training import Phase, train
from sparsevae.training.loop import Progress

__all__ = ["train_at_one_rate"]


def train_at_one_rate(
    settings: FitSettings, data: FitData, candidate: Candidate, progress: Progress | None
) -> pd.DataFrame:
    """Train a candidate in place; the table of the one start."""
    recipe, module, epochs = settings.recipe, candidate.module, settings.budget(data).total
    assert recipe.rates is not None
    spike = recipe.rates[0] if settings.spike_rate is None else float(settings.spike_rate)
    slab = min(recipe.rates[1], spike) if settings.slab_rate is None else float(settings.slab_rate)
    phase = Phase(
        "final",
        epochs,
        (settings.learning_rate, settings.learning_rate),
        spike_rate=spike,
        slab_rate=slab,
        proximal=recipe.proximal,
        zeros_may_return=not recipe.proximal,
        patience=patience_for(epochs, data),
    )
    train(
        module,
        data.training,
        [phase],
        generator=data.generator,
        validation=data.validation,
        penalty_scale=data.training.n_rows / data.batch_size if recipe.penalty_per_batch else 1.0,
        progress=progress,
        log=candidate.log,
    )
    mask = module.mask
    if recipe.read_threshold:
        # Adam on the penalised loss makes no exact zeros; the authors' scripts threshold, and so do we.
        with torch.no_grad():
            small = (mask.weight.abs() <= recipe.read_threshold) & ~mask.frozen
            mask.weight.masked_fill_(small, 0.0)
    return pd.DataFrame(
        {
            "start": ["given"],
            "n_active": [int(module.active().sum())],
            "n_nonzero": [int(module.support().sum())],
            "bound": [np.nan],
            "score": [np.nan],
            "standard_error": [np.nan],
            "chosen": [True],
        }
    )
