"""The loss against computations by hand, and the closed-form updates against their formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Laplace,
    Multinomial,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    kl_divergence,
)
from torch.testing import assert_close

from sparsevae.divergences import kl_standard_normal
from sparsevae.modules import FactorModule

LIKELIHOODS = ["gaussian", "bernoulli", "poisson", "negative_binomial", "multinomial"]
DEPTHS = pytest.mark.parametrize("hidden_sizes", [(), (5,), (5, 4), (5, 4, 3)])


def decode_by_hand(module, z):
    """The paper's decoder, feature by feature."""
    outputs = []
    for j in range(module.n_features):
        h = module.mask[j] * z
        if module.decoder.first is not None:
            h = torch.relu(h @ module.decoder.first.T)
            for weight, bias in zip(module.decoder.hidden_weights, module.decoder.hidden_biases, strict=True):
                h = torch.relu(h @ weight.T + bias)
        outputs.append(h @ module.decoder.heads[j] + module.decoder.intercept[j])
    return torch.stack(outputs, -1)


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
    shape = module.log_dispersion.exp()
    return NegativeBinomial(shape, probs=rate / (rate + shape)).log_prob(x).sum(-1)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@DEPTHS
def test_reconstruction_and_kl_are_those_of_torch_distributions(
    make_module, make_rows, make_noise, likelihood, hidden_sizes
):
    module, x, noise = make_module(likelihood, hidden_sizes=hidden_sizes), make_rows(likelihood), make_noise()
    mean, log_variance = module.encoder(module.observation.encoder_input(x))
    z = mean + (0.5 * log_variance).exp() * noise
    expected = log_likelihood_by_hand(module, likelihood, x, decode_by_hand(module, z))
    posterior = MultivariateNormal(mean, torch.diag_embed(log_variance.exp()))
    prior = MultivariateNormal(torch.zeros(3, dtype=torch.float64), module.factor_covariance)
    loss = module.loss(x, noise, 100)
    assert_close(loss.reconstruction, -expected.mean())
    assert_close(loss.kl, kl_divergence(posterior, prior).mean())


def test_beta_weighs_the_kl_term(make_module, make_rows, make_noise):
    x, noise = make_rows(), make_noise()
    once, thrice = (make_module(beta=beta).loss(x, noise, 100) for beta in (1.0, 3.0))
    assert_close(thrice.kl, 3 * once.kl)
    assert_close(thrice.reconstruction, once.reconstruction)


def test_an_identity_prior_has_the_closed_form(make_module, make_rows, make_noise):
    module, x = make_module(covariance="identity"), make_rows()
    mean, log_variance = module.encode(x)
    assert_close(module.loss(x, make_noise(), 9).kl, kl_standard_normal(mean, log_variance).mean())


def test_the_mask_penalty_is_minus_the_log_prior_over_the_number_of_samples(make_module):
    module = make_module(inclusion_prior=(2.0, 5.0))
    module.spike_rate, module.slab_rate = 20.0, 0.5
    eta, w = module.inclusion_rate, module.mask
    slab = Laplace(0.0, 1 / 0.5).log_prob(w).exp()
    spike = Laplace(0.0, 1 / 20.0).log_prob(w).exp()
    log_prior = torch.log(eta * slab + (1 - eta) * spike).sum()
    log_prior = log_prior + torch.distributions.Beta(2.0, 5.0).log_prob(eta).sum()
    assert_close(module.penalties(50)["mask_penalty"], -log_prior.detach() / 50)


def test_the_noise_penalty_is_minus_the_inverse_gamma_log_density(make_module):
    module = make_module(noise_scale=torch.linspace(0.1, 0.6, 6, dtype=torch.float64))
    prior = torch.distributions.InverseGamma(1.5, 1.5 * module.noise_scale)
    expected = -prior.log_prob(module.noise_variance).sum() / 50
    assert_close(module.penalties(50)["noise_penalty"], expected)


@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli", "multinomial"])
def test_without_real_features_there_is_no_noise_penalty(make_module, likelihood):
    assert make_module(likelihood).penalties(50)["noise_penalty"] == 0


def test_a_plain_vae_has_no_mask_penalty_and_one_pass_for_all_features(make_module, make_rows, make_noise):
    module, x = make_module(learned_mask=False), make_rows()
    assert module.penalties(50)["mask_penalty"] == 0
    z = make_noise(seed=5)
    assert_close(module.decode(z), decode_by_hand(module, z))
    module.used[1] = False
    assert (module.encode(x)[0][:, 1] == 0).all()
    assert_close(module.decode(z), module.decode(z * torch.tensor([1.0, 0.0, 1.0])))


def test_the_objective_is_the_sum_of_its_terms(make_module, make_rows, make_noise):
    loss = make_module().loss(make_rows(), make_noise(), 50)
    assert_close(loss.objective, sum(value for _, value in loss.items()))
    assert [name for name, _ in loss.items()] == ["reconstruction", "kl", "weight_penalty"]


def test_inactive_factors_have_the_prior_as_posterior_and_no_effect(make_module, make_rows, make_noise):
    module, x = make_module(covariance="identity"), make_rows()
    with torch.no_grad():
        module.mask[:, 1] = 0.0
    mean, log_variance = module.encode(x)
    assert (mean[:, 1] == 0).all()
    assert (log_variance[:, 1] == 0).all()
    z = make_noise()
    shifted = z + torch.tensor([0.0, 9.0, 0.0])
    assert torch.equal(module.decode(z), module.decode(shifted))
    assert module.active().tolist() == [1.0, 0.0, 1.0]


def test_the_importance_weight_averages_to_the_bound_and_bounds_it_from_above(make_module, make_rows):
    module, x = make_module(), make_rows()
    draws = torch.randn(800, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    with torch.no_grad():
        weights = torch.stack([module.log_weight(x, draw.expand(len(x), 3)) for draw in draws])
        bound = module.bound(x, draws)
    assert_close(weights.mean(0), bound, atol=0.3, rtol=0.05)
    assert (torch.logsumexp(weights, 0) - math.log(len(draws)) > weights.mean(0)).all()


def test_the_bound_of_the_loss_and_the_bound_of_rows_agree(make_module, make_rows, make_noise):
    module, x = make_module(), make_rows()
    draw = make_noise(1)
    loss = module.loss(x, draw.expand(len(x), 3), 10)
    assert_close(module.bound(x, draw).mean(), -(loss.reconstruction + loss.kl))


def test_draws_from_the_prior_have_its_covariance(make_module, generator):
    module = make_module().float()
    draws = module.draw_prior(200_000, generator)
    assert_close(torch.cov(draws.T), module.factor_covariance, atol=0.02, rtol=0)


# -- closed-form updates ------------------------------------------------------------------------------------


def test_inclusion_follows_bayes_rule(make_module):
    module = make_module()
    module.spike_rate, module.slab_rate = 30.0, 2.0
    w, eta = module.mask, module.inclusion_rate
    slab = eta * 2.0 / 2 * torch.exp(-2.0 * w.abs())
    spike = (1 - eta) * 30.0 / 2 * torch.exp(-30.0 * w.abs())
    assert_close(module.inclusion(), (slab / (slab + spike)).detach())
    weight = (2.0 * slab + 30.0 * spike) / (slab + spike)
    assert_close(module.proximal_weight(40), weight.detach() / 40)


def test_the_released_arithmetic_leaves_the_rates_ratio_out(make_module):
    module = make_module(keep_rate_ratio=False)
    module.spike_rate, module.slab_rate = 30.0, 2.0
    w, eta = module.mask, module.inclusion_rate
    slab, spike = eta * torch.exp(-2.0 * w.abs()), (1 - eta) * torch.exp(-30.0 * w.abs())
    assert_close(module.inclusion(), (slab / (slab + spike)).detach())


def test_the_inclusion_rate_moves_only_once_spike_and_slab_differ(make_module):
    module = make_module(inclusion_prior=(2.0, 7.0))
    before = module.inclusion_rate.clone()
    module.spike_rate, module.slab_rate = 2.9, 1.0
    module.update_inclusion()
    assert torch.equal(module.inclusion_rate, before)
    module.spike_rate = 30.0
    expected = (module.inclusion().sum(0) + 1.0) / (2.0 + 7.0 + 6 - 2.0)
    module.update_inclusion()
    assert_close(module.inclusion_rate, expected)


@pytest.mark.parametrize("prior", [(0.5 / 3, 1.0), (1.0, 6.0), (3.0, 3.0)])
def test_any_beta_prior_keeps_rates_inside_zero_and_one(make_module, prior):
    module = make_module(inclusion_prior=prior)
    module.spike_rate, module.slab_rate = 50.0, 1.0
    with torch.no_grad():
        module.mask[:, 0] = 0.0
    for _ in range(20):
        module.update_inclusion()
    assert ((module.inclusion_rate > 0) & (module.inclusion_rate < 1)).all()
    assert module.penalties(10)["mask_penalty"].isfinite()


def test_noise_variances_are_the_map_of_the_residuals(make_module, make_rows, make_noise):
    module, x, noise = make_module(covariance="identity").train(), make_rows(), make_noise()
    mean, log_variance = module.encode(x)
    residual = x - module.decode(mean + (0.5 * log_variance).exp() * noise)
    module.loss(x[:4], noise[:4], 8)
    module.loss(x[4:], noise[4:], 8)
    module.closed_form_update(8)
    expected = (residual.square().sum(0) + 3 * module.noise_scale) / (8 + 3 + 2)
    assert_close(module.noise_variance, expected.detach())


def test_statistics_are_not_collected_in_evaluation_and_forgotten_after_an_update(
    make_module, make_rows, make_noise
):
    module, x, noise = make_module().eval(), make_rows(), make_noise()
    module.loss(x, noise, 8)
    before = module.noise_variance.clone()
    module.closed_form_update(8)
    assert torch.equal(module.noise_variance, before)
    module.train().loss(x, noise, 8)
    module.closed_form_update(8)
    after = module.noise_variance.clone()
    module.closed_form_update(8)
    assert torch.equal(module.noise_variance, after)


def test_a_learned_covariance_is_a_correlation_matrix_with_identity_rows_for_inactive_factors(
    make_module, make_rows, make_noise
):
    module, x, noise = make_module().train(), make_rows(), make_noise()
    with torch.no_grad():
        module.mask[:, 2] = 0.0
    for _ in range(30):
        module.loss(x, noise, 8)
        module.closed_form_update(8)
    covariance = module.factor_covariance
    assert_close(covariance.diagonal(), torch.ones(3, dtype=torch.float64))
    assert_close(covariance, covariance.mT)
    assert torch.linalg.eigvalsh(covariance).min() > 0
    assert covariance[2].tolist() == [0.0, 0.0, 1.0]
    assert abs(covariance[0, 1]) > 1e-3


@pytest.mark.parametrize("covariance", ["identity", "fixed"])
def test_a_covariance_that_is_not_learned_stays(make_module, make_rows, make_noise, covariance):
    module = make_module(covariance=covariance).train()
    before = module.factor_covariance.clone()
    module.loss(make_rows(), make_noise(), 8)
    module.closed_form_update(8)
    assert torch.equal(module.factor_covariance, before)


@DEPTHS
def test_a_change_of_the_factors_units_leaves_the_model_the_same(
    make_module, make_rows, make_noise, hidden_sizes
):
    module, x, noise = make_module(hidden_sizes=hidden_sizes), make_rows(), make_noise()
    mean, log_variance = module.encode(x)
    output = module.decode(mean + (0.5 * log_variance).exp() * noise)
    scale = torch.tensor([0.5, 1.0, 3.0], dtype=torch.float64)
    module.scale_factors_(scale)
    new_mean, new_log_variance = module.encode(x)
    assert_close(new_mean, mean / scale)
    assert_close(module.decode(new_mean + (0.5 * new_log_variance).exp() * noise), output)


def test_a_change_of_units_leaves_known_anchors_their_entries(make_module):
    module = make_module()
    module.frozen[1] = True
    before = module.mask.detach().clone()
    module.scale_factors_(torch.full((3,), 2.0, dtype=torch.float64))
    assert torch.equal(module.mask[1], before[1])
    assert_close(module.mask[0].detach(), 2 * before[0])


# -- replicates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_replicates_have_the_losses_of_separate_modules(make_module, make_rows, make_noise, likelihood):
    several = make_module(likelihood, replicates=(2,))
    several.spike_rate, several.slab_rate = 9.0, 1.0
    x, noise = make_rows(likelihood), make_noise()
    losses = several.loss(x, noise, 8)
    for r in range(2):
        one = FactorModule(several.observation, **several.config).double()
        state = several.state_dict()
        shared = {"frozen", "known", "noise_scale", "real"}
        one.load_state_dict(
            {n: v if n in shared or n.startswith("observation.") else v[r] for n, v in state.items()}
        )
        one.spike_rate, one.slab_rate = 9.0, 1.0
        for (name, value), (_, values) in zip(one.loss(x, noise, 8).items(), losses.items(), strict=True):
            assert_close(values[r], value, msg=name)


def test_parameters_depend_on_the_generator_alone():
    from sparsevae.likelihoods import get_likelihood
    from sparsevae.modules import Observation

    def build(seed):
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(4)
        observation = Observation.blank(get_likelihood("gaussian", 5), 5)
        return FactorModule(observation, 2, generator=generator).state_dict()

    for name, value in build(0).items():
        assert torch.equal(value, build(1)[name]), name


def test_inputs_left_out_in_training_say_nothing_of_the_factors(make_module, make_rows):
    module, x = make_module(input_dropout=0.4), make_rows()
    generator = torch.Generator().manual_seed(0)
    seen = module.draw_seen(x, generator)
    left_out = seen == 0
    assert left_out.any()
    assert_close(seen[~left_out], torch.full_like(seen[~left_out], 1 / 0.6))
    for one, other in zip(
        module.encode(x, seen), module.encode(torch.where(left_out, 7.0, x), seen), strict=True
    ):
        assert_close(one, other)


def test_inputs_left_out_average_to_all_of_them(make_module, make_rows):
    module, x = make_module(input_dropout=0.1), make_rows()
    generator = torch.Generator().manual_seed(0)
    average = torch.stack([module.draw_seen(x, generator) for _ in range(4000)]).mean(0)
    assert_close(average, torch.ones_like(average), atol=0.03, rtol=0)
    assert make_module().draw_seen(x, generator) is None
