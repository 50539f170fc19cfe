"""What is fixed or known before a fit begins: first mask, anchors, constant features, a given covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from sparsevae.exceptions import ParameterError
from sparsevae.fitting.data import FitData, linear_inputs
from sparsevae.fitting.settings import FitSettings
from sparsevae.modules import SparseVAEModule
from sparsevae.principal import pairwise_correlation, parallel_analysis, principal_loadings
from sparsevae.rotation import oblique_rotation
from sparsevae.training import Batches

__all__ = [
    "anchor_entries",
    "constrain_",
    "count_linear_factors",
    "fix_anchors_",
    "fix_covariance_",
    "freeze_constant_",
    "freeze_spare_",
    "initial_mask",
    "name_factors_",
]

_FLOOR = 0.05  # smallest start of a mask entry: small, but able to grow


def count_linear_factors(data: FitData, rows: Batches | None = None) -> int:
    """Number of factors that a linear analysis of rows (the training rows by default) shows; at least one."""
    inputs = linear_inputs(data.training if rows is None else rows)
    varying = inputs[:, np.nanstd(inputs, 0) > 1e-6]
    if varying.shape[1] < 2 or len(varying) < 4:
        return 1
    return parallel_analysis(varying, random_state=data.random_state.randint(2**31 - 1))


def initial_mask(settings: FitSettings, data: FitData) -> Tensor:
    """Where the mask begins when it does not come from a plain VAE."""
    shape, init = (data.source.n_features, settings.n_factors), settings.init
    if not isinstance(init, str):
        mask = np.asarray(init, dtype=np.float32)
        if mask.shape != shape:
            raise ParameterError(f"Expected init of shape {shape}, a row per feature; got {mask.shape}.")
        return torch.as_tensor(mask)
    linear = not settings.config.hidden_sizes and not settings.anchors
    if init == "rotation" or (init == "auto" and linear):
        return torch.as_tensor(_rotated_loadings(settings, data))
    if init == "auto" and settings.recipe.standard_normal_mask:
        return torch.randn(shape, generator=data.generator)
    if init == "auto":
        return torch.ones(shape)
    return torch.rand(shape, generator=data.generator)


def anchor_entries(
    anchors: Mapping[object, int] | None, feature_names: Sequence[object] | np.ndarray, n_factors: int
) -> tuple[tuple[int, int], ...]:
    """Feature and factor of each known anchor, as numbers."""
    names = {str(name): j for j, name in enumerate(feature_names)}
    entries = []
    for feature, factor in (anchors or {}).items():
        j = names.get(str(feature), feature)
        if not isinstance(j, int | np.integer) or not 0 <= j < len(feature_names):
            raise ParameterError(
                f"Expected anchors to name features of the table; got {feature!r}. Use names."
            )
        if not 0 <= factor < n_factors:
            raise ParameterError(
                f"Expected anchors to name factors from 0 to {n_factors - 1}; got {factor!r} for {feature!r}."
            )
        entries.append((int(j), int(factor)))
    return tuple(entries)


def constrain_(settings: FitSettings, data: FitData, module: SparseVAEModule) -> None:
    """Everything that is fixed before the mask is learned."""
    freeze_constant_(module, data)
    fix_covariance_(settings, module)
    fix_anchors_(settings, module)


def fix_anchors_(settings: FitSettings, module: SparseVAEModule) -> None:
    """Give each known anchor exactly its one factor.

    The linear model has no curve that could carry the size of an anchor's loading, so there it is
    estimated, without a penalty.
    """
    mask = module.mask
    with torch.no_grad():
        for feature, factor in settings.anchors:
            mask.frozen[feature] = True
            mask.weight[..., feature, :] = 0.0
            mask.weight[..., feature, factor] = 1.0
            if module.decoder.first is None and module.config.gauge:
                mask.frozen[feature, factor], mask.known[feature, factor] = False, True


def name_factors_(settings: FitSettings, module: SparseVAEModule) -> None:
    """Give each factor of a module without replicates the number by which its known anchors call it."""
    if not settings.anchors:
        return
    evidence = np.zeros((module.n_factors, module.n_factors))
    mask = module.mask.weight.detach().abs().cpu().double().numpy()
    for feature, factor in settings.anchors:
        evidence[factor] += mask[feature] / max(mask[feature].sum(), 1e-12)
    order = torch.as_tensor(linear_sum_assignment(-evidence)[1])
    module.permute_factors_(order, torch.ones(module.n_factors))


def freeze_constant_(module: SparseVAEModule, data: FitData) -> None:
    """Empty rows for features that do not vary."""
    constant = torch.as_tensor(data.constant, device=module.mask.weight.device)
    with torch.no_grad():
        module.mask.frozen[constant] = True
        module.mask.weight[..., constant, :] = 0.0


@torch.no_grad()
def freeze_spare_(module: SparseVAEModule) -> None:
    """Keep the columns empty that are empty now: a candidate has as many factors as it began with.

    A factor that no feature uses is noise to the decoder. Where samples carry little information each, as
    rows of counts do, the noise of a gradient now and then exceeds the penalty, and every spare factor would
    come in with a handful of features, to be thrown out again a few epochs later.
    """
    spare = ~module.mask.support().any(-2)
    module.mask.frozen[:, spare] = True


def fix_covariance_(settings: FitSettings, module: SparseVAEModule) -> None:
    """The prior covariance that the user gave, or the identity where that was asked for."""
    with torch.no_grad():
        if module.config.covariance == "identity":
            module.factor_covariance.copy_(torch.eye(module.n_factors))
        elif settings.factor_covariance is not None:
            given = torch.as_tensor(settings.factor_covariance, dtype=torch.float32)
            module.factor_covariance.copy_(given)


def _rotated_loadings(settings: FitSettings, data: FitData) -> np.ndarray:
    """Linear loadings in their sparse oblique rotation; their size only, where curves carry the sign."""
    n_features = data.source.n_features
    inputs = linear_inputs(data.training)
    varying = np.flatnonzero(np.nanstd(inputs, 0) > 1e-6)
    count = min(max(1, count_linear_factors(data)), settings.n_factors, max(1, len(varying)))
    seed = data.random_state.randint(2**31 - 1)
    mask = np.full((n_features, settings.n_factors), _FLOOR, dtype=np.float32)
    if len(varying) == 0:
        return mask
    correlation = pairwise_correlation(inputs[:, varying])
    loadings = oblique_rotation(principal_loadings(correlation, count), random_state=seed).loadings
    if settings.config.hidden_sizes:
        loadings = np.maximum(np.abs(loadings), _FLOOR)
    mask[np.ix_(varying, np.arange(count))] = loadings
    return mask
