"""How the sparse VAE is fitted: starts, ladder, choice among starts, and the last steps on all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sparsevae.estimators.base import FitData
from sparsevae.exceptions import ParameterError
from sparsevae.modules import FactorModule
from sparsevae.modules.surgery import select, stack
from sparsevae.rotation import oblique_rotation, parallel_analysis, principal_loadings
from sparsevae.training import Phase, TrainingLog, train
from sparsevae.training.loop import importance_bound
from sparsevae.training.progress import progress_bar
from sparsevae.training.schedule import Rate, ladder
from sparsevae.training.starts import dense_starts, encoder_inputs, initial_outputs_, sparse_start

__all__ = ["Fitted", "fit_default", "fit_from_mask"]

SHRINKAGE = 0.1
"""How much the lasso takes off a typical feature's loading, in units of the mask: `default_spike_rate`."""

SLAB_RATE = 1.0
"""Slab rate at the end of the ladder: it selects without shrinking."""

_STEPS = 900  # gradient steps of the dense starts, and again of the ladder
_DENSE_EPOCHS = (30, 150)
_LADDER_EPOCHS = (40, 200)
_DENSE_SPEED = 3.0  # learning rate of the dense starts relative to the ladder's
_SMALL = 1 << 18  # batch × features × width up to which ladders run side by side
_STARTS_SMALL, _STARTS_LARGE = 10, 4  # few features leave more ways to fold a factor, and starts cost little
_POLISH = 30
_REFINE = 0.5  # epochs on all rows after the choice, relative to those of the ladder


@dataclass
class Fitted:
    """A fitted module with its history, the starts compared, and whether its support had settled."""

    module: FactorModule
    history: pd.DataFrame
    starts: pd.DataFrame
    dropped: dict[int, str]
    converged: bool


def fit_default(estimator: Any, data: FitData) -> Fitted:
    """The default recipe: dense starts for a few numbers of factors, a ladder from each, the best of them."""
    n_linear = _count_linear_factors(data)
    counts = candidate_counts(n_linear, estimator.n_factors)
    dense_epochs, ladder_epochs = _epochs(estimator, data)
    total = dense_epochs + len(counts) * ladder_epochs + _POLISH
    with progress_bar(estimator.verbose, total) as progress:
        dense = dense_starts(
            _module_options(estimator, data),
            data.table,
            data.training,
            counts,
            _n_init(estimator, data),
            data.feature_mean,
            epochs=dense_epochs,
            learning_rate=_DENSE_SPEED * estimator.learning_rate,
            generator=data.generator,
            random_state=data.random_state,
            progress=progress,
        )
        covariance = _module_options(estimator, data)["covariance"]
        modules = [sparse_start(m, data.training, data.random_state, covariance) for m, _ in dense]
        for module in modules:
            _freeze_constant_(module, data)
            _fix_covariance_(estimator, module)
        candidates = _climb(estimator, data, modules, [log for _, log in dense], ladder_epochs, progress)
        return _conclude(estimator, data, candidates, counts, progress)


def fit_from_mask(estimator: Any, data: FitData) -> Fitted:
    """One fit from a given, rotated, random or anchored mask; the paper's and the authors' recipes too."""
    module = FactorModule(
        data.table.observation, generator=data.generator, **_module_options(estimator, data)
    ).to(data.table.device)
    initial_outputs_(module, data.feature_mean)
    _freeze_constant_(module, data)
    with torch.no_grad():
        module.mask.copy_(_initial_mask(estimator, data))
        _fix_covariance_(estimator, module)
    _fix_anchors_(estimator, module)
    dense_epochs, ladder_epochs = _epochs(estimator, data)
    epochs = dense_epochs + ladder_epochs
    with progress_bar(estimator.verbose, epochs + _POLISH) as progress:
        if estimator.recipe == "default":
            rate = estimator.learning_rate
            warm = Phase(
                "warm-up", dense_epochs, (rate, rate), kl_warmup=max(1, dense_epochs // 8), hold_mask=True
            )
            log = train(module, data.training, [warm], generator=data.generator, progress=progress)
            candidates = _climb(estimator, data, [module], [log], ladder_epochs, progress)
            return _conclude(estimator, data, candidates, [estimator.n_factors], progress)
        return _literal(estimator, data, module, epochs, progress)


def candidate_counts(n_linear: int, n_factors: int) -> list[int]:
    """Numbers of factors to try, given the number of linear ones.

    Products of factors look like factors of their own to a linear analysis, so the truth may lie below its
    count; one more is tried where counts are small, because one is then a large share.
    """
    step = max(1, round(0.15 * n_linear))
    counts = [n_linear - 2 * step, n_linear - step, n_linear]
    if step == 1:
        counts.append(n_linear + 1)
    return sorted({min(max(count, 1), n_factors) for count in counts})


@torch.no_grad()
def default_spike_rate(module: FactorModule, n_samples: int, feature_mean: Tensor) -> Tensor:
    r"""Lasso rate of the default: what a loading must be worth to be kept.

    .. math:: \lambda_j = \max\left(0.1\, N \tilde I,\; \sqrt{2 N \log(G K)\, I_j}\right)

    :math:`I_j` is the Fisher information of one sample about the output of feature j (:math:`1/\sigma_j^2`
    for a real-valued feature), :math:`\tilde I` its median over features. A lasso with rate λ takes about
    :math:`\lambda / (N I)` off a loading. The first term makes that a tenth of the loading of a feature that
    lives on its factor: the support of strong effects then depends neither on the number of samples nor on
    the noise. The second is the largest gradient to be expected among GK entries without effect, and rules
    where data are few or carry little information each, as counts of rare words do. The median serves all
    features: rates in proportion to each feature's own information would let precise features dictate the
    factors.
    """
    information = module.observation.likelihood.information(feature_mean, dispersion=module.dispersion())
    typical = information.median(-1, keepdim=True).values
    size = module.n_features * int(module.active().sum(-1).max())
    noise = torch.sqrt(2.0 * n_samples * math.log(max(size, 2)) * information)
    return torch.maximum(noise, SHRINKAGE * n_samples * typical).unsqueeze(-1).clamp_min(SLAB_RATE)


def _module_options(estimator: Any, data: FitData) -> dict[str, Any]:
    literal = estimator.recipe != "default"
    covariance = estimator.factor_covariance
    options: dict[str, Any] = {
        "n_factors": estimator.n_factors,
        "hidden_sizes": tuple(estimator.hidden_sizes),
        "covariance": "identity" if literal else covariance if isinstance(covariance, str) else "fixed",
        "inclusion_prior": estimator.inclusion_prior,
        "noise_scale": data.noise_scale,
        "gauge": not literal,
        "linear_path": not literal,
        "precision": estimator.precision,
    }
    if estimator.recipe == "authors":
        options.update(beta=1.0 / estimator.n_factors, keep_rate_ratio=False)
    return options


def _epochs(estimator: Any, data: FitData) -> tuple[int, int]:
    if estimator.max_epochs is not None:
        dense = max(1, estimator.max_epochs // 2)
        return dense, max(1, estimator.max_epochs - dense)
    needed = math.ceil(_STEPS / data.n_steps)
    return int(np.clip(needed, *_DENSE_EPOCHS)), int(np.clip(needed, *_LADDER_EPOCHS))


def _is_small(estimator: Any, data: FitData) -> bool:
    width = max(estimator.hidden_sizes, default=1)
    return bool(data.batch_size * data.table.n_features * width <= _SMALL)


def _n_init(estimator: Any, data: FitData) -> int:
    if estimator.n_init != "auto":
        return int(estimator.n_init)
    return _STARTS_SMALL if _is_small(estimator, data) else _STARTS_LARGE


def _count_linear_factors(data: FitData) -> int:
    inputs = encoder_inputs(data.table, data.training.rows)
    varying = inputs[:, inputs.std(0) > 1e-6]
    if varying.shape[1] < 2 or len(varying) < 4:
        return 1
    return parallel_analysis(varying, random_state=data.random_state.randint(2**31 - 1))


def _climb(
    estimator: Any,
    data: FitData,
    modules: list[FactorModule],
    logs: list[TrainingLog],
    epochs: int,
    progress: Any,
) -> list[tuple[FactorModule, TrainingLog]]:
    """Each module up the ladder; small ones side by side, where the cost is Python's, not arithmetic's."""
    if _is_small(estimator, data) and len(modules) > 1:
        module = stack(modules)
        log = train(
            module,
            data.training,
            _ladder(estimator, data, module, epochs),
            generator=data.generator,
            validation=data.validation,
            progress=progress,
        )
        results = []
        for r, before in enumerate(logs):
            results.append((select(module, r), before.followed_by(log.of(r))))
        return results
    for module, log in zip(modules, logs, strict=True):
        train(
            module,
            data.training,
            _ladder(estimator, data, module, epochs),
            generator=data.generator,
            validation=data.validation,
            progress=progress,
            log=log,
        )
    return list(zip(modules, logs, strict=True))


def _ladder(estimator: Any, data: FitData, module: FactorModule, epochs: int) -> list[Phase]:
    spike: Rate = default_spike_rate(module, data.training.n_rows, data.feature_mean)
    slab_end: Rate = SLAB_RATE
    if estimator.spike_rate is not None:
        spike = estimator.spike_rate
    if estimator.slab_rate is not None:
        slab_end = estimator.slab_rate
    return ladder(
        epochs,
        estimator.learning_rate,
        spike_rates=(spike, spike),
        slab_rates=(spike, slab_end),
        n_polish=0,
        patience=max(10, epochs // 5) if data.validation is not None else 0,
    )


def _conclude(
    estimator: Any,
    data: FitData,
    candidates: list[tuple[FactorModule, TrainingLog]],
    counts: list[int],
    progress: Any,
) -> Fitted:
    """Choose by held-out bound and a charge per non-zero, then take the last steps on all rows."""
    null = _null_module(candidates[0][0], data)
    rows = data.validation if data.validation is not None else data.training
    n_samples = data.everything.n_rows
    charge = 0.5 * math.log(n_samples)
    table = []
    for module, label in [
        *((m, str(c)) for (m, _), c in zip(candidates, counts, strict=True)),
        (null, "none"),
    ]:
        bound = float(importance_bound(module, rows))
        n_nonzero = int((module.mask != 0).sum())
        table.append(
            (label, int(module.active().sum()), n_nonzero, bound, n_samples * bound - charge * n_nonzero)
        )
    starts = pd.DataFrame(table, columns=["start", "n_active", "n_nonzero", "bound", "score"])
    chosen = int(np.argmax(starts["score"].fillna(-np.inf)))
    starts["chosen"] = np.arange(len(starts)) == chosen
    module, log = (null, candidates[0][1]) if chosen == len(candidates) else candidates[chosen]
    rate = estimator.learning_rate
    last = Phase("refine", 1, (rate, 0.1 * rate), spike_rate=module.spike_rate, slab_rate=module.slab_rate)
    refine = replace(last, epochs=max(1, round(_REFINE * _epochs(estimator, data)[1])))
    polish = replace(
        last, name="polish", epochs=_POLISH, learning_rate=(0.1 * rate, 0.05 * rate), full_batch=True
    )
    train(module, data.everything, [refine, polish], generator=data.generator, progress=progress, log=log)
    history = log.frame()
    return Fitted(module, history, starts, _reasons(module, chosen, counts), _settled(history))


def _null_module(module: FactorModule, data: FitData) -> FactorModule:
    """The same model with an empty mask: every feature at its mean."""
    null = select(module, 0)
    with torch.no_grad():
        null.mask.copy_(torch.where(null.frozen, null.mask, 0.0))
        null.noise_variance.fill_(1.0)
        for bias in null.decoder.hidden_biases:
            bias.zero_()
    initial_outputs_(null, data.feature_mean)
    return null


def _settled(history: pd.DataFrame) -> bool:
    tail = history["n_nonzero"].to_numpy()[-max(5, _POLISH // 2) :]
    return bool((tail == tail[-1]).all())


def _reasons(module: FactorModule, chosen: int, counts: list[int]) -> dict[int, str]:
    active = module.active().cpu().numpy().astype(bool)
    n_tried = counts[chosen] if chosen < len(counts) else 0
    reasons = {}
    for rank, k in enumerate(np.flatnonzero(~active)):
        if chosen == len(counts):
            why = "an empty mask predicts held-out rows as well: the table shows no factor"
        elif rank < n_tried - active.sum():
            why = "the ladder emptied its column: no feature kept a loading on it"
        else:
            why = f"more than {n_tried} factors were not indicated, or had no better held-out bound"
        reasons[int(k)] = why
    return reasons


def _freeze_constant_(module: FactorModule, data: FitData) -> None:
    constant = torch.as_tensor(data.constant, device=module.mask.device)
    with torch.no_grad():
        module.frozen[constant] = True
        module.mask[..., constant, :] = 0.0


def _fix_covariance_(estimator: Any, module: FactorModule) -> None:
    """The prior covariance that the user gave, or the identity where that was asked for."""
    given = estimator.factor_covariance
    with torch.no_grad():
        if module.config["covariance"] == "identity":
            module.factor_covariance.copy_(torch.eye(module.n_factors))
        elif not isinstance(given, str):
            module.factor_covariance.copy_(torch.as_tensor(np.asarray(given), dtype=torch.float32))


def _initial_mask(estimator: Any, data: FitData) -> Tensor:
    shape = (data.table.n_features, estimator.n_factors)
    init = estimator.init
    if not isinstance(init, str):
        mask = np.asarray(init, dtype=np.float32)
        if mask.shape != shape:
            raise ParameterError(f"Expected init of shape {shape}, a row per feature; got {mask.shape}.")
        return torch.as_tensor(mask)
    if init == "rotation" or (init == "auto" and not estimator.hidden_sizes and not estimator.anchors):
        inputs = encoder_inputs(data.table, data.training.rows)
        count = min(max(1, _count_linear_factors(data)), estimator.n_factors, shape[0])
        correlation = np.corrcoef(inputs.T + 0.0) if shape[0] > 1 else np.ones((1, 1))
        seed = data.random_state.randint(2**31 - 1)
        loadings = oblique_rotation(
            principal_loadings(np.nan_to_num(correlation), count), random_state=seed
        ).loadings
        mask = np.full(shape, 0.05, dtype=np.float32)
        mask[:, :count] = loadings if not estimator.hidden_sizes else np.maximum(np.abs(loadings), 0.05)
        return torch.as_tensor(mask)
    if init == "auto":
        return torch.ones(shape)
    return torch.rand(shape, generator=data.generator)


def _fix_anchors_(estimator: Any, module: FactorModule) -> None:
    if not estimator.anchors:
        return
    names = {str(name): j for j, name in enumerate(estimator._feature_names())}
    with torch.no_grad():
        for feature, factor in estimator.anchors.items():
            j = names.get(str(feature), feature)
            if not isinstance(j, int | np.integer) or not 0 <= j < module.n_features:
                raise ParameterError(
                    f"Expected anchors to name features of the table; got {feature!r}. Use names."
                )
            if not 0 <= factor < module.n_factors:
                raise ParameterError(
                    f"Expected anchors to name factors from 0 to {module.n_factors - 1}; "
                    f"got {factor!r} for {feature!r}."
                )
            module.frozen[j] = True
            module.mask[j] = 0.0
            module.mask[j, factor] = 1.0


def _literal(estimator: Any, data: FitData, module: FactorModule, epochs: int, progress: Any) -> Fitted:
    """The paper's algorithm as printed: one pair of rates from the first step to the last."""
    spike = 10.0 if estimator.spike_rate is None else estimator.spike_rate
    slab = min(1.0, spike) if estimator.slab_rate is None else estimator.slab_rate
    rate = estimator.learning_rate
    patience = max(10, epochs // 5) if data.validation is not None else 0
    phase = Phase("final", epochs, (rate, rate), spike_rate=spike, slab_rate=slab, patience=patience)
    scale = data.training.n_rows / data.batch_size if estimator.recipe == "authors" else 1.0
    log = train(
        module,
        data.training,
        [phase],
        generator=data.generator,
        validation=data.validation,
        penalty_scale=scale,
        progress=progress,
    )
    starts = pd.DataFrame(
        [("given", int(module.active().sum()), int((module.mask != 0).sum()), np.nan, np.nan, True)],
        columns=["start", "n_active", "n_nonzero", "bound", "score", "chosen"],
    )
    history = log.frame()
    reasons = {int(k): "the penalty emptied its column" for k in torch.nonzero(module.active() == 0).ravel()}
    return Fitted(module, history, starts, reasons, _settled(history))
