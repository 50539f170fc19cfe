"""Priors as pure functions on tensors: the sparse VAE's mask, the noise, and the groups of the OI-VAE."""

from __future__ import annotations

from sparsevae.priors.group_lasso import group_norm, group_proximal_step
from sparsevae.priors.noise import calibrate_noise_scale, map_noise_variance, noise_log_prior
from sparsevae.priors.spike_slab_lasso import (
    inclusion_probability,
    log_inclusion_prior,
    log_prior,
    penalty_weight,
    proximal_step,
    update_inclusion_rate,
)

__all__ = [
    "calibrate_noise_scale",
    "group_norm",
    "group_proximal_step",
    "inclusion_probability",
    "log_inclusion_prior",
    "log_prior",
    "map_noise_variance",
    "noise_log_prior",
    "penalty_weight",
    "proximal_step",
    "update_inclusion_rate",
]
