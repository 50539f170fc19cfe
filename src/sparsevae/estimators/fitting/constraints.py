"""What is fixed or known before a fit begins: first mask, anchors, constant features, a given covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from sparsevae.estimators.preparing import FitData
from sparsevae.exceptions import ParameterError
from sparsevae.modules import FactorModule
from sparsevae.modules.surgery import permute_factors_
from sparsevae.principal import parallel_analysis, principal_loadings
from sparsevae.rotation import oblique_rotation
from sparsevae.training.starts import encoder_inputs

__all__ = [
    "anchor_entries",
    "count_linear_factors",
    "fix_anchors_",
    "fix_covariance_",
    "freeze_constant_",
    "freeze_spare_",
    "initial_mask",
    "name_factors_",
]

_FLOOR = 0.05  # smallest start of a mask entry: small, but able to grow


def count_linear_factors(data: FitData) -> int:
    """Number of factors that a linear analysis of the training rows shows; at least one."""
    inputs = encoder_inputs(data.table, data.training.rows)
    varying = inputs[:, inputs.std(0) > 1e-6]
    if varying.shape[1] < 2 or len(varying) < 4:
        return 1
    return parallel_analysis(varying, random_state=data.random_state.randint(2**31 - 1))


def initial_mask(estimator: Any, data: FitData) -> Tensor:
    """Where the mask begins when it does not come from a plain VAE."""
    shape = (data.table.n_features, estimator.n_factors)
    init = estimator.init
    if not isinstance(init, str):
        mask = np.asarray(init, dtype=np.float32)
        if mask.shape != shape:
            raise ParameterError(f"Expected init of shape {shape}, a row per feature; got {mask.shape}.")
        return torch.as_tensor(mask)
    if init == "rotation" or (init == "auto" and not estimator.hidden_sizes and not estimator.anchors):
        return torch.as_tensor(_rotated_loadings(estimator, data))
    if init == "auto" and estimator.recipe == "authors":
        return torch.randn(shape, generator=data.generator)
    if init == "auto":
        return torch.ones(shape)
    return torch.rand(shape, generator=data.generator)


def anchor_entries(estimator: Any, n_features: int) -> list[tuple[int, int]]:
    """Feature and factor of each known anchor, as numbers."""
    names = {str(name): j for j, name in enumerate(estimator._feature_names())}
    entries = []
    for feature, factor in (estimator.anchors or {}).items():
        j = names.get(str(feature), feature)
        if not isinstance(j, int | np.integer) or not 0 <= j < n_features:
            raise ParameterError(
                f"Expected anchors to name features of the table; got {feature!r}. Use names."
            )
        if not 0 <= factor < estimator.n_factors:
            raise ParameterError(
                f"Expected anchors to name factors from 0 to {estimator.n_factors - 1}; "
                f"got {factor!r} for {feature!r}."
            )
        entries.append((int(j), int(factor)))
    return entries


def fix_anchors_(estimator: Any, module: FactorModule) -> None:
    """One factor for each known anchor, and no other.

    The linear model has no curve that could carry the size of an anchor's loading, so there it is
    estimated, without a penalty.
    """
    with torch.no_grad():
        for feature, factor in anchor_entries(estimator, module.n_features):
            module.frozen[feature] = True
            module.mask[..., feature, :] = 0.0
            module.mask[..., feature, factor] = 1.0
            if module.decoder.first is None and module.config["gauge"]:
                module.frozen[feature, factor], module.known[feature, factor] = False, True


def name_factors_(estimator: Any, module: FactorModule) -> None:
    """Give each factor of a module without replicates the number by which its known anchors call it."""
    if not estimator.anchors:
        return
    evidence = np.zeros((module.n_factors, module.n_factors))
    mask = module.mask.detach().abs().cpu().double().numpy()
    for feature, factor in anchor_entries(estimator, module.n_features):
        evidence[factor] += mask[feature] / max(mask[feature].sum(), 1e-12)
    order = torch.as_tensor(linear_sum_assignment(-evidence)[1])
    permute_factors_(module, order, torch.ones(module.n_factors))


def freeze_constant_(module: FactorModule, data: FitData) -> None:
    """Empty rows for features that do not vary."""
    constant = torch.as_tensor(data.constant, device=module.mask.device)
    with torch.no_grad():
        module.frozen[constant] = True
        module.mask[..., constant, :] = 0.0


@torch.no_grad()
def freeze_spare_(module: FactorModule) -> None:
    """Keep the columns empty that are empty now: a candidate has as many factors as it began with.

    A factor that no feature uses is noise to the decoder. Where samples carry little information each, as
    rows of counts do, the noise of a gradient now and then exceeds the penalty, and every spare factor would
    come in with a handful of features, to be thrown out again a few epochs later.
    """
    spare = ~(module.mask != 0).any(-2)
    module.frozen[:, spare] = True


def fix_covariance_(estimator: Any, module: FactorModule) -> None:
    """The prior covariance that the user gave, or the identity where that was asked for."""
    given = estimator.factor_covariance
    with torch.no_grad():
        if module.config["covariance"] == "identity":
            module.factor_covariance.copy_(torch.eye(module.n_factors))
        elif not isinstance(given, str):
            module.factor_covariance.copy_(torch.as_tensor(np.asarray(given), dtype=torch.float32))


def _rotated_loadings(estimator: Any, data: FitData) -> np.ndarray:
    """Linear loadings in their sparse oblique rotation; their size only, where curves carry the sign."""
    n_features = data.table.n_features
    inputs = encoder_inputs(data.table, data.training.rows)
    varying = np.flatnonzero(inputs.std(0) > 1e-6)
    count = min(max(1, count_linear_factors(data)), estimator.n_factors, max(1, len(varying)))
    seed = data.random_state.randint(2**31 - 1)
    mask = np.full((n_features, estimator.n_factors), _FLOOR, dtype=np.float32)
    if len(varying) == 0:
        return mask
    correlation = np.atleast_2d(np.corrcoef(inputs[:, varying], rowvar=False))
    loadings = oblique_rotation(principal_loadings(correlation, count), random_state=seed).loadings
    if estimator.hidden_sizes:
        loadings = np.maximum(np.abs(loadings), _FLOOR)
    mask[np.ix_(varying, np.arange(count))] = loadings
    return mask
