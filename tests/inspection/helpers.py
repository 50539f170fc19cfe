"""Modules made by hand."""

from __future__ import annotations

import numpy as np
import torch

from sparsevae import SparseVAE
from sparsevae.modules import Observation, SparseVAEConfig, SparseVAEModule

LOADINGS = np.array([[0.5, 0.0, 0.0], [0.0, 0.0, -2.0], [0.0, 0.0, 1.0], [0.3, 0.0, -0.4]])
FEW_LOADINGS = np.array([[0.9, 0.0], [-0.8, 0.0], [0.6, 0.5], [0.0, 0.9]])


def column(model: SparseVAE, feature: int) -> int:
    """The first factor that a feature uses."""
    return int(np.flatnonzero(model.mask_[feature])[0])


def new_module(
    observation: Observation, mask: np.ndarray, hidden_sizes: tuple[int, ...] = (), seed: int = 0
) -> SparseVAEModule:
    """A sparse VAE with this mask and random weights, without gradients; linear by default."""
    config = SparseVAEConfig(mask.shape[1], hidden_sizes)
    module = SparseVAEModule(observation, config, generator=torch.Generator().manual_seed(seed))
    module.requires_grad_(False)
    module.mask.weight.copy_(torch.as_tensor(mask))
    return module
