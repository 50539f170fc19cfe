"""The correlation of the factors, from the moments of their posteriors."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["correlation_and_scale"]

_SHRINKAGE = 0.02  # of the learned factor correlation towards the identity
_INERTIA = 0.8  # share of the old factor correlation kept at each update


def correlation_and_scale(moments: Tensor, previous: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    r"""Split :math:`E[zz^\top]` into a correlation matrix and the scale that mask and encoder are to take.

    Parameters
    ----------
    moments : Tensor of shape (..., n_factors, n_factors)
        :math:`E_q[zz^\top]`, averaged over samples.
    previous : Tensor of shape (..., n_factors, n_factors)
        The correlation matrix so far.
    active : boolean Tensor of shape (..., n_factors)
        Factors that have not left the model.

    Returns
    -------
    correlation : Tensor of shape (..., n_factors, n_factors)
        Shrunk slightly towards the identity, and that of the identity for factors not in use.
    scale : Tensor of shape (..., n_factors)
        Half of the step to unit variance: the network follows, and an overshoot would make it oscillate.
    """
    scale = moments.diagonal(dim1=-2, dim2=-1).clamp_min(1e-8).sqrt()
    both = active.unsqueeze(-1) & active.unsqueeze(-2)
    identity = torch.eye(moments.shape[-1], device=moments.device)
    correlation = moments / (scale.unsqueeze(-1) * scale.unsqueeze(-2))
    correlation = (1.0 - _SHRINKAGE) * correlation + _SHRINKAGE * identity
    correlation = _INERTIA * previous + (1.0 - _INERTIA) * correlation
    correlation = torch.where(both, correlation, identity)
    correlation.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    step = torch.where(active & scale.isfinite(), scale.clamp(0.5, 2.0), torch.ones_like(scale)).sqrt()
    return torch.where(correlation.isfinite(), correlation, identity), step
