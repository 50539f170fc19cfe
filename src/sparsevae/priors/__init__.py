"""The priors of the sparse VAE as pure functions on tensors: the mask's and the noise's."""

from __future__ import annotations

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
    "inclusion_probability",
    "log_inclusion_prior",
    "log_prior",
    "map_noise_variance",
    "noise_log_prior",
    "penalty_weight",
    "proximal_step",
    "update_inclusion_rate",
]
