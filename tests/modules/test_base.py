"""What all modules inherit: the step, its statistics, subsets of features, inputs left out, copies."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from sparsevae.decoder import MaskedDecoder
from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import (
    Batch,
    LatentModule,
    Loss,
    OIVAEModule,
    SparseVAEModule,
    Statistics,
    VAEModule,
    VSCModule,
)
from sparsevae.modules.base import restrict, subset_log_prob

from .helpers import gradients, outputs, same_state

FACTORISED = ["gaussian", "bernoulli", "poisson", "negative_binomial"]
MIXED = {"gaussian": [0, 3], "poisson": [1, 4], "bernoulli": [2, 5]}
SUBSETS = [torch.tensor(s) for s in combinations(range(6), 2)]
DEPTHS = pytest.mark.parametrize("hidden_sizes", [(), (5,), (5, 4), (5, 4, 3)])


# -- the step -----------------------------------------------------------------------------------------------


def test_the_loss_has_the_terms_that_gradients_lower(make_module, make_batch, make_noise):
    loss = make_module().step(make_batch(), make_noise(), 50).loss
    assert isinstance(loss, Loss)
    assert list(loss._asdict()) == ["reconstruction", "kl", "weight_penalty"]
    assert loss.weight_penalty == 0


def test_beta_weighs_the_kl_term(make_module, make_batch, make_noise):
    batch, noise = make_batch(), make_noise()
    once, thrice = (make_module(beta=beta).step(batch, noise, 100).loss for beta in (1.0, 3.0))
    assert_close(thrice.kl, 3 * once.kl)
    assert_close(thrice.reconstruction, once.reconstruction)


def test_the_bound_of_the_step_and_the_bound_of_rows_agree(make_module, make_batch, make_noise):
    module, batch, draw = make_module(), make_batch(), make_noise(1)
    loss = module.step(batch, draw.expand(batch.n_rows, 3), 10).loss
    assert_close(module.bound(batch, draw).mean(), -(loss.reconstruction + loss.kl))


def test_the_bound_takes_a_posterior_that_is_given(make_module, make_batch, make_noise):
    module, batch, draws = make_module(), make_batch(), make_noise(5)
    mean, log_variance = module.encode(batch)
    assert_close(module.bound(batch, draws, (mean, log_variance)), module.bound(batch, draws))
    away = module.bound(batch, draws, (mean + 50.0, log_variance))
    assert (away < module.bound(batch, draws)).all()


def test_the_noise_penalty_is_minus_the_inverse_gamma_log_density(make_module):
    module = make_module()
    module.nuisance.noise_scale.copy_(torch.linspace(0.1, 0.6, 6, dtype=torch.float64))
    prior = torch.distributions.InverseGamma(1.5, 1.5 * module.nuisance.noise_scale)
    expected = -prior.log_prob(module.noise_variance).sum() / 50
    assert_close(module.penalties(50)["noise_penalty"], expected)


@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli", "multinomial"])
def test_without_real_features_there_is_no_noise_penalty(make_module, likelihood):
    assert make_module(likelihood).penalties(50)["noise_penalty"] == 0


def test_the_noise_variance_is_the_likelihoods_own_or_ones(make_module):
    module = make_module()
    assert module.noise_variance is module.nuisance.noise_variance
    for replicates in ((), (2,)):
        counts = make_module("poisson", replicates=replicates)
        assert torch.equal(counts.noise_variance, torch.ones(*replicates, 6))


# -- statistics and closed forms ----------------------------------------------------------------------------


def test_statistics_add_up_name_by_name():
    one = Statistics(count=torch.tensor(2), sums=torch.ones(3))
    other = Statistics(count=torch.tensor(3), sums=2 * torch.ones(3))
    both = one + other
    assert isinstance(both, Statistics)
    assert both["count"] == 5
    assert both["sums"].tolist() == [3.0, 3.0, 3.0]
    assert Statistics() + one is one
    assert one["count"] == 2


def test_noise_variances_are_the_map_of_the_residuals(make_module, make_batch, make_noise):
    module, batch, noise = make_module(covariance="identity").train(), make_batch(), make_noise()
    mean, log_variance = module.encode(batch)
    residual = batch.x - module.decode(mean + (0.5 * log_variance).exp() * noise)
    parts = zip(batch.split(4), noise.split(4), strict=True)
    first, second = (module.step(part, own, 8).statistics for part, own in parts)
    module.update(first + second, 8)
    expected = (residual.square().sum(0) + 3 * module.nuisance.noise_scale) / (8 + 3 + 2)
    assert_close(module.noise_variance, expected.detach())


def test_noise_variances_of_observed_residuals_alone(make_module, make_batch, make_noise, generator):
    module, batch, noise = make_module(covariance="identity").train(), make_batch(), make_noise()
    observed = torch.rand(8, 6, generator=generator) < 0.6
    observed[:, 5] = False
    mean, log_variance = module.encode(batch)
    residual = batch.x - module.decode(mean + (0.5 * log_variance).exp() * noise)
    before = module.noise_variance.clone()
    module.update(module.step(batch._replace(observed=observed), noise, 8).statistics, 8)
    seen = observed.sum(0)
    squares = (residual.square() * observed).sum(0) * 8 / seen
    expected = (squares + 3 * module.nuisance.noise_scale) / (8 + 3 + 2)
    assert_close(module.noise_variance[:5], expected[:5].detach())
    assert module.noise_variance[5] == before[5]  # nothing was seen of it


def test_a_step_leaves_nothing_behind_in_the_module(make_module, make_batch, make_noise):
    module, batch, noise = make_module().train(), make_batch(), make_noise()
    before = module.clone()
    first = module.step(batch, noise, 8).statistics
    second = module.step(batch, noise, 8).statistics
    assert same_state(module, before)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert module.eval().step(batch, noise, 8).statistics == Statistics()


def test_parameters_of_the_likelihood_follow_gradients_or_closed_forms(make_module, make_batch, make_noise):
    counts, real = make_module("negative_binomial"), make_module()
    assert isinstance(counts.nuisance.log_dispersion, nn.Parameter)
    assert any(p is counts.nuisance.log_dispersion for p in counts.network_parameters())
    assert set(counts.nuisance.values()) == {"log_dispersion"}
    assert set(real.nuisance.values()) == {"noise_variance", "noise_scale"}
    assert not list(real.nuisance.parameters())


# -- subsets of the features --------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", FACTORISED)
@pytest.mark.parametrize("options", [{}, {"hidden_sizes": ()}, {"kind": VAEModule}], ids=str)
def test_the_mean_over_all_subsets_is_the_full_loss_and_its_gradient(
    make_module, make_batch, make_noise, likelihood, options
):
    module, batch, noise = make_module(likelihood, **options), make_batch(likelihood), make_noise()
    full = module.step(batch, noise, 100).loss
    losses = [module.step(batch._replace(features=features), noise, 100).loss for features in SUBSETS]
    assert_close(torch.stack([loss.reconstruction for loss in losses]).mean(), full.reconstruction)
    assert all(torch.equal(loss.kl, full.kl) for loss in losses)
    expected = gradients(module, full.reconstruction)
    each = [gradients(module, loss.reconstruction) for loss in losses]
    for name, gradient in expected.items():
        assert_close(torch.stack([g[name] for g in each]).mean(0), gradient, msg=name)


def test_columns_of_different_kinds_are_unbiased_too(generator):
    likelihood = get_likelihood(MIXED, 6)
    x = torch.randint(0, 2, (8, 6), generator=generator).double()
    output = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    parameters = {"noise_variance": torch.rand(6, generator=generator, dtype=torch.float64) + 0.5}
    size = torch.rand(8, generator=generator, dtype=torch.float64) + 0.5
    batch = Batch(x, x, size)
    estimates = [
        subset_log_prob(likelihood, batch._replace(features=s), output[:, s], parameters) for s in SUBSETS
    ]
    expected = likelihood.log_prob(x, output, parameters, size=size)
    assert_close(torch.stack(estimates).mean(0), expected)


def test_features_outside_the_subset_get_no_likelihood_gradient(make_module, make_batch, make_noise):
    module = make_module()
    batch = make_batch()._replace(features=torch.tensor([1, 4]))
    found = gradients(module, module.step(batch, make_noise(), 100).loss.reconstruction)
    for name in ("mask.weight", "decoder.heads", "decoder.intercept"):
        touched = found[name].reshape(6, -1).abs().sum(1) > 0
        assert touched.tolist() == [False, True, False, False, True, False], name


def test_the_decoder_sees_the_subset_only(make_module, make_batch, make_noise, monkeypatch):
    shapes = []
    forward = MaskedDecoder.forward

    def spy(self, *args, **kwargs):
        output = forward(self, *args, **kwargs)
        shapes.append(tuple(output.shape))
        return output

    monkeypatch.setattr(MaskedDecoder, "forward", spy)
    make_module().step(make_batch()._replace(features=torch.tensor([1, 4])), make_noise(), 100)
    assert shapes == [(8, 2)]


@pytest.mark.parametrize("replicates", [(), (3,)])
def test_noise_variances_come_from_the_rows_that_each_feature_was_drawn_with(
    make_module, make_batch, make_noise, replicates
):
    module = make_module(replicates=replicates, covariance="identity").train()
    batch, noise = make_batch(), make_noise()
    before = module.noise_variance.clone()
    sums, squares = Statistics(), {0: [], 1: [], 2: []}
    for features in (torch.tensor([0, 1]), torch.tensor([1, 2])):
        some = batch._replace(features=features)
        sums = sums + module.step(some, noise.expand(*replicates, *noise.shape), 100).statistics
        mean, log_variance = module.encode(batch)
        output = module.decode(mean + torch.exp(0.5 * log_variance) * noise, features)
        for position, j in enumerate(features.tolist()):
            squares[j].append((batch.x[:, j] - output[..., position]).square().mean(-1))
    module.update(sums, 100)
    for j, found in squares.items():
        expected = (100 * torch.stack(found).mean(0) + 3.0 * module.nuisance.noise_scale[j]) / (100 + 5.0)
        assert_close(module.noise_variance[..., j], expected.detach())
    assert torch.equal(module.noise_variance[..., 3:], before[..., 3:])


def test_squared_errors_count_the_samples_behind_them(make_module):
    module = make_module()
    x = torch.tensor([[1.0, 2, 5, 0, 0, 0], [3.0, 2, 5, 0, 0, 0]])
    batch, output = Batch(x, x, features=torch.tensor([0])), torch.tensor([[2.0], [2.0]])
    sums = module.nuisance.statistics(batch, output)
    assert sums["likelihood.squares"].tolist() == [2.0, 0, 0, 0, 0, 0]
    assert sums["likelihood.seen"].tolist() == [2, 0, 0, 0, 0, 0]
    observed = torch.tensor([[True], [False]]).expand(2, 6)
    sums = module.nuisance.statistics(batch._replace(observed=observed), output)
    assert sums["likelihood.squares"].tolist() == [1.0, 0, 0, 0, 0, 0]
    assert sums["likelihood.seen"].tolist() == [1, 0, 0, 0, 0, 0]


def test_a_restricted_likelihood_counts_its_columns_anew():
    some = restrict(get_likelihood(MIXED, 6), 6, torch.tensor([1, 2, 4]))
    assert {part.name: columns.tolist() for part, columns in some.split(3)} == {
        "gaussian": [],
        "poisson": [0, 2],
        "bernoulli": [1],
    }


def test_subsets_are_drawn_uniformly_and_without_replacement(make_module, make_batch, generator):
    module, batch = make_module(features_per_step=2), make_batch()
    drawn = torch.stack([module.thin(batch, generator).features for _ in range(4000)])
    assert drawn.shape == (4000, 2)
    assert (drawn.diff(dim=1) > 0).all()
    share = torch.bincount(drawn.ravel(), minlength=6) / 4000
    np.testing.assert_allclose(share.numpy(), 2 / 6, atol=0.03)
    pairs = torch.bincount(6 * drawn[:, 0] + drawn[:, 1], minlength=36) / 4000
    np.testing.assert_allclose(pairs[pairs > 0].numpy(), 1 / 15, atol=0.015)
    assert (pairs > 0).sum() == 15


@pytest.mark.parametrize("size", [None, 6, 60])
def test_all_features_need_no_subset(make_module, make_batch, generator, size):
    before = generator.get_state()
    batch = make_batch()
    assert make_module(features_per_step=size).thin(batch, generator) is batch
    assert torch.equal(generator.get_state(), before)  # fits without it are what they were


def test_a_phase_may_ask_for_every_feature(make_module, make_batch, generator):
    module, batch = make_module(features_per_step=2), make_batch()
    assert module.thin(batch, generator, every_feature=True) is batch


@pytest.mark.parametrize("kind", [SparseVAEModule, VAEModule, VSCModule, OIVAEModule])
def test_a_multinomial_refuses_a_subset(make_module, kind):
    with pytest.raises(ValueError, match="whose features share one total"):
        make_module("multinomial", kind=kind, features_per_step=3)


# -- inputs left out ----------------------------------------------------------------------------------------


def test_inputs_left_out_in_training_say_nothing_of_the_factors(make_module, make_batch, generator):
    module, batch = make_module(input_dropout=0.4), make_batch()
    state = generator.get_state()
    thinned = module.thin(batch, generator)
    left_out = thinned.inputs == 0
    assert left_out.any()
    assert_close(thinned.inputs[~left_out], batch.inputs[~left_out] / 0.6)
    assert thinned.x is batch.x
    changed = batch._replace(inputs=torch.where(left_out, 7.0, batch.inputs))
    for one, other in zip(
        module.encode(thinned), module.encode(module.thin(changed, generator.set_state(state))), strict=True
    ):
        assert_close(one, other)


def test_inputs_left_out_average_to_all_of_them(make_module, make_batch, generator):
    module, batch = make_module(input_dropout=0.1), make_batch()
    ones = batch._replace(inputs=torch.ones_like(batch.inputs))
    average = torch.stack([module.thin(ones, generator).inputs for _ in range(4000)]).mean(0)
    assert_close(average, torch.ones_like(average), atol=0.03, rtol=0)
    assert make_module().thin(batch, generator) is batch


# -- copies -------------------------------------------------------------------------------------------------


@DEPTHS
@pytest.mark.parametrize("likelihood", ["gaussian", "negative_binomial"])
def test_a_selected_replicate_is_that_replicate(make_module, make_batch, hidden_sizes, likelihood):
    several = make_module(likelihood, hidden_sizes=hidden_sizes, replicates=(3,))
    several.mask.spike_rate = torch.rand(3, 6, 1, dtype=torch.float64)
    batch = make_batch(likelihood)
    for r in range(3):
        one = several.select(r)
        assert one.replicates == one.encoder.replicates == one.decoder.replicates == ()
        assert torch.equal(one.mask.spike_rate, several.mask.spike_rate[r])
        for got, all_of_them in zip(outputs(one, batch), outputs(several, batch), strict=True):
            assert_close(got, all_of_them[r])


def test_a_list_of_replicates_keeps_their_dimension(make_module, make_batch):
    several, batch = make_module(replicates=(3,)), make_batch()
    two = several.select([2, 0])
    assert two.replicates == (2,)
    for got, before in zip(outputs(two, batch), outputs(several, batch), strict=True):
        assert_close(got, before[[2, 0]])


@pytest.mark.parametrize("copy_of", [lambda m: m.select(0), lambda m: m.clone()], ids=["select", "clone"])
@pytest.mark.parametrize("replicates", [(), (1,)])
def test_a_selection_is_a_copy(make_module, copy_of, replicates):
    module = make_module(replicates=replicates)
    copy = copy_of(module)
    with torch.no_grad():
        copy.mask.weight.zero_()
        copy.encoder.mean_weight.zero_()
        copy.noise_variance.zero_()
    assert module.mask.weight.any()
    assert module.encoder.mean_weight.any()
    assert module.noise_variance.any()


def test_a_selection_starts_without_gradients(make_module, make_batch, make_noise):
    module = make_module(replicates=(2,))
    module.step(make_batch(), make_noise(), 8).loss.reconstruction.sum().backward()
    copy = module.select([0])
    assert all(parameter.grad is None for parameter in copy.parameters())
    copy.step(make_batch(), make_noise(), 8).loss.reconstruction.sum().backward()
    assert copy.mask.weight.grad.shape == (1, 6, 3)


@DEPTHS
def test_stacked_modules_are_replicates(make_module, make_batch, hidden_sizes):
    modules = [make_module(hidden_sizes=hidden_sizes, seed=seed) for seed in range(3)]
    stacked, batch = SparseVAEModule.stack(modules), make_batch()
    assert stacked.replicates == (3,)
    for r, module in enumerate(modules):
        for got, expected in zip(outputs(stacked, batch), outputs(module, batch), strict=True):
            assert_close(got[r], expected)


def test_stack_and_select_undo_each_other_to_the_last_bit(make_module):
    modules = [make_module(seed=seed).float() for seed in range(2)]
    for r, module in enumerate(modules):
        assert same_state(SparseVAEModule.stack(modules).select(r), module)


def test_what_replicates_share_is_not_theirs(make_module):
    module = make_module(replicates=(2,))
    own = dict(module.replicated())
    shared = set(module.state_dict()) - set(own)
    assert {name for name in shared if not name.startswith("observation.")} == {
        "mask.frozen",
        "mask.known",
        "nuisance.noise_scale",
    }
    assert all(value.shape[0] == 2 for value in own.values())


@pytest.mark.parametrize("kind", [SparseVAEModule, VAEModule, VSCModule, OIVAEModule])
def test_parameters_depend_on_the_generator_alone(make_observation, kind):
    def build(seed):
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(4)
        return kind(make_observation(), kind.config_class(n_factors=2), generator=generator).state_dict()

    for name, value in build(0).items():
        assert torch.equal(value, build(1)[name]), name


def test_a_module_must_say_how_it_decodes_and_what_is_in_use():
    assert LatentModule.__abstractmethods__ == {"decode", "active", "support"}
