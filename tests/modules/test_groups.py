"""Groups of rows in modules: shifts, priors, and factors that a group lacks."""

from __future__ import annotations

import pytest
import torch

from sparsevae.modules import Batch, SparseVAEModule, VAEModule
from sparsevae.modules.groups import Groups

N_ROWS, N_GROUPS = 8, 2
GROUP = torch.tensor([0, 1, 0, 1, 1, 0, 0, 1])
every_kind = pytest.mark.parametrize("kind", [SparseVAEModule, VAEModule], ids=lambda kind: kind.__name__)


@pytest.fixture
def make(make_module, make_rows):
    """A module with groups in which nothing is at its start, and a batch."""

    def make(kind, **settings):
        module = make_module(kind=kind, n_groups=N_GROUPS, **settings)
        groups = module.row_groups
        generator = torch.Generator().manual_seed(3)
        groups.mean.copy_(0.5 * torch.randn(groups.mean.shape, generator=generator))
        groups.scale.copy_(0.5 + torch.rand(groups.scale.shape, generator=generator))
        return module, module.observation.batch(make_rows(), group=GROUP)

    return make


@every_kind
def test_a_shift_moves_the_outputs_of_its_group(make, kind):
    module, batch = make(kind)
    z = torch.randn(N_ROWS, 3, generator=torch.Generator().manual_seed(0)).double()
    output = module.decode(z)
    shifted = module.shifted(batch, output)
    torch.testing.assert_close(shifted - output, module.row_groups.shift[GROUP].detach())
    some = batch._replace(features=torch.tensor([4, 1]))
    torch.testing.assert_close(module.shifted(some, output[:, [4, 1]]), shifted[:, [4, 1]])


@every_kind
def test_the_divergence_is_that_from_the_groups_prior(make, kind):
    module, batch = make(kind)
    module.row_groups.used[1, 2] = False
    mean, log_variance = module.encode(batch)
    assert (mean[GROUP == 1][:, 2] == 0).all()
    found = module.kl(mean, log_variance, GROUP)
    covariance = module.prior_covariance()
    for i, g in enumerate(GROUP.tolist()):
        own = module.row_groups.used[g]
        scale = module.row_groups.scale[g][own]
        prior = torch.distributions.MultivariateNormal(
            module.row_groups.mean[g][own], covariance[own][:, own] * scale * scale[:, None]
        )
        posterior = torch.distributions.MultivariateNormal(
            mean[i][own], torch.diag(log_variance[i][own].exp())
        )
        torch.testing.assert_close(found[i], torch.distributions.kl_divergence(posterior, prior))


def test_importance_weights_average_to_the_bound(make):
    module, batch = make(SparseVAEModule)
    module.row_groups.used[0, 1] = False
    module.eval()
    draws = torch.randn(800, 3, generator=torch.Generator().manual_seed(1)).double()
    weights = torch.stack([module.log_weight(batch, draw.expand(N_ROWS, -1)) for draw in draws])
    error = weights.std(0) / len(draws) ** 0.5
    with torch.no_grad():
        bound = module.bound(batch, draws)
    assert ((weights.mean(0) - bound).abs() < 5 * error + 1e-6).all()


def test_prior_precision_is_the_inverse_of_the_groups_covariance(make):
    module, batch = make(SparseVAEModule)
    mean, precision = module.prior_of(batch)
    groups = module.row_groups
    for i, g in enumerate(GROUP.tolist()):
        scale = groups.scale[g]
        covariance = module.prior_covariance() * scale * scale[:, None]
        torch.testing.assert_close(precision[i] @ covariance, torch.eye(3, dtype=torch.float64))
        torch.testing.assert_close(mean[i], groups.mean[g])


@every_kind
def test_a_module_without_groups_given_is_the_average_one(make, kind, make_rows):
    module, _ = make(kind)
    batch = module.observation.batch(make_rows())
    output = torch.zeros(N_ROWS, 6).double()
    assert module.shifted(batch, output) is output
    mean, log_variance = module.encode(batch)
    assert module.kl(mean, log_variance).shape == (N_ROWS,)


def test_a_group_without_variance_leaves_a_factor():
    groups = Groups(2, 4, 2)
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2000, 2, generator=generator)
    group = torch.arange(2000) % 2
    z[group == 1, 0] = 0.0
    information = 8.0
    noisy = z + torch.randn(z.shape, generator=generator) / information**0.5
    for _ in range(15):
        prior = groups.scale[group].square()
        variance = 1.0 / (1.0 / prior + information)
        mean = groups.pad(noisy * variance * information, group)
        batch = Batch(z, z, group=group)
        groups.update_(groups.statistics(batch, mean, groups.pad(variance.log(), group)))
    assert groups.used.tolist() == [[True, True], [False, True]]
    assert groups.scale[0, 0] == 1.0
    torch.testing.assert_close(groups.scale[:, 1], torch.ones(2), rtol=0.1, atol=0.1)


def test_means_are_learned_where_features_have_no_shifts():
    groups = Groups(2, 4, 1, shifts=False)
    assert not groups.shift.requires_grad
    group = torch.tensor([0, 0, 1, 1])
    mean = torch.tensor([[1.0], [2.0], [-1.0], [-2.0]])
    groups.update_(groups.statistics(Batch(mean, mean, group=group), mean, torch.full((4, 1), -3.0)))
    torch.testing.assert_close(groups.mean, torch.tensor([[1.5], [-1.5]]))


def test_reordering_the_factors_takes_the_groups_along(make):
    module, batch = make(SparseVAEModule)
    module.eval()
    with torch.no_grad():
        before = module.bound(batch, torch.zeros(1, 3).double())
        module.permute_factors_(torch.tensor([2, 0, 1]), torch.tensor([1.0, -1.0, 1.0]))
        after = module.bound(batch, torch.zeros(1, 3).double())
    torch.testing.assert_close(before, after)
