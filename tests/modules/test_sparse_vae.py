"""The sparse VAE: the loss against computations by hand, the factors' covariance, changes of factors."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Multinomial,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    kl_divergence,
)
from torch.testing import assert_close

from sparsevae.divergences import kl_standard_normal
from sparsevae.fitting.starts import change_basis_
from sparsevae.likelihoods import LIKELIHOODS
from sparsevae.modules import SparseVAEConfig, SparseVAEModule, VAEModule
from sparsevae.modules.sparse_vae import correlation_and_scale

from .helpers import decode_by_hand, outputs

DEPTHS = pytest.mark.parametrize("hidden_sizes", [(), (5,), (5, 4), (5, 4, 3)])


def log_likelihood_by_hand(module, likelihood, x, output):
    if likelihood == "gaussian":
        return Normal(output, module.noise_variance.sqrt()).log_prob(x).sum(-1)
    if likelihood == "bernoulli":
        return Bernoulli(logits=output).log_prob(x).sum(-1)
    if likelihood == "multinomial":
        return torch.stack(
            [Multinomial(int(r.sum()), logits=o).log_prob(r) for r, o in zip(x, output, strict=True)]
        )
    rate = (x.sum(-1, keepdim=True) / module.observation.mean_total) * output.exp()
    if likelihood == "poisson":
        return Poisson(rate).log_prob(x).sum(-1)
    shape = module.nuisance.log_dispersion.exp()
    return NegativeBinomial(shape, probs=rate / (rate + shape)).log_prob(x).sum(-1)


@pytest.mark.parametrize(
    "likelihood", ["gaussian", "bernoulli", "poisson", "negative_binomial", "multinomial"]
)
@DEPTHS
def test_reconstruction_and_kl_are_those_of_torch_distributions(
    make_module, make_batch, make_noise, likelihood, hidden_sizes
):
    module, noise = make_module(likelihood, hidden_sizes=hidden_sizes), make_noise()
    batch = make_batch(likelihood)
    mean, log_variance = module.encoder(batch.inputs)
    z = mean + (0.5 * log_variance).exp() * noise
    output = decode_by_hand(module, z, module.mask.weight)
    expected = log_likelihood_by_hand(module, likelihood, batch.x, output)
    posterior = MultivariateNormal(mean, torch.diag_embed(log_variance.exp()))
    prior = MultivariateNormal(torch.zeros(3, dtype=torch.float64), module.factor_covariance)
    loss = module.step(batch, noise, 100).loss
    assert_close(loss.reconstruction, -expected.mean())
    assert_close(loss.kl, kl_divergence(posterior, prior).mean())


def test_an_identity_prior_has_the_closed_form(make_module, make_batch, make_noise):
    module, batch = make_module(covariance="identity"), make_batch()
    mean, log_variance = module.encode(batch)
    loss = module.step(batch, make_noise(), 9).loss
    assert_close(loss.kl, kl_standard_normal(mean, log_variance).mean())


def test_inactive_factors_have_the_prior_as_posterior_and_no_effect(make_module, make_batch, make_noise):
    module, batch = make_module(covariance="identity"), make_batch()
    with torch.no_grad():
        module.mask.weight[:, 1] = 0.0
    mean, log_variance = module.encode(batch)
    assert (mean[:, 1] == 0).all()
    assert (log_variance[:, 1] == 0).all()
    z = make_noise()
    shifted = z + torch.tensor([0.0, 9.0, 0.0])
    assert torch.equal(module.decode(z), module.decode(shifted))
    assert module.active().tolist() == [1.0, 0.0, 1.0]


def test_the_importance_weight_averages_to_the_bound_and_bounds_it_from_above(make_module, make_batch):
    module, batch = make_module(), make_batch()
    draws = torch.randn(800, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with torch.no_grad():
        weights = torch.stack([module.log_weight(batch, draw.expand(batch.n_rows, 3)) for draw in draws])
        bound = module.bound(batch, draws)
    assert_close(weights.mean(0), bound, atol=0.3, rtol=0.05)
    assert (torch.logsumexp(weights, 0) - math.log(len(draws)) > weights.mean(0)).all()


def test_draws_from_the_prior_have_its_covariance(make_module, generator):
    module = make_module().float()
    draws = module.draw_prior(200_000, generator)
    assert_close(torch.cov(draws.T), module.factor_covariance, atol=0.02, rtol=0)


# -- the factors' covariance --------------------------------------------------------------------------------


def test_a_learned_covariance_is_a_correlation_matrix_with_identity_rows_for_inactive_factors(
    make_module, make_batch, make_noise
):
    module, batch, noise = make_module().train(), make_batch(), make_noise()
    with torch.no_grad():
        module.mask.weight[:, 2] = 0.0
    for _ in range(30):
        module.update(module.step(batch, noise, 8).statistics, 8)
    covariance = module.factor_covariance
    assert_close(covariance.diagonal(), torch.ones(3, dtype=torch.float64))
    assert_close(covariance, covariance.mT)
    assert torch.linalg.eigvalsh(covariance).min() > 0
    assert covariance[2].tolist() == [0.0, 0.0, 1.0]
    assert abs(covariance[0, 1]) > 1e-3


@pytest.mark.parametrize("covariance", ["identity", "fixed"])
def test_a_covariance_that_is_not_learned_stays(make_module, make_batch, make_noise, covariance):
    module = make_module(covariance=covariance).train()
    before = module.factor_covariance.clone()
    module.update(module.step(make_batch(), make_noise(), 8).statistics, 8)
    assert torch.equal(module.factor_covariance, before)


def test_a_fixed_covariance_is_that_of_the_factors_in_use(make_module):
    module = make_module(covariance="fixed")
    with torch.no_grad():
        module.mask.weight[:, 2] = 0.0
    prior = module.prior_covariance()
    assert torch.equal(prior[:2, :2], module.factor_covariance[:2, :2])
    assert prior[2].tolist() == prior[:, 2].tolist() == [0.0, 0.0, 1.0]


def test_second_moments_of_the_codes_are_what_the_covariance_is_learned_from(
    make_module, make_batch, make_noise
):
    module, batch = make_module().train(), make_batch()
    mean, log_variance = module.encode(batch)
    statistics = module.step(batch, make_noise(), 8).statistics
    each = mean.unsqueeze(-1) * mean.unsqueeze(-2) + torch.diag_embed(log_variance.exp())
    assert_close(statistics["moments"], each.sum(0).detach())
    assert statistics["count"] == 8
    assert "moments" not in make_module(covariance="fixed").step(batch, make_noise(), 8).statistics


def test_repeated_updates_settle_at_the_correlation_of_the_moments_shrunk_a_little():
    moments = torch.tensor([[4.0, 1.2], [1.2, 1.0]])
    correlation = torch.eye(2)
    for _ in range(100):
        correlation, scale = correlation_and_scale(moments, correlation, torch.tensor([True, True]))
    assert_close(correlation, torch.tensor([[1.0, 0.98 * 0.6], [0.98 * 0.6, 1.0]]))
    assert_close(scale, torch.tensor([2.0, 1.0]).sqrt())


def test_factors_not_in_use_are_standard_and_keep_their_scale():
    moments = torch.tensor([[4.0, 1.2], [1.2, 1.0]])
    correlation, scale = correlation_and_scale(moments, torch.eye(2), torch.tensor([False, True]))
    assert_close(correlation, torch.eye(2))
    assert_close(scale, torch.ones(2))


def test_moments_that_are_not_finite_leave_the_identity():
    moments = torch.full((2, 2), torch.nan)
    correlation, scale = correlation_and_scale(moments, torch.eye(2), torch.tensor([True, True]))
    assert_close(correlation, torch.eye(2))
    assert_close(scale, torch.ones(2))


# -- other units, another order, another basis of the factors ------------------------------------------------


@DEPTHS
def test_a_change_of_the_factors_units_leaves_the_model_the_same(
    make_module, make_batch, make_noise, hidden_sizes
):
    module, batch, noise = make_module(hidden_sizes=hidden_sizes), make_batch(), make_noise()
    mean, log_variance = module.encode(batch)
    output = module.decode(mean + (0.5 * log_variance).exp() * noise)
    scale = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    module.scale_factors_(scale)
    new_mean, new_log_variance = module.encode(batch)
    assert_close(new_mean, mean / scale)
    assert_close(module.decode(new_mean + (0.5 * new_log_variance).exp() * noise), output)


def test_a_change_of_units_leaves_known_anchors_their_entries(make_module):
    module = make_module()
    module.mask.frozen[1] = True
    before = module.mask.weight.detach().clone()
    module.scale_factors_(torch.full((3,), 2.0, dtype=torch.float64))
    assert torch.equal(module.mask.weight[1].detach(), before[1])
    assert_close(module.mask.weight[0].detach(), 2 * before[0])


@DEPTHS
def test_reordered_factors_are_the_same_model(make_module, make_batch, hidden_sizes):
    module, batch = make_module(hidden_sizes=hidden_sizes), make_batch()
    with torch.no_grad():
        module.mask.weight[2, 0] = 0.0
    mean, log_variance, output = outputs(module, batch)
    before = {
        "penalties": module.penalties(10),
        "inclusion": module.mask.inclusion(),
        "covariance": module.factor_covariance.clone(),
        "kl": module.kl(mean, log_variance).detach(),
    }
    order, sign = torch.tensor([2, 0, 1]), torch.tensor([-1.0, 1.0, -1.0])
    module.permute_factors_(order, sign)
    new_mean, new_log_variance, new_output = outputs(module, batch)
    assert_close(new_mean, sign * mean[:, order])
    assert_close(new_log_variance, log_variance[:, order])
    assert_close(new_output, output)
    assert_close(module.kl(new_mean, new_log_variance), before["kl"])
    assert_close(module.mask.inclusion(), before["inclusion"][:, order])
    assert_close(module.penalties(10), before["penalties"])
    assert_close(module.factor_covariance, torch.outer(sign, sign) * before["covariance"][order][:, order])
    assert (module.mask.weight[2, 1] == 0).all()


def test_reordering_takes_frozen_and_known_entries_along(make_module):
    module = make_module()
    module.mask.frozen[4, 0] = module.mask.known[5, 1] = True
    module.permute_factors_(torch.tensor([1, 2, 0]), torch.ones(3, dtype=torch.float64))
    assert module.mask.frozen.nonzero().tolist() == [[4, 2]]
    assert module.mask.known.nonzero().tolist() == [[5, 0]]


def test_factors_are_in_use_by_the_mask_alone(make_module, make_batch):
    module, batch = make_module(), make_batch()
    before = outputs(module, batch)
    module.used[0] = False  # of the plain VAE that a module may have begun as
    assert module.active().tolist() == [1.0, 1.0, 1.0]
    for got, expected in zip(outputs(module, batch), before, strict=True):
        assert torch.equal(got, expected)


def test_the_gauge_commutes_with_the_order_of_factors(make_module):
    module = make_module()
    module.project_()
    module.permute_factors_(torch.tensor([1, 2, 0]), torch.tensor([1.0, -1.0, 1.0]))
    before = module.decoder.first.detach().clone()
    module.project_()
    assert_close(module.decoder.first.detach(), before)


@pytest.mark.parametrize("hidden_sizes", [(5,), (5, 4), (5, 4, 3)])
def test_a_change_of_basis_leaves_what_is_decoded_and_the_prior_of_the_data(
    make_module, make_batch, hidden_sizes, generator
):
    module, batch = make_module(hidden_sizes=hidden_sizes, kind=VAEModule), make_batch()
    basis = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    basis = basis / torch.linalg.vector_norm(basis, dim=0)
    mean, _, output = outputs(module, batch)
    z = torch.randn(9, 3, generator=generator, dtype=torch.float64)
    from_prior = module.decode(z)
    first = module.decoder.first.detach().clone()
    norm = change_basis_(module, basis)
    new_mean, _ = module.encode(batch)
    assert_close(new_mean, mean @ basis)
    # The gauge took the norms out of the first layer; a mask with these columns puts them back.
    assert_close(module.decoder.weights().first, first @ torch.linalg.inv(basis).T / norm)
    assert_close(
        torch.linalg.vector_norm(module.decoder.first, dim=0),
        torch.full((3,), module.decoder.first_layer_norm(), dtype=torch.float64),
    )
    masked = SparseVAEModule.from_vae(module, SparseVAEConfig(n_factors=3, hidden_sizes=hidden_sizes))
    with torch.no_grad():
        masked.mask.weight.copy_(norm.expand(6, 3))
        masked.factor_covariance.copy_(basis.T @ basis)
    assert_close(masked.decode(new_mean), output)
    # Factors with the new covariance are the old ones in the new basis: data drawn from the prior stay.
    root = torch.linalg.cholesky(masked.prior_covariance())
    turn = torch.linalg.solve(root, basis.T)
    assert_close(turn @ turn.T, torch.eye(3, dtype=torch.float64))
    assert_close(masked.decode((z @ turn.T) @ root.T), from_prior)


# -- from a plain VAE ---------------------------------------------------------------------------------------


@DEPTHS
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_the_network_of_a_plain_vae_begins_behind_a_mask_of_ones(
    make_module, make_batch, hidden_sizes, likelihood
):
    vae, batch = make_module(likelihood, hidden_sizes=hidden_sizes, kind=VAEModule), make_batch(likelihood)
    config = SparseVAEConfig(n_factors=3, hidden_sizes=hidden_sizes)
    module = SparseVAEModule.from_vae(vae, config)
    assert module.config is config
    assert module.mask.weight.requires_grad
    assert (module.mask.weight == 1).all()
    for got, expected in zip(outputs(module, batch), outputs(vae, batch), strict=True):
        assert_close(got, expected)
    for name, value in vae.nuisance.values().items():
        assert torch.equal(module.nuisance.values()[name], value), name
    assert torch.equal(module.prior_covariance(), torch.eye(3, dtype=torch.float64))


def test_the_plain_vae_stays_as_it_was(make_module):
    vae = make_module(kind=VAEModule)
    module = SparseVAEModule.from_vae(vae, SparseVAEConfig(n_factors=3, hidden_sizes=(5, 4)))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    assert vae.mask is None
    assert vae.encoder.mean_weight.any()
    assert vae.decoder.heads.any()


# -- replicates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_replicates_have_the_losses_of_separate_modules(make_module, make_batch, make_noise, likelihood):
    several = make_module(likelihood, replicates=(2,))
    several.mask.set_rates(spike_rate=9.0, slab_rate=1.0)
    batch, noise = make_batch(likelihood), make_noise()
    losses, penalties = several.step(batch, noise, 8).loss, several.penalties(8)
    for r in range(2):
        one = SparseVAEModule(several.observation, several.config).double()
        state = several.state_dict()
        shared = {"mask.frozen", "mask.known", "nuisance.noise_scale", "nuisance.n_levels"}
        one.load_state_dict(
            {n: v if n in shared or n.startswith("observation.") else v[r] for n, v in state.items()}
        )
        one.mask.set_rates(spike_rate=9.0, slab_rate=1.0)
        for name, value in one.step(batch, noise, 8).loss._asdict().items():
            assert_close(getattr(losses, name)[r], value, msg=name)
        for name, value in one.penalties(8).items():
            assert_close(penalties[name][r], value, msg=name)
