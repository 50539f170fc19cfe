"""What the parts of a fit have in common: the module's options, ingredients, and what counts as small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparsevae.estimators.preparing import FitData

__all__ = ["Ingredients", "is_small", "module_options", "n_starts"]

_SMALL = 1 << 18  # batch × features × width up to which ladders run side by side
_STARTS_SMALL, _STARTS_LARGE = 40, 4  # few features leave more ways to fold a factor, and starts cost little


@dataclass(frozen=True)
class Ingredients:
    """Parts of the default recipe, each of which an ablation can leave out.

    Attributes
    ----------
    gauge : bool
        Fixed norms of the decoder, which give the mask its scale.
    ladder : bool
        From a lasso to the spike and slab; without it the last rates hold from the first step.
    looser : bool
        A lower rate than the default's, where held-out rows pay for the loadings that it leaves.
    polish : bool
        The last steps on all rows, batches first and then all rows at once.
    """

    gauge: bool = True
    ladder: bool = True
    looser: bool = True
    polish: bool = True


def module_options(estimator: Any, data: FitData) -> dict[str, Any]:
    """Arguments of `FactorModule` for an estimator's parameters."""
    literal = estimator.recipe != "default"
    covariance = estimator.factor_covariance
    options: dict[str, Any] = {
        "n_factors": estimator.n_factors,
        "hidden_sizes": tuple(estimator.hidden_sizes),
        "covariance": "identity" if literal else covariance if isinstance(covariance, str) else "fixed",
        "inclusion_prior": estimator.inclusion_prior,
        "noise_scale": data.noise_scale,
        "gauge": not literal and estimator._ingredients.gauge,
        "linear_path": not literal,
        "precision": estimator.precision,
        "features_per_step": estimator.features_per_step,
        "input_dropout": 0.0 if literal else data.input_dropout,
    }
    if estimator.recipe == "authors":
        options.update(beta=1.0 / estimator.n_factors, keep_rate_ratio=False)
    return options


def is_small(estimator: Any, data: FitData) -> bool:
    """Whether a step costs more of Python's time than of arithmetic."""
    width = max(estimator.hidden_sizes, default=1)
    return bool(data.batch_size * data.table.n_features * width <= _SMALL)


def n_starts(estimator: Any, data: FitData) -> int:
    """Plain VAEs for each number of factors."""
    if estimator.n_init != "auto":
        return int(estimator.n_init)
    return _STARTS_SMALL if is_small(estimator, data) else _STARTS_LARGE
