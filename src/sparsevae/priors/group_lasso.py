r"""The group lasso prior: weights that enter or leave together, :math:`p(w_g) \propto e^{-\lambda\|w_g\|_2}`.

It is what remains of a normal prior on :math:`w_g` whose variance has a gamma prior, once that variance is
integrated out (Ainsworth et al. 2018; Park & Casella 2008 for single weights).
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["group_norm", "group_proximal_step"]


def group_norm(weights: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Euclidean norm of each group of weights.

    Parameters
    ----------
    weights : Tensor
    dims : tuple of int
        Dimensions over which a group extends; none means that each weight is a group of its own.

    Returns
    -------
    Tensor
        With the size of ``dims`` reduced to one.
    """
    return torch.linalg.vector_norm(weights, dim=dims, keepdim=True) if dims else weights.abs()


def group_proximal_step(weights: Tensor, threshold: Tensor | float, dims: tuple[int, ...]) -> Tensor:
    r"""The nearest point under the penalty: every group shorter by the threshold, or exactly zero.

    .. math:: \mathrm{prox}(w_g) = \left(1 - \frac{t_g}{\|w_g\|_2}\right)_+ w_g
        = \arg\min_v \tfrac12\|v - w_g\|^2 + t_g\|v\|_2

    Parameters
    ----------
    weights : Tensor
    threshold : Tensor or float
        t, of size one along ``dims``.
    dims : tuple of int
        Dimensions over which a group extends.

    Returns
    -------
    Tensor
        Of the shape of the weights.
    """
    norm = group_norm(weights, dims)
    return weights * (1.0 - threshold / norm.clamp_min(torch.finfo(weights.dtype).tiny)).clamp_min(0.0)
