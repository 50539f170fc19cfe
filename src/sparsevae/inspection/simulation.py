"""Rows drawn from a fitted module, with the factors behind them."""

from __future__ import annotations

import numpy as np
import torch

from sparsevae.inspection.codes import block_size
from sparsevae.modules import LatentModule

__all__ = ["draw_rows"]


@torch.no_grad()
def draw_rows(
    module: LatentModule, n_samples: int, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw factors from the prior, and rows given them.

    Parameters
    ----------
    module : LatentModule
        Fitted, on the CPU.
    n_samples : int
    generator : torch.Generator

    Returns
    -------
    factors : ndarray of shape (n_samples, n_factors)
    rows : ndarray of shape (n_samples, n_features)
        In the units of the table; for counts, rows of average size.
    """
    observation = module.observation
    factors = module.draw_prior(n_samples, generator)
    blocks = []
    for block in factors.split(block_size(module)):
        drawn = observation.likelihood.sample(
            module.decode(block),
            module.nuisance.values(),
            generator=generator,
            **observation.average_rows(len(block), whole=True),
        )
        blocks.append(observation.to_user_units(drawn))
    return factors.double().numpy(), torch.cat(blocks).numpy().astype(np.float64)
