"""Adam for the network; for the mask Adam with an exact proximal step, or plain Adam as in released code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sparsevae.modules.gauge import fix_gauge_
from sparsevae.priors import group_proximal_step, proximal_step

__all__ = ["Adam", "ProximalAdam"]

_BETAS = (0.9, 0.99)  # of the mask: its second moment must follow the ladder
_EPSILON = 1e-8
_MAX_STEP = 1.0  # a vanishing second moment would send the step to lr / epsilon


class Adam:
    r"""Adam (Kingma & Ba 2015), for all parameters at once.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad v \leftarrow \beta_2 v + (1 - \beta_2) g^2,

    .. math:: \theta \leftarrow
        \theta - \mathrm{lr}\, \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    Like ``torch.optim.Adam``, which loads torch's compiler when it is first made: seconds, for a fit that may
    take ten.

    Parameters
    ----------
    parameters : sequence of Tensor
        Those without a gradient at the first step are left alone for good.
    betas : (float, float)
    epsilon : float
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = _EPSILON,
    ) -> None:
        self.parameters, self.betas, self.epsilon = list(parameters), betas, epsilon
        self._means: list[Tensor] = []
        self._squares: list[Tensor] = []
        self._steps = 0

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the parameters by one step."""
        if self._steps == 0:
            self.parameters = [p for p in self.parameters if p.grad is not None]
            self._means = [torch.zeros_like(p) for p in self.parameters]
            self._squares = [torch.zeros_like(p) for p in self.parameters]
        if not self.parameters:
            return
        self._steps += 1
        first, second = self.betas
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        torch._foreach_lerp_(self._means, gradients, 1.0 - first)
        torch._foreach_mul_(self._squares, second)
        torch._foreach_addcmul_(self._squares, gradients, gradients, value=1.0 - second)
        scale = torch._foreach_sqrt(self._squares)
        torch._foreach_div_(scale, math.sqrt(1.0 - second**self._steps))
        torch._foreach_add_(scale, self.epsilon)
        rate = learning_rate / (1.0 - first**self._steps)
        torch._foreach_addcdiv_(self.parameters, self._means, scale, value=-rate)


class ProximalAdam:
    r"""One optimiser for a module with a sparse mask.

    .. math:: w \leftarrow \mathrm{prox}\left(w - s\,\hat m,\; s\,\lambda^*/N\right), \qquad
        s = \min\left(\frac{\mathrm{lr}}{\sqrt{\hat v} + \epsilon},\, 1\right)

    The gradient of the likelihood alone enters :math:`\hat m, \hat v`; the penalty acts through the proximal
    step in the same metric, which is what makes zeros exact. Where ``proximal_weight`` has size one along
    dimensions of the mask, the entries along them form a group: its norm is penalised, its step is common,
    and it is zero as a whole.

    Parameters
    ----------
    module : nn.Module
        With ``mask``, ``frozen``, ``decoder``, ``proximal_weight`` and ``config``.
    n_samples : int
        Training rows, over which the prior is spread.
    max_norm : float
        Gradients of the network are clipped to this norm, each replicate by itself.
    """

    def __init__(
        self, module: Any, n_samples: int, *, max_norm: float = 100.0, penalty_scale: float = 1.0
    ) -> None:
        self.module, self.n_samples, self.max_norm = module, n_samples, max_norm
        self.penalty_scale = penalty_scale
        mask = module.mask
        self.network = [p for p in module.parameters() if p is not mask and p.requires_grad]
        # The identity network's heads are the gauge's: always ones.
        if module.config["gauge"] and module.decoder.first is None:
            self.network = [p for p in self.network if p is not module.decoder.heads]
        self.adam = Adam(self.network)
        self.mask_adam = Adam([mask])
        self.learns_mask = mask.requires_grad
        self._mean = torch.zeros_like(mask)
        self._square = torch.zeros_like(mask)
        self._steps = 0

    def zero_grad(self) -> None:
        """Forget the gradients of network and mask."""
        for parameter in (*self.network, self.module.mask):
            parameter.grad = None

    def step(self, learning_rate: float, *, hold_mask: bool = False, proximal: bool = True) -> None:
        """Move network and mask by one step.

        Parameters
        ----------
        learning_rate : float
        hold_mask : bool
            Leave the mask where it is, while the network warms up.
        proximal : bool
            False moves the mask by Adam on likelihood and penalty together, as the released code does:
            entries come close to zero and do not stay there.
        """
        self._clip()
        self.adam.step(learning_rate)
        if self.module.config["gauge"]:
            fix_gauge_(self.module.decoder)
        if self.learns_mask and not hold_mask:
            if proximal:
                self._step_mask(learning_rate)
            else:
                self._slide_mask(learning_rate)
            self.module.update_inclusion()

    @torch.no_grad()
    def _step_mask(self, learning_rate: float) -> None:
        module, mask = self.module, self.module.mask
        if mask.grad is None:  # the sparse decoder does not look at a mask that is empty
            return
        gradient = mask.grad.masked_fill(module.frozen, 0.0)
        self._steps += 1
        self._mean.lerp_(gradient, 1.0 - _BETAS[0])
        self._square.lerp_(gradient.square(), 1.0 - _BETAS[1])
        mean = self._mean / (1.0 - _BETAS[0] ** self._steps)
        square = self._square / (1.0 - _BETAS[1] ** self._steps)
        weight = module.proximal_weight(self.n_samples)
        group = tuple(d for d in range(mask.ndim) if weight.shape[d] != mask.shape[d])
        if group:
            square = square.mean(group, keepdim=True)
        step = (learning_rate / (square.sqrt() + _EPSILON)).clamp_max(_MAX_STEP)
        threshold = step * weight * self.penalty_scale
        moved = mask - step * mean
        moved = group_proximal_step(moved, threshold, group) if group else proximal_step(moved, threshold)
        if not module.zero_gradients:
            # Zeros whose gradient is not computed stay; their momentum must not carry them off.
            moved = torch.where(mask == 0, mask, moved)
            self._mean.masked_fill_(mask == 0, 0.0)
        mask.copy_(torch.where(module.frozen, mask, moved))

    @torch.no_grad()
    def _slide_mask(self, learning_rate: float) -> None:
        module, mask = self.module, self.module.mask
        slope = self.penalty_scale * module.proximal_weight(self.n_samples) * mask.sign()
        mask.grad = (mask.grad + slope).masked_fill(module.frozen, 0.0)
        self.mask_adam.step(learning_rate)

    @torch.no_grad()
    def _clip(self) -> None:
        replicates = len(self.module.replicates)
        squares: Tensor | float = 0.0
        for parameter in self.network:
            if parameter.grad is not None:
                squares = squares + parameter.grad.square().flatten(replicates).sum(-1)
        norm = torch.as_tensor(squares).sqrt()
        if bool((norm > self.max_norm).any()):
            scale = (self.max_norm / norm).clamp_max(1.0).nan_to_num(0.0)
            for parameter in self.network:
                if parameter.grad is not None:
                    parameter.grad.mul_(scale.reshape(*scale.shape, *[1] * (parameter.ndim - replicates)))
