"""The paper's algorithm as printed, and with the arithmetic of the released code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch

from sparsevae.estimators.preparing import FitData
from sparsevae.modules import FactorModule
from sparsevae.training import Phase, TrainingLog, train

__all__ = ["fit_literally"]

_SPIKE_RATE, _SLAB_RATE = 10.0, 1.0
_READ_FROM = 0.01  # size from which the released scripts take an entry of the mask for one


def fit_literally(
    estimator: Any, data: FitData, module: FactorModule, epochs: int, progress: Any
) -> tuple[TrainingLog, pd.DataFrame, dict[int, str]]:
    """One pair of rates from the first step to the last; the history, the one start, and what was dropped."""
    spike = _SPIKE_RATE if estimator.spike_rate is None else float(estimator.spike_rate)
    slab = min(_SLAB_RATE, spike) if estimator.slab_rate is None else float(estimator.slab_rate)
    rate = estimator.learning_rate
    patience = max(10, epochs // 5) if data.validation is not None else 0
    released = estimator.recipe == "authors"
    phase = Phase(
        *("final", epochs, (rate, rate)),
        spike_rate=spike,
        slab_rate=slab,
        proximal=not released,
        patience=patience,
    )
    scale = data.training.n_rows / data.batch_size if released else 1.0
    log = train(
        module,
        data.training,
        [phase],
        generator=data.generator,
        validation=data.validation,
        penalty_scale=scale,
        progress=progress,
    )
    if released:  # its zeros are those of its reader
        with torch.no_grad():
            small = (module.mask.abs() <= _READ_FROM) & ~module.frozen
            module.mask.masked_fill_(small, 0.0)
    starts = pd.DataFrame(
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
    dropped = {int(k): "the penalty emptied its column" for k in torch.nonzero(module.active() == 0).ravel()}
    return log, starts, dropped
