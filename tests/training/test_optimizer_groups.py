"""The proximal step on groups of entries: zero as a whole, at the solution of the group lasso."""

from __future__ import annotations

import torch
from torch import nn
from torch.testing import assert_close

from sparsevae.priors import group_proximal_step
from sparsevae.training import ProximalAdam

TARGET = torch.tensor([[[0.6, 0.05], [-0.8, 0.02], [0.0, 0.04]], [[0.3, 1.0], [0.4, 1.0], [0.0, 1.0]]])
"""group × width × factor"""


class GroupedQuadratic(nn.Module):
    r"""½‖W − T‖² with penalty λ Σ‖W_g·k‖."""

    config = {"gauge": False}  # noqa: RUF012
    decoder = None
    replicates = ()
    zero_gradients = True

    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.mask = nn.Parameter(TARGET + 0.3)
        self.network = nn.Parameter(torch.ones(2))
        self.register_buffer("frozen", torch.zeros(2, 1, 2, dtype=torch.bool))

    def objective(self):
        return 0.5 * (self.mask - TARGET).square().sum() + self.network.square().sum()

    def proximal_weight(self, n_samples):
        return torch.full((2, 1, 2), self.rate)

    def update_inclusion(self):
        pass


def test_groups_reach_the_solution_of_the_group_lasso():
    module = GroupedQuadratic(0.2)
    optimizer = ProximalAdam(module, 100)
    for step in range(600):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(0.05 * (1 - step / 600))
    solution = group_proximal_step(TARGET, 0.2, (1,))
    assert_close(module.mask.detach(), solution, atol=1e-2, rtol=0)
    assert (module.mask[0, :, 1] == 0).all()
    assert (module.mask[1] != 0).any(0).all()
