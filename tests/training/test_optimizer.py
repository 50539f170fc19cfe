"""Adam with an exact proximal step: zeros are exact, replicates and fixed entries are respected."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from sparsevae.modules.gauge import first_layer_norm
from sparsevae.training import ProximalAdam
from sparsevae.training.optimizer import Adam


class Quadratic(nn.Module):
    r"""½‖W − T‖² + ½‖u‖² with penalty λ‖W‖₁, with the soft-thresholded T as solution."""

    config = {"gauge": False}  # noqa: RUF012
    decoder = None

    def __init__(self, target, rate):
        super().__init__()
        self.target, self.rate = target, rate
        self.replicates = tuple(target.shape[:-2])
        self.mask = nn.Parameter(target + 0.5)
        self.network = nn.Parameter(torch.ones(*self.replicates, 4))
        self.register_buffer("frozen", torch.zeros(target.shape[-2:], dtype=torch.bool))
        self.zero_gradients = True

    def objective(self):
        loss = 0.5 * (self.mask - self.target).square().sum((-2, -1))
        return (loss + 0.5 * self.network.square().sum(-1)).sum()

    def proximal_weight(self, n_samples):
        return torch.full_like(self.mask, self.rate)

    def update_inclusion(self):
        pass


TARGET = torch.tensor([[1.0, -0.7], [0.05, -0.02], [0.0, 0.4]])
SOLUTION = torch.tensor([[0.9, -0.6], [0.0, 0.0], [0.0, 0.3]])


def run(module, n_steps=400, *, start=0.05, **options):
    optimizer = ProximalAdam(module, 100)
    for step in range(n_steps):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(start * (1 - step / n_steps), **options)
    return module.mask.detach()


def test_it_finds_the_soft_thresholded_solution_with_exact_zeros():
    mask = run(Quadratic(TARGET, 0.1))
    assert_close(mask, SOLUTION, atol=5e-3, rtol=0)
    assert torch.equal(mask == 0, SOLUTION == 0)


def test_adam_on_the_absolute_value_has_no_exact_zero():
    module = Quadratic(TARGET, 0.1)
    adam = torch.optim.Adam([module.mask], lr=0.05)
    for step in range(400):
        adam.param_groups[0]["lr"] = 0.05 * (1 - step / 400)
        adam.zero_grad()
        (module.objective() + 0.1 * module.mask.abs().sum()).backward()
        adam.step()
    assert_close(module.mask.detach(), SOLUTION, atol=0.02, rtol=0)
    assert (module.mask != 0).all()
    assert_close(run(Quadratic(TARGET, 0.1), proximal=False), module.mask.detach())


def test_adam_on_the_absolute_value_leaves_fixed_entries_alone():
    module = Quadratic(TARGET, 0.1)
    module.frozen[0, 0] = True
    before = module.mask.detach().clone()
    mask = run(module, 20, proximal=False)
    assert mask[0, 0] == before[0, 0]
    assert (mask != before).sum() == mask.numel() - 1


def test_zeros_come_back_where_the_likelihood_wants_them():
    module = Quadratic(TARGET, 0.1)
    with torch.no_grad():
        module.mask.zero_()
    assert torch.equal(run(module) == 0, SOLUTION == 0)


def test_zeros_stay_where_their_gradient_is_not_computed():
    module = Quadratic(TARGET, 0.1)
    with torch.no_grad():
        module.mask[0, 0] = 0.0
    module.zero_gradients = False
    mask = run(module)
    assert mask[0, 0] == 0
    assert_close(mask[0, 1], SOLUTION[0, 1], atol=5e-3, rtol=0)


def test_a_zero_has_no_momentum_left_when_gradients_return():
    module = Quadratic(torch.zeros(1, 1), 0.1)
    optimizer = ProximalAdam(module, 100)
    for _ in range(5):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(0.05)
    with torch.no_grad():
        module.mask.zero_()
    module.zero_gradients = False
    for module.zero_gradients in (False, True):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(0.05)
        assert module.mask.item() == 0


def test_fixed_entries_do_not_move():
    module = Quadratic(TARGET, 0.1)
    module.frozen[0] = True
    before = module.mask.detach().clone()
    mask = run(module)
    assert torch.equal(mask[0], before[0])
    assert torch.equal(mask[1:] == 0, SOLUTION[1:] == 0)


def test_a_mask_on_hold_does_not_move_while_the_network_does():
    module = Quadratic(TARGET, 0.1)
    before = module.mask.detach().clone()
    assert torch.equal(run(module, hold_mask=True), before)
    assert module.network.abs().max() < 0.1


def test_a_vanishing_gradient_does_not_send_the_step_to_infinity():
    module = Quadratic(torch.zeros(1, 1), 0.01)
    with torch.no_grad():
        module.mask.fill_(5.0)
    optimizer = ProximalAdam(module, 100)
    optimizer.zero_grad()
    module.mask.grad, module.network.grad = torch.zeros(1, 1), torch.zeros(4)
    optimizer.step(0.05)
    assert_close(module.mask.item(), 4.99)


def test_the_penalty_can_be_scaled():
    module = Quadratic(TARGET, 0.1)
    optimizer = ProximalAdam(module, 100, penalty_scale=0.0)
    for _ in range(400):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(0.02)
    assert_close(module.mask.detach(), TARGET, atol=0.02, rtol=0)


def test_replicates_step_as_separate_modules_do():
    targets = torch.stack([TARGET, -0.5 * TARGET, torch.zeros_like(TARGET)])
    together = run(Quadratic(targets, 0.1), 60)
    for r, target in enumerate(targets):
        assert_close(together[r], run(Quadratic(target, 0.1), 60), atol=1e-6, rtol=1e-5)


def test_gradients_are_clipped_for_each_replicate_by_itself():
    module = Quadratic(torch.stack([TARGET, TARGET]), 0.1)
    optimizer = ProximalAdam(module, 100, max_norm=10.0)
    module.mask.grad = torch.zeros_like(module.mask)
    module.network.grad = torch.tensor([[300.0, 400.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]])
    optimizer.step(0.05)
    assert_close(module.network.grad, torch.tensor([[6.0, 8.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]]))


@pytest.mark.parametrize("gauge", [True, False])
def test_the_gauge_holds_after_every_step_where_it_is_wanted(make_module, make_batches, gauge):
    module = make_module(gauge=gauge)
    optimizer = ProximalAdam(module, 48)
    (x,) = make_batches(module, batch_size=48).sequential()
    for _ in range(3):
        optimizer.zero_grad()
        module.loss(x, torch.zeros(48, 2), 48).objective.backward()
        optimizer.step(0.05)
    norms = torch.linalg.vector_norm(module.decoder.first, dim=0).detach()
    wanted = torch.full((2,), first_layer_norm(module.decoder))
    assert torch.allclose(norms, wanted, rtol=1e-5) == gauge


def test_the_linear_model_has_its_numbers_in_the_mask(make_module, make_batches):
    module = make_module(hidden_sizes=())
    optimizer = ProximalAdam(module, 48)
    (x,) = make_batches(module, batch_size=48).sequential()
    before = module.mask.detach().clone()
    optimizer.zero_grad()
    module.loss(x, torch.zeros(48, 2), 48).objective.backward()
    optimizer.step(0.05)
    np.testing.assert_array_equal(module.decoder.heads.detach(), 1.0)
    assert not torch.equal(module.mask.detach(), before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adam_is_that_of_torch(dtype):
    generator = torch.Generator().manual_seed(0)
    shapes = [(3,), (4, 5), (2, 3, 4)]
    ours = [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]
    theirs = [value.detach().clone().requires_grad_() for value in ours]
    idle = torch.ones(2, requires_grad=True)
    adam, reference = Adam([*ours, idle]), torch.optim.Adam(theirs, lr=0.01)
    for step in range(20):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(a.shape, generator=generator, dtype=dtype) / (1 + step)
            b.grad = a.grad.clone()
        adam.step(0.01)
        reference.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)
    assert (idle == 1).all()


def test_training_does_not_load_the_compiler_of_torch():
    code = (
        "import sys, numpy as np; from sparsevae import SparseVAE; "
        "SparseVAE(2, max_epochs=9, hidden_sizes=(4,)).fit(np.random.default_rng(0).normal(size=(20, 3))); "
        "sys.exit('torch._dynamo' in sys.modules or 'sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
