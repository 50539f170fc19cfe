"""Modules as version 0.1 saved them, in the form of today."""

from __future__ import annotations

from dataclasses import fields

import torch

from sparsevae.aliases import State
from sparsevae.modules.base import LatentModule

__all__ = ["upgrade_saved_module"]

_RENAMED = {
    "mask": "mask.weight",
    "frozen": "mask.frozen",
    "known": "mask.known",
    "inclusion_rate": "mask.inclusion_rate",
    "noise_variance": "nuisance.noise_variance",
    "noise_scale": "nuisance.noise_scale",
    "log_dispersion": "nuisance.log_dispersion",
}
_UNITS = "observation._extra_state"


def upgrade_saved_module(saved: State, kind: type[LatentModule]) -> State:
    """What `LatentModule.from_dict` takes, from what any version wrote.

    Parameters
    ----------
    saved : mapping
        Of version 0.1 if it has its rates beside the tensors.
    kind : type
        The module's class.

    Notes
    -----
    In version 0.1 every module was a sparse VAE with parts switched off, and kept the tensors of those parts.
    """
    if "rates" in saved:
        return {**saved, "tensors": _with_levels(saved["tensors"])}
    before = saved["config"]
    groups = before.get("groups")
    config = {
        **before,
        "groups": None if groups is None else tuple(groups),
        "authors_arithmetic": before.get("released", False),
    }
    tensors = {_RENAMED.get(name, name): value for name, value in saved["tensors"].items()}
    units = [tensors["observation.location"].double(), tensors["observation.scale"].double()]
    known = {field.name for field in fields(kind.config_class)}
    return {
        "config": {name: value for name, value in config.items() if name in known},
        "rates": {"spike_rate": saved["spike_rate"], "slab_rate": saved["slab_rate"]},
        "tensors": _with_levels({**tensors, _UNITS: torch.stack(units)}),
    }


def _with_levels(tensors: State) -> State:
    """Units with the row about levels, which tables had none of before."""
    units = tensors.get(_UNITS)
    if not isinstance(units, torch.Tensor) or units.ndim != 2 or len(units) != 2:
        return dict(tensors)
    return {**tensors, _UNITS: torch.cat([units, torch.zeros_like(units[:1])])}
