"""What a fitted estimator may hold: checked when a saved one is read, before anything is built from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sparsevae.aliases import State
from sparsevae.exceptions import DataError
from sparsevae.identifiability.resamples import Resamples

__all__ = ["check_state"]

_G, _K, _N, _ANY = "features", "factors", "columns", "any"
# Shapes of fitted arrays of numbers; those in _FINITE have no NaN.
_SHAPES: dict[str, tuple[str, ...]] = {
    "mask_": (_G, _K),
    "components_": (_K, _G),
    "inclusion_": (_G, _K),
    "inclusion_rate_": (_K,),
    "noise_variance_": (_G,),
    "inverse_dispersion_": (_G,),
    "factor_covariance_": (_K, _K),
    "effects_": (_G, _K),
    "communalities_": (_G,),
    "variance_shares_": (_G, _K),
    "variance_explained_": (_K,),
    "left_shares_": (_G, _K),
    "factor_correlation_": (_ANY, _ANY),
    "group_loadings_": (_ANY, _K),
    "levels_": (_N, _ANY),
    "leftover_": (_ANY, _G, _G),
    "leftover_shares_": (_ANY,),
    "leftover_bounds_": (_ANY, _G),
    "path_supports_": (_ANY, _G, _K),
}
_FINITE = (
    "mask_",
    "components_",
    "inclusion_",
    "inclusion_rate_",
    "factor_covariance_",
    "group_loadings_",
    "leftover_",
    "leftover_shares_",
)
_TEXTS: dict[str, tuple[str, ...]] = {"feature_names_in_": (_N,), "views_": (_N,), "group_names_": (_ANY,)}
_FRAMES = ("history_", "starts_", "simplicity_path_")
_COUNTS = ("n_features_in_", "n_iter_", "_n_features_out")


def check_state(fitted: State, owner: type) -> None:
    """Refuse fitted attributes of another type or shape than a fit gives them.

    Parameters
    ----------
    fitted : mapping
        From name to value. Names that are not known here pass if they hide nothing of the class.
    owner : type
        The estimator's class.

    Raises
    ------
    DataError
        With the name of the first that is wrong.
    """
    for name in _COUNTS:
        value = fitted.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < (name != "n_iter_"):
            raise DataError(f"Expected {name} to be a whole number; got {value!r}")
    absences = fitted.get("absent_columns_", np.zeros(0))  # each has a column of its own in the model
    _check_array("absent_columns_", absences, (_ANY,), {}, "biuf")
    sizes = {_G: fitted["n_features_in_"] + len(absences), _K: fitted["_n_features_out"]}
    sizes[_N] = fitted["n_features_in_"]
    for name, value in fitted.items():
        if not isinstance(name, str) or not name.isidentifier() or hasattr(owner, name):
            raise DataError(f"Expected the name of a fitted attribute; got {name!r}")
        if name in _SHAPES:
            _check_array(name, value, _SHAPES[name], sizes, "biuf")
        elif name in _TEXTS:
            _check_array(name, value, _TEXTS[name], sizes, "OU")
            if not all(isinstance(item, str) for item in value.tolist()):
                raise DataError(f"Expected {name} to hold text")
        elif name in _FRAMES and not isinstance(value, pd.DataFrame):
            raise DataError(f"Expected {name} to be a data frame; got {type(value).__name__}")
    for name in _declared(owner):
        if name in _SHAPES and name not in fitted:
            raise DataError(f"Expected {name} among the fitted attributes; got none")
    for name in _FINITE:
        if name in fitted and not np.isfinite(fitted[name]).all():
            raise DataError(f"Expected finite numbers in {name}")
    _check_factors("active_factors_", fitted.get("active_factors_"), sizes[_K])
    for name, what in (("dropped_factors_", "reason"), ("factor_names_", "name")):
        texts = fitted.get(name, {})
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise DataError(f"Expected {name} to be a dict from factor to {what}")
        _check_factors(name, np.array(list(texts), dtype=object), sizes[_K])
    _check_resamples(fitted.get("resamples_", {}), sizes[_G], len(fitted["active_factors_"]))
    if not isinstance(fitted.get("_names_given", False), bool):
        raise DataError("Expected _names_given to be true or false")


def _declared(owner: type) -> set[str]:
    """Attributes that a class says it has."""
    return {name for part in owner.__mro__ for name in vars(part).get("__annotations__", {})}


def _check_array(
    name: str, value: object, shape: tuple[str, ...], sizes: Mapping[str, int], kinds: str
) -> None:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds or value.ndim != len(shape):
        raise DataError(f"Expected {name} to be an array with the dimensions {', '.join(shape)}")
    for size, what in zip(value.shape, shape, strict=True):
        if what != _ANY and size != sizes[what]:
            raise DataError(f"Expected {name} with {sizes[what]} {what}; got shape {value.shape}")


def _check_resamples(value: object, n_features: int, n_active: int) -> None:
    """Refuse what `Resamples.to_dict` would not have written; empty is allowed."""
    if not isinstance(value, dict) or (value and set(value) != set(Resamples._fields)):
        raise DataError("Expected resamples_ to be a dict of what halves of the rows showed")
    sizes = {_G: n_features, _K: n_active}
    for name, array in value.items():
        shape: tuple[str, ...] = (_G, _K) if name in ("selection", "deviation", "loadings") else (_K, _ANY)
        shape = {"agreement": (_ANY, _K), "linear": (_K,)}.get(name, shape)
        _check_array(f"resamples_[{name!r}]", array, shape, sizes, "iuf")


def _check_factors(name: str, value: object, n_factors: int) -> None:
    """Refuse what is not an array of positions of factors, each once."""
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise DataError(f"Expected {name} to be positions of factors")
    positions = value.tolist()
    whole = all(isinstance(k, int) and not isinstance(k, bool) and 0 <= k < n_factors for k in positions)
    if not whole or len(set(positions)) != len(positions):
        raise DataError(f"Expected {name} to be positions of {n_factors} factors")
