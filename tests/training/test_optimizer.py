"""Adam with an exact proximal step: zeros are exact, replicates and fixed entries are respected."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from sparsevae.modules import GroupMask, Mask
from sparsevae.priors import group_proximal_step
from sparsevae.training import ProximalAdam
from sparsevae.training.optimizer import Adam

from .helpers import assert_equal_states


class LassoMask(Mask):
    """One rate for all entries, however many samples there are."""

    def __init__(self, weight, rate):
        super().__init__(weight, torch.zeros(weight.shape[-2:], dtype=torch.bool))
        self.rate = rate

    def support(self):
        return self.weight.detach() != 0

    def penalty(self, n_samples):
        return self.rate * self.weight.detach().abs().sum((-2, -1))

    def proximal_weight(self, n_samples):
        return torch.full_like(self.weight, self.rate)


class Quadratic(nn.Module):
    r"""½‖W − T‖² + ½‖u‖² with a penalty on W; of a lasso, the soft-thresholded T is the solution."""

    def __init__(self, target, mask, replicates=()):
        super().__init__()
        self.target, self.mask, self.replicates = target, mask, replicates
        self.network = nn.Parameter(torch.ones(*replicates, 4))
        self.nuisance = nn.Module()  # the likelihood has no parameters

    def network_parameters(self):
        return [self.network]

    def project_(self):
        pass

    def objective(self):
        loss = 0.5 * (self.mask.weight - self.target).square().flatten(len(self.replicates)).sum(-1)
        return (loss + 0.5 * self.network.square().sum(-1)).sum()


def lasso(target, rate=0.1):
    return Quadratic(target, LassoMask(target + 0.5, rate), tuple(target.shape[:-2]))


TARGET = torch.tensor([[1.0, -0.7], [0.05, -0.02], [0.0, 0.4]])
SOLUTION = torch.tensor([[0.9, -0.6], [0.0, 0.0], [0.0, 0.3]])


def run(module, n_steps=400, *, start=0.05, **options):
    optimizer = ProximalAdam(module, 100)
    for step in range(n_steps):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(start * (1 - step / n_steps), **options)
    return module.mask.weight.detach()


def test_it_finds_the_soft_thresholded_solution_with_exact_zeros():
    mask = run(lasso(TARGET))
    assert_close(mask, SOLUTION, atol=5e-3, rtol=0)
    assert torch.equal(mask == 0, SOLUTION == 0)


def test_adam_on_the_absolute_value_has_no_exact_zero():
    module = lasso(TARGET)
    adam = torch.optim.Adam([module.mask.weight], lr=0.05)
    for step in range(400):
        adam.param_groups[0]["lr"] = 0.05 * (1 - step / 400)
        adam.zero_grad()
        (module.objective() + 0.1 * module.mask.weight.abs().sum()).backward()
        adam.step()
    assert_close(module.mask.weight.detach(), SOLUTION, atol=0.02, rtol=0)
    assert (module.mask.weight != 0).all()
    assert_close(run(lasso(TARGET), proximal=False), module.mask.weight.detach())


def test_adam_on_the_absolute_value_leaves_fixed_entries_alone():
    module = lasso(TARGET)
    module.mask.frozen[0, 0] = True
    before = module.mask.weight.detach().clone()
    mask = run(module, 20, proximal=False)
    assert mask[0, 0] == before[0, 0]
    assert (mask != before).sum() == mask.numel() - 1


def test_zeros_come_back_where_the_likelihood_wants_them():
    module = lasso(TARGET)
    with torch.no_grad():
        module.mask.weight.zero_()
    assert torch.equal(run(module) == 0, SOLUTION == 0)


def test_zeros_stay_where_their_gradient_is_not_computed():
    module = lasso(TARGET)
    with torch.no_grad():
        module.mask.weight[0, 0] = 0.0
    module.mask.zeros_may_return = False
    mask = run(module)
    assert mask[0, 0] == 0
    assert_close(mask[0, 1], SOLUTION[0, 1], atol=5e-3, rtol=0)


def test_a_zero_has_no_momentum_left_when_gradients_return():
    module = lasso(torch.zeros(1, 1))
    optimizer = ProximalAdam(module, 100)
    for _ in range(5):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(0.05)
    with torch.no_grad():
        module.mask.weight.zero_()
    for module.mask.zeros_may_return in (False, True):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(0.05)
        assert module.mask.weight.item() == 0


def test_fixed_entries_do_not_move():
    module = lasso(TARGET)
    module.mask.frozen[0] = True
    before = module.mask.weight.detach().clone()
    mask = run(module)
    assert torch.equal(mask[0], before[0])
    assert torch.equal(mask[1:] == 0, SOLUTION[1:] == 0)


def test_a_mask_on_hold_does_not_move_while_the_network_does():
    module = lasso(TARGET)
    before = module.mask.weight.detach().clone()
    assert torch.equal(run(module, hold_mask=True), before)
    assert module.network.abs().max() < 0.1


def test_a_vanishing_gradient_does_not_send_the_step_to_infinity():
    module = lasso(torch.zeros(1, 1), 0.01)
    with torch.no_grad():
        module.mask.weight.fill_(5.0)
    optimizer = ProximalAdam(module, 100)
    optimizer.zero_grad()
    module.mask.weight.grad, module.network.grad = torch.zeros(1, 1), torch.zeros(4)
    optimizer.step(0.05)
    assert_close(module.mask.weight.item(), 4.99)


def test_the_penalty_can_be_scaled():
    module = lasso(TARGET)
    optimizer = ProximalAdam(module, 100, penalty_scale=0.0)
    for _ in range(400):
        optimizer.zero_grad()
        module.objective().backward()
        optimizer.step(0.02)
    assert_close(module.mask.weight.detach(), TARGET, atol=0.02, rtol=0)


def test_replicates_step_as_separate_modules_do():
    targets = torch.stack([TARGET, -0.5 * TARGET, torch.zeros_like(TARGET)])
    together = run(lasso(targets), 60)
    for r, target in enumerate(targets):
        assert_close(together[r], run(lasso(target), 60), atol=1e-6, rtol=1e-5)


def test_gradients_are_clipped_for_each_replicate_by_itself():
    module = lasso(torch.stack([TARGET, TARGET]))
    optimizer = ProximalAdam(module, 100, max_norm=10.0)
    module.mask.weight.grad = torch.zeros_like(module.mask.weight)
    module.network.grad = torch.tensor([[300.0, 400.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]])
    optimizer.step(0.05)
    assert_close(module.network.grad, torch.tensor([[6.0, 8.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]]))


GROUPED = torch.tensor([[[0.6, 0.05], [-0.8, 0.02], [0.0, 0.04]], [[0.3, 1.0], [0.4, 1.0], [0.0, 1.0]]])
"""group × width × factor"""


def test_groups_are_zero_as_a_whole_and_reach_the_solution_of_the_group_lasso():
    mask = run(Quadratic(GROUPED, GroupMask(GROUPED + 0.3, 0.2, samples_per_penalty=1.0)), 600)
    assert_close(mask, group_proximal_step(GROUPED, 0.2, (1,)), atol=1e-2, rtol=0)
    assert (mask[0, :, 1] == 0).all()
    assert (mask[1] != 0).any(0).all()


@pytest.mark.parametrize("gauge", [True, False])
def test_the_gauge_holds_after_every_step_where_it_is_wanted(make_module, make_batches, gauge):
    module = make_module(gauge=gauge)
    optimizer = ProximalAdam(module, 48)
    (batch,) = make_batches(module, batch_size=48).sequential()
    for _ in range(3):
        optimizer.zero_grad()
        sum(module.step(batch, torch.zeros(48, 2), 48).loss).backward()
        optimizer.step(0.05)
    norms = torch.linalg.vector_norm(module.decoder.first, dim=0).detach()
    wanted = torch.full((2,), module.decoder.first_layer_norm())
    assert torch.allclose(norms, wanted, rtol=1e-5) == gauge


def test_the_linear_model_has_its_numbers_in_the_mask(make_module, make_batches):
    module = make_module(hidden_sizes=())
    optimizer = ProximalAdam(module, 48)
    (batch,) = make_batches(module, batch_size=48).sequential()
    before = module.mask.weight.detach().clone()
    optimizer.zero_grad()
    sum(module.step(batch, torch.zeros(48, 2), 48).loss).backward()
    optimizer.step(0.05)
    np.testing.assert_array_equal(module.decoder.heads.detach(), 1.0)
    assert not torch.equal(module.mask.weight.detach(), before)


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


def test_parameters_of_a_likelihood_that_the_first_steps_do_not_draw_move_later(make_module, make_batches):
    """One feature of five has a dispersion; Adam gives up what has no gradient at the first step."""
    module = make_module({"gaussian": [0, 1, 2, 3], "negative_binomial": [4]})
    X = np.abs(make_batches(module).source.X).round()
    (batch,) = make_batches(module, X, batch_size=48).sequential()
    optimizer = ProximalAdam(module, 48)
    before = module.nuisance.log_dispersion.detach().clone()
    moved = []
    for features in ([0, 1], [2], [3, 4]):
        optimizer.zero_grad()
        drawn = batch._replace(features=torch.tensor(features))
        sum(module.step(drawn, torch.zeros(48, 2), 48).loss).backward()
        optimizer.step(0.05)
        moved.append(not torch.equal(module.nuisance.log_dispersion, before))
    assert moved == [False, False, True]


# -- saved and read -----------------------------------------------------------------------------------------


def take_steps(module, optimizer, batch, steps, *, proximal=True):
    """Steps that depend on their number and on what came before; the very first ones hold the mask."""
    for step in steps:
        noise = torch.randn(batch.n_rows, module.n_noise, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        sum(module.step(batch, noise, 48).loss).backward()
        optimizer.step(0.02 / (1 + step), hold_mask=step < 2, proximal=proximal)


@pytest.mark.parametrize("n_before", [0, 1, 5])  # never stepped; only the network has; both have
@pytest.mark.parametrize(
    "kind, proximal", [("sparse", True), ("sparse", False), ("plain", True), ("group", True)]
)
def test_a_new_optimizer_goes_on_where_a_saved_one_was(make_module, make_batches, kind, proximal, n_before):
    module = make_module(kind=kind)
    (batch,) = make_batches(module, batch_size=48).sequential()
    optimizer = ProximalAdam(module, 48)
    take_steps(module, optimizer, batch, range(n_before), proximal=proximal)
    saved, copies = optimizer.state_dict(), [module.clone() for _ in range(2)]
    take_steps(module, optimizer, batch, range(n_before, n_before + 4), proximal=proximal)
    for copy in copies:  # the second time, too: neither saving nor loading shares memory
        again = ProximalAdam(copy, 48)
        again.load_state_dict(saved)
        take_steps(copy, again, batch, range(n_before, n_before + 4), proximal=proximal)
        assert_equal_states(copy, module)
    ends = optimizer.state_dict(), again.state_dict()
    assert ends[0].keys() == ends[1].keys()
    assert all(
        torch.equal(torch.as_tensor(ends[0][name]), torch.as_tensor(ends[1][name])) for name in ends[0]
    )


@pytest.mark.parametrize("kind", ["sparse", "plain", "group"])
def test_an_optimizer_that_has_forgotten_its_steps_goes_elsewhere(make_module, make_batches, kind):
    module = make_module(kind=kind)
    (batch,) = make_batches(module, batch_size=48).sequential()
    optimizer = ProximalAdam(module, 48)
    take_steps(module, optimizer, batch, range(5))
    copy = module.clone()
    take_steps(module, optimizer, batch, range(5, 9))
    take_steps(copy, ProximalAdam(copy, 48), batch, range(5, 9))
    with pytest.raises(AssertionError):
        assert_equal_states(copy, module)


def test_adam_leaves_the_same_parameters_alone_when_it_is_read():
    moved, idle = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
    adam = Adam([idle, moved])
    moved.grad = torch.tensor([1.0, -2.0, 0.5])
    adam.step(0.1)
    again = Adam([idle, moved])
    again.load_state_dict(adam.state_dict())
    idle.grad = torch.ones(2)
    again.step(0.1)
    assert (idle == 1).all()
    assert_close(moved, torch.tensor([0.8, 1.2, 0.8]), atol=1e-5, rtol=0)
