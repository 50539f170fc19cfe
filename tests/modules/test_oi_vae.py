"""The output-interpretable VAE: the batched generators against a loop, exact zeros, priors, gradients."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal
from torch.testing import assert_close

from sparsevae.exceptions import ParameterError
from sparsevae.modules import OIVAEConfig, OIVAEModule
from sparsevae.training import ProximalAdam

FLOAT64 = torch.float64
GROUPS = pytest.mark.parametrize(
    "groups", [None, (0, 0, 0, 0, 0, 0), (2, 1, 2, 0, 1, 2), (1, 0, 1, 0, 1, 0)], ids=str
)


@pytest.fixture
def make_oi_vae(make_observation):
    def make(likelihood="gaussian", n_factors=3, hidden_sizes=(5, 4), *, replicates=(), seed=0, **options):
        config = OIVAEConfig(n_factors=n_factors, hidden_sizes=hidden_sizes, **options)
        generator = torch.Generator().manual_seed(seed)
        observation = make_observation(likelihood)
        return OIVAEModule(observation, config, replicates=replicates, generator=generator).double()

    return make


def factors(n_samples=7, n_factors=3, seed=2):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_samples, n_factors, generator=generator, dtype=FLOAT64)


def decode_by_hand(module, z):
    """The generator of each feature's group, feature by feature."""
    outputs = []
    for j, g in enumerate(module.groups):
        h = z @ module.mask.weight[g].T
        for weight, bias in zip(module.decoder.hidden_weights, module.decoder.hidden_biases, strict=True):
            h = torch.relu(h @ weight[g] + bias[g])
        outputs.append(h @ module.decoder.heads[module.decoder.position[j]] + module.decoder.intercept[j])
    return torch.stack(outputs, -1)


@GROUPS
@pytest.mark.parametrize("hidden_sizes", [(), (5,), (5, 4)])
def test_batched_generators_equal_a_loop_over_features(make_oi_vae, groups, hidden_sizes):
    module, z = make_oi_vae(hidden_sizes=hidden_sizes, groups=groups), factors()
    assert_close(module.decode(z), decode_by_hand(module, z))
    some = torch.tensor([4, 1])
    assert_close(module.decode(z, some), decode_by_hand(module, z)[:, some])


@GROUPS
def test_blocks_of_any_size_give_the_same(make_oi_vae, monkeypatch, groups):
    module, z = make_oi_vae(groups=groups), factors()
    expected = module.decode(z)
    monkeypatch.setattr("sparsevae.modules.oi_vae._BLOCK", 2 * 5 * 7)
    assert_close(module.decode(z), expected)


@GROUPS
@pytest.mark.parametrize("likelihood", ["gaussian", "multinomial", "negative_binomial"])
def test_every_parameter_receives_a_gradient(make_oi_vae, make_batch, make_noise, likelihood, groups):
    module = make_oi_vae(likelihood, groups=groups)
    sum(module.step(make_batch(likelihood), make_noise(), 100).loss).backward()
    without = [n for n, p in module.named_parameters() if p.requires_grad and not (p.grad != 0).any()]
    assert without == []


@GROUPS
def test_a_zero_column_makes_a_group_deaf_to_its_factor(make_oi_vae, groups):
    module = make_oi_vae(groups=groups)
    with torch.no_grad():
        module.mask.weight[0, :, 1] = 0.0
    jacobian = torch.autograd.functional.jacobian(lambda z: module.decode(z[None])[0], factors(1)[0])
    depends = jacobian != 0
    members = torch.tensor(module.groups) == 0
    assert not depends[members, 1].any()
    assert not module.support()[members, 1].any()
    assert torch.equal(module.support() | depends, module.support())


def test_the_objective_is_that_of_its_formula(make_oi_vae, make_batch, make_noise):
    module = make_oi_vae(groups=(1, 0, 1, 0, 1, 1), penalty=3.0, weight_deviation=0.5).eval()
    batch, noise = make_batch(), make_noise()
    mean, log_variance = module.encode(batch)
    z = mean + torch.exp(0.5 * log_variance) * noise
    log_prob = Normal(decode_by_hand(module, z), module.noise_variance.sqrt()).log_prob(batch.x).sum(-1)
    theta = [p for n, p in module.decoder.named_parameters() if n != "intercept"]

    loss = module.step(batch, noise, 50).loss
    assert_close(loss.reconstruction, -log_prob.mean())
    lasso = 3.0 * torch.linalg.vector_norm(module.mask.weight.detach(), dim=1).sum()
    assert_close(module.penalties(50)["mask_penalty"], lasso / 50)
    assert_close(loss.weight_penalty, sum((p / 0.5).square().sum() for p in theta) / 2 / 50)


def test_priors_can_be_charged_for_every_sample(make_oi_vae):
    once, each = make_oi_vae(), make_oi_vae(samples_per_penalty=1.0, samples_per_weight_prior=1.0)
    assert_close(each.penalties(50)["mask_penalty"], 50 * once.penalties(50)["mask_penalty"])
    assert_close(each.weight_penalty(50), 50 * once.weight_penalty(50))


def test_training_sets_whole_columns_to_exact_zeros(make_oi_vae, make_batch, make_noise):
    module = make_oi_vae(penalty=1.0, samples_per_penalty=1.0)
    optimizer = ProximalAdam(module, 8)
    batch = make_batch()
    for _ in range(150):
        optimizer.zero_grad()
        loss = module.step(batch, make_noise(), 8).loss
        (loss.reconstruction + loss.kl + loss.weight_penalty).backward()
        optimizer.step(0.02)
    zero = module.mask.weight == 0
    assert zero.any()
    assert torch.equal(zero.any(1), zero.all(1))
    assert torch.equal(module.mask.norms() == 0, zero.all(1))


def test_frozen_groups_stay_empty(make_oi_vae, make_batch, make_noise):
    module = make_oi_vae()
    with torch.no_grad():
        module.mask.frozen[2] = True
        module.mask.weight[2] = 0.0
    optimizer = ProximalAdam(module, 8)
    for _ in range(3):
        optimizer.zero_grad()
        sum(module.step(make_batch(), make_noise(), 8).loss).backward()
        optimizer.step(0.02)
    assert (module.mask.weight[2] == 0).all()
    assert (module.mask.weight[1] != 0).any()


def test_unused_factors_encode_to_the_prior(make_oi_vae, make_batch):
    module = make_oi_vae()
    with torch.no_grad():
        module.mask.weight[:, :, 1] = 0.0
    mean, log_variance = module.encode(make_batch())
    assert module.active().tolist() == [1.0, 0.0, 1.0]
    assert (mean[:, 1] == 0).all()
    assert (log_variance[:, 1] == 0).all()


@GROUPS
def test_replicates_are_separate_models(make_oi_vae, make_batch, groups):
    module, batch = make_oi_vae(replicates=(2,), groups=groups), make_batch()
    noise = torch.randn(2, 8, 3, generator=torch.Generator().manual_seed(0), dtype=FLOAT64)
    together, state = module.step(batch, noise, 50).loss, module.state_dict()
    for r in range(2):
        alone = make_oi_vae(seed=1, groups=groups)
        alone.load_state_dict(
            {name: state[name][r] if state[name].shape != value.shape else state[name]
             for name, value in alone.state_dict().items()}
        )  # fmt: skip
        one = alone.step(batch, noise[r], 50).loss
        for name, expected in one._asdict().items():
            assert_close(getattr(together, name)[r], expected, msg=name)


@pytest.mark.parametrize("groups", [(0, 0, 0, 1, 1, 2), (0, 0, 2, 2, 2, 2)])
def test_groups_are_numbered_by_size_without_gaps(make_oi_vae, groups):
    with pytest.raises(ParameterError, match="in order of their size"):
        make_oi_vae(groups=groups)


def test_a_module_is_rebuilt_from_its_configuration(make_oi_vae, make_observation):
    module = make_oi_vae(groups=(2, 1, 2, 0, 1, 2), group_width=2)
    copy = OIVAEModule(make_observation(), module.config, generator=torch.Generator()).double()
    copy.load_state_dict(module.state_dict())
    assert_close(copy.decode(factors()), module.decode(factors()))
