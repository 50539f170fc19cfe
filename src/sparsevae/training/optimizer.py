"""Adam for the network; for the mask Adam with an exact proximal step, or on the penalised loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from sparsevae.modules import LatentModule, Mask

__all__ = ["Adam", "ProximalAdam"]

_BETAS = (0.9, 0.99)  # of the mask: its second moment must follow the ladder
_EPSILON = 1e-8
_MAX_STEP = 1.0  # a vanishing second moment would send the step to lr / epsilon

State = dict[str, Tensor | int]


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
        self._moved: list[int] = []
        self._means: list[Tensor] = []
        self._squares: list[Tensor] = []
        self._steps = 0

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Move the parameters by one step."""
        if self._steps == 0:
            self._moved = [i for i, p in enumerate(self.parameters) if p.grad is not None]
            self._means = [torch.zeros_like(self.parameters[i]) for i in self._moved]
            self._squares = [torch.zeros_like(self.parameters[i]) for i in self._moved]
        if not self._moved:
            return
        self._steps += 1
        first, second = self.betas
        parameters = [self.parameters[i] for i in self._moved]
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_lerp_(self._means, gradients, 1.0 - first)
        torch._foreach_mul_(self._squares, second)
        torch._foreach_addcmul_(self._squares, gradients, gradients, value=1.0 - second)
        scale = torch._foreach_sqrt(self._squares)
        torch._foreach_div_(scale, math.sqrt(1.0 - second**self._steps))
        torch._foreach_add_(scale, self.epsilon)
        rate = learning_rate / (1.0 - first**self._steps)
        torch._foreach_addcdiv_(parameters, self._means, scale, value=-rate)

    def state_dict(self) -> State:
        """Moments and number of steps, by position of the parameter."""
        state: State = {"steps": self._steps}
        for i, mean, square in zip(self._moved, self._means, self._squares, strict=True):
            state |= {f"{i}.mean": mean.clone(), f"{i}.square": square.clone()}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor | int]) -> None:
        """Go on where `state_dict` was taken."""
        self._steps = int(state["steps"])
        self._moved = sorted(int(name.split(".")[0]) for name in state if name.endswith(".mean"))
        self._means, self._squares = (
            [torch.as_tensor(state[f"{i}.{name}"]).to(self.parameters[i], copy=True) for i in self._moved]
            for name in ("mean", "square")
        )


class ProximalAdam:
    r"""One optimiser for a module, and for its sparse mask if it has one.

    .. math:: w \leftarrow \mathrm{prox}\left(w - s\,\hat m,\; s\,\lambda^*/N\right), \qquad
        s = \min\left(\frac{\mathrm{lr}}{\sqrt{\hat v} + \epsilon},\, 1\right)

    The gradient of the likelihood alone enters :math:`\hat m, \hat v`; the penalty acts through the proximal
    step in the same metric, which is what makes zeros exact. Entries of the mask that form a group
    (`Mask.group_dims`) have a common step and are zero together.

    Parameters
    ----------
    module : LatentModule
    n_samples : float
        Training rows, by weight, over which the prior is spread.
    max_norm : float
        Gradients of the network are clipped to this norm, each replicate by itself.
    penalty_scale : float
        Multiplies the mask's penalty; 1 is the model as stated.
    """

    def __init__(
        self, module: LatentModule, n_samples: float, *, max_norm: float = 100.0, penalty_scale: float = 1.0
    ) -> None:
        self.module, self.n_samples, self.max_norm = module, n_samples, max_norm
        self.penalty_scale = penalty_scale
        self.network = module.network_parameters()
        self.adam = Adam(self.network)
        mask = module.mask
        entries = [] if mask is None else [mask.weight]
        self.mask_adam = Adam(entries)
        self._mean, self._square = ([torch.zeros_like(w) for w in entries] for _ in range(2))
        self._steps = 0

    @property
    def parameters(self) -> list[Tensor]:
        """Network and mask."""
        return [*self.network, *self.mask_adam.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients of network and mask."""
        for parameter in self.parameters:
            parameter.grad = None
        # A step may draw no feature of a likelihood; its parameters are then left, and not given up.
        for parameter in self.module.nuisance.parameters():
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)

    def step(self, learning_rate: float, *, hold_mask: bool = False, proximal: bool = True) -> None:
        """Move network and mask by one step.

        Parameters
        ----------
        learning_rate : float
        hold_mask : bool
            Leave the mask where it is, while the network warms up.
        proximal : bool
            False moves the mask by Adam on likelihood and penalty together: entries come close to zero and do
            not stay there.
        """
        self._clip()
        self.adam.step(learning_rate)
        self.module.project_()
        mask = self.module.mask
        if mask is not None and not hold_mask:
            if proximal:
                self._step_mask(mask, learning_rate)
            else:
                self._slide_mask(mask, learning_rate)

    def state_dict(self) -> State:
        """Everything that the next step depends on, apart from module and arguments."""
        state: State = {"steps": self._steps}
        for name, adam in (("adam", self.adam), ("mask_adam", self.mask_adam)):
            state |= {f"{name}.{key}": value for key, value in adam.state_dict().items()}
        for name, values in (("mean", self._mean), ("square", self._square)):
            state |= {f"mask.{name}": value.clone() for value in values}
        return state

    def load_state_dict(self, state: Mapping[str, Tensor | int]) -> None:
        """Go on where `state_dict` was taken."""
        self._steps = int(state["steps"])
        for name, adam in (("adam", self.adam), ("mask_adam", self.mask_adam)):
            start = f"{name}."
            adam.load_state_dict({k.removeprefix(start): v for k, v in state.items() if k.startswith(start)})
        for name, values in (("mean", self._mean), ("square", self._square)):
            for value in values:
                value.copy_(torch.as_tensor(state[f"mask.{name}"]))

    @torch.no_grad()
    def _step_mask(self, mask: Mask, learning_rate: float) -> None:
        if mask.weight.grad is None:  # the sparse decoder does not look at a mask that is empty
            mask.update_inclusion()
            return
        [mean], [square] = self._mean, self._square
        gradient = mask.weight.grad.masked_fill(mask.frozen, 0.0)
        self._steps += 1
        mean.lerp_(gradient, 1.0 - _BETAS[0])
        square.lerp_(gradient.square(), 1.0 - _BETAS[1])
        first = mean / (1.0 - _BETAS[0] ** self._steps)
        second = square / (1.0 - _BETAS[1] ** self._steps)
        if mask.group_dims:
            second = second.mean(mask.group_dims, keepdim=True)
        step = (learning_rate / (second.sqrt() + _EPSILON)).clamp_max(_MAX_STEP)
        if not mask.zeros_may_return:
            # Zeros whose gradient is not computed stay; their momentum must not carry them off.
            mean.masked_fill_(mask.weight == 0, 0.0)
        mask.shrink_(mask.weight - step * first, step, self.n_samples, self.penalty_scale)

    @torch.no_grad()
    def _slide_mask(self, mask: Mask, learning_rate: float) -> None:
        slope = self.penalty_scale * mask.proximal_weight(self.n_samples) * mask.weight.sign()
        assert mask.weight.grad is not None
        mask.weight.grad = (mask.weight.grad + slope).masked_fill(mask.frozen, 0.0)
        self.mask_adam.step(learning_rate)
        mask.update_inclusion()

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
