"""What every module keeps, with every likelihood, alone or as replicates: the contract of `LatentModule`.

A new module joins in `MODULES`; a new likelihood joins by being in the registry.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from sparsevae.likelihoods import LIKELIHOODS, get_likelihood
from sparsevae.modules import (
    Batch,
    LatentModule,
    Loss,
    OIVAEModule,
    SparseVAEModule,
    Statistics,
    Step,
    VAEModule,
    VSCModule,
)

from .helpers import gradients, outputs, same_state

N_ROWS, N_FEATURES, N_FACTORS = 8, 6, 3

MODULES = {
    "SparseVAE": (SparseVAEModule, {}),
    "SparseVAE, linear": (SparseVAEModule, {"hidden_sizes": ()}),
    "SparseVAE, fixed covariance": (SparseVAEModule, {"covariance": "fixed"}),
    "VAE": (VAEModule, {}),
    "VAE, in the gauge": (VAEModule, {"gauge": True, "hidden_sizes": (5,)}),
    "VSC": (VSCModule, {"n_pseudo_inputs": 4, "warmup_epochs": 3}),
    "OIVAE": (OIVAEModule, {"groups": (1, 0, 1, 0, 1, 1), "group_width": 2}),
}
MIXED = {
    "mixed": {"gaussian": [0, 3], "poisson": [1], "bernoulli": [2], "negative_binomial": [4, 5]},
    "mixed with words": {"multinomial": [1, 2, 5], "gaussian": [0, 3, 4]},
}
SPECS = {name: name for name in LIKELIHOODS} | MIXED
FACTORISED = [name for name, spec in SPECS.items() if get_likelihood(spec, N_FEATURES).factorised]
REPLICATES = {"": (), ", replicates": (2,)}


class Case(NamedTuple):
    """A module in training mode, a batch, and noise for its step."""

    module: LatentModule
    batch: Batch
    noise: Tensor
    likelihood: str


@pytest.fixture(scope="session")
def make_case(make_module, make_batch):
    def make(name, likelihood="gaussian", replicates=(), seed=0, **more):
        kind, settings = MODULES[name]
        spec = SPECS[likelihood]
        module = make_module(spec, kind=kind, replicates=replicates, seed=seed, **{**settings, **more})
        generator = torch.Generator().manual_seed(5)
        shape = (*replicates, N_ROWS, module.n_noise)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        return Case(module.train(), make_batch(spec), noise, likelihood)

    return make


@pytest.fixture(params=REPLICATES, ids=lambda name: name.removeprefix(", ") or "alone")
def replicates(request):
    return REPLICATES[request.param]


@pytest.fixture(params=SPECS)
def likelihood(request):
    return request.param


@pytest.fixture(params=MODULES)
def name(request):
    return request.param


@pytest.fixture
def case(make_case, name, likelihood, replicates):
    """Every module, with every likelihood, alone and as replicates."""
    return make_case(name, likelihood, replicates)


@pytest.fixture
def plain(make_case, name, replicates):
    """Every module, alone and as replicates, with one likelihood."""
    return make_case(name, replicates=replicates)


def parts_of(step):
    """Loss terms and statistics by name."""
    return {**step.loss._asdict(), **{f"sum of {name}": value for name, value in step.statistics.items()}}


def total(loss):
    """What gradients lower, over all replicates."""
    return sum(term.sum() for term in loss)


# -- the step -----------------------------------------------------------------------------------------------


def test_a_step_gives_finite_terms_for_each_replicate_and_statistics(case, replicates):
    module, batch, noise, _ = case
    step = module.step(batch, noise, 100)
    assert isinstance(step, Step)
    assert isinstance(step.loss, Loss)
    assert isinstance(step.statistics, Statistics)
    for name, value in step.loss._asdict().items():
        assert value.shape == replicates, name
        assert value.dtype == torch.float64, name
        assert value.isfinite().all(), name
    assert step.statistics["count"] == N_ROWS
    for name, value in step.statistics.items():
        assert value.isfinite().all(), name
        assert not value.requires_grad, name


def test_penalties_are_finite_numbers_for_each_replicate(case, replicates):
    penalties = case.module.penalties(100)
    assert set(penalties) == {"mask_penalty", "noise_penalty"}
    assert all(value.shape == replicates and value.isfinite().all() for value in penalties.values())


def test_statistics_of_two_half_batches_are_those_of_the_whole(case):
    module, batch, noise, _ = case
    whole = module.step(batch, noise, 100).statistics
    first, second = (
        module.step(batch.rows(half), noise[..., half, :], 100).statistics
        for half in (slice(0, 3), slice(3, N_ROWS))
    )
    both = first + second
    assert both.keys() == whole.keys()
    for name, value in whole.items():
        assert_close(both[name], value, msg=name)


def test_there_are_no_statistics_in_evaluation(case):
    module, batch, noise, _ = case
    step = module.eval().step(batch, noise, 100)
    assert step.statistics == Statistics()
    assert all(value.isfinite().all() for value in step.loss)


def test_every_parameter_receives_a_finite_gradient(case):
    module, batch, noise, _ = case
    found = gradients(module, total(module.step(batch, noise, 100).loss))
    assert all(value.isfinite().all() for value in found.values())
    assert [name for name, value in found.items() if not value.any()] == []


def test_what_is_not_observed_has_no_influence_whatever_its_value(case):
    module, batch, noise, _ = case
    observed = torch.rand(N_ROWS, N_FEATURES, generator=torch.Generator().manual_seed(1)) < 0.7
    observed[0] = False  # a row of which nothing is known
    observed[:, 4] = False  # and a feature
    batch = batch._replace(observed=observed)
    step = module.step(batch, noise, 100)
    expected, slopes = parts_of(step), gradients(module, total(step.loss))
    assert all(value.isfinite().all() for value in (*expected.values(), *slopes.values()))
    for value in (torch.nan, torch.inf, -7.5):
        changed = batch._replace(x=torch.where(observed, batch.x, value))
        other = module.step(changed, noise, 100)
        for name, part in parts_of(other).items():
            assert torch.equal(part, expected[name]), (name, value)
        for name, slope in gradients(module, total(other.loss)).items():
            assert torch.equal(slope, slopes[name]), (name, value)
    # Nor has what the model says of a feature that was never seen.
    assert (slopes["decoder.intercept"][..., 4] == 0).all()
    assert (slopes["decoder.intercept"][..., :4] != 0).all()


def test_observing_everything_is_the_same_as_not_saying_so(case):
    module, batch, noise, _ = case
    observed = torch.ones(N_ROWS, N_FEATURES, dtype=torch.bool)
    step = module.step(batch, noise, 100)
    told = parts_of(module.step(batch._replace(observed=observed), noise, 100))
    for name, value in parts_of(step).items():
        assert_close(told[name], value, msg=name)


def test_a_row_of_weight_two_is_the_row_twice_in_the_loss(case):
    module, batch, noise, _ = case
    weight = torch.ones(N_ROWS, dtype=torch.float64)
    weight[2] = 2.0
    twice = torch.tensor([0, 1, 2, 2, 3, 4, 5, 6, 7])
    weighted = module.step(batch._replace(weight=weight), noise, 100).loss
    repeated = module.step(batch.rows(twice), noise[..., twice, :], 100).loss
    for name, value in repeated._asdict().items():
        assert_close(getattr(weighted, name), value, msg=name)
    expected = gradients(module, total(repeated))
    for name, gradient in gradients(module, total(weighted)).items():
        assert_close(gradient, expected[name], msg=name)


def test_a_row_of_weight_zero_is_not_there_in_the_loss(case):
    module, batch, noise, _ = case
    weight = torch.ones(N_ROWS, dtype=torch.float64)
    weight[-1] = 0.0
    weighted = module.step(batch._replace(weight=weight), noise, 100).loss
    without = module.step(batch.rows(slice(0, -1)), noise[..., :-1, :], 100).loss
    for name, value in without._asdict().items():
        assert_close(getattr(weighted, name), value, msg=name)


def test_replicates_are_separate_models(make_case, name, likelihood):
    module, batch, noise, _ = make_case(name, likelihood, (2,))
    together = module.step(batch, noise, 100)
    for r in range(2):
        alone = module.select(r).step(batch, noise[r], 100)
        for term, value in alone.loss._asdict().items():
            assert_close(getattr(together.loss, term)[r], value, msg=term)
        for sums, value in alone.statistics.items():
            every = together.statistics[sums]
            assert_close(every if every.shape == value.shape else every[r], value, msg=sums)


def test_replicates_may_have_rows_of_their_own(make_case, name, likelihood):
    module, batch, noise, _ = make_case(name, likelihood, (2,))
    rows = torch.stack([torch.arange(N_ROWS), torch.arange(N_ROWS).flip(0)])
    together = module.step(batch.rows(rows), noise, 100)
    for r in range(2):
        alone = module.select(r).step(batch.rows(rows[r]), noise[r], 100)
        for term, value in alone.loss._asdict().items():
            assert_close(getattr(together.loss, term)[r], value, msg=term)
    module.update(together.statistics, N_ROWS)
    assert all(value.isfinite().all() for value in module.state_dict().values())


# -- closed forms and projections ---------------------------------------------------------------------------


def test_an_update_leaves_finite_parameters_and_lowers_what_the_likelihood_charges(case):
    """Reconstruction and priors of the likelihood's parameters, at the codes that the statistics are of."""
    module, batch, noise, likelihood = case
    seen, decode = [], module.decode
    module.decode = lambda z, features=None: seen.append(decode(z, features)) or seen[-1]
    statistics = module.step(batch, noise, N_ROWS).statistics
    [output] = seen

    def charged():
        reconstruction = -module.log_likelihood(batch, output).mean(-1)
        return (reconstruction + module.penalties(N_ROWS)["noise_penalty"]).detach()

    before = charged()
    module.update(statistics, N_ROWS)
    assert (charged() <= before + 1e-12).all()
    if likelihood == "gaussian":
        assert (charged() < before).all()
        after = charged()
        for factor in (0.99, 1.01):  # no other noise variance is better
            module.noise_variance.mul_(factor)
            assert (charged() > after).all()
            module.noise_variance.div_(factor)
    assert all(value.isfinite().all() for value in module.state_dict().values())


def test_an_update_twice_with_the_same_sums_leaves_the_noise(case):
    module, batch, noise, _ = case
    statistics = module.step(batch, noise, N_ROWS).statistics
    module.update(statistics, N_ROWS)
    once = module.noise_variance.clone()
    module.update(statistics, N_ROWS)
    assert_close(module.noise_variance, once)


def test_a_projection_is_idempotent(plain):
    module = plain.module
    module.project_()
    once = module.clone()
    module.project_()
    assert_close(module.state_dict(), once.state_dict())


# -- what it says -------------------------------------------------------------------------------------------


def test_shapes_are_those_of_the_contract(case, replicates):
    module, batch, noise, _ = case
    features = torch.tensor([4, 1])
    mean, log_variance = module.encode(batch)
    assert mean.shape == log_variance.shape == (*replicates, N_ROWS, N_FACTORS)
    assert module.decode(mean).shape == (*replicates, N_ROWS, N_FEATURES)
    assert_close(module.decode(mean, features), module.decode(mean)[..., features])
    assert module.active().shape == (*replicates, N_FACTORS)
    assert ((module.active() == 0) | (module.active() == 1)).all()
    assert module.support().shape == (*replicates, N_FEATURES, N_FACTORS)
    assert module.support().dtype == torch.bool
    assert module.noise_variance.shape == (*replicates, N_FEATURES)
    assert module.prior_covariance().shape[-2:] == (N_FACTORS, N_FACTORS)
    assert module.log_likelihood(batch, module.decode(mean)).shape == (*replicates, N_ROWS)
    assert module.draw_posterior(batch, (mean, log_variance), noise).shape == mean.shape
    bound = module.bound(batch, noise[..., :3, :].reshape(-1, module.n_noise))
    assert bound.shape == (*replicates, N_ROWS)
    assert bound.dtype == torch.float64
    assert isinstance(module.has_own_threads, bool)


def test_draws_from_the_prior_are_codes(make_case, name, generator):
    module = make_case(name).module.float()
    draws = module.draw_prior(50, generator)
    assert draws.shape == (50, N_FACTORS)
    assert draws.isfinite().all()


def test_features_outside_the_support_of_a_factor_do_not_hear_it(plain, replicates):
    module = plain.module
    if module.mask is not None:
        with torch.no_grad():
            module.mask.weight[..., 0, :1] = 0.0
            module.mask.weight[..., 1] = 0.0
    z = torch.zeros(*replicates, 1, N_FACTORS, dtype=torch.float64)
    for k in range(N_FACTORS):
        moved = z.clone()
        moved[..., k] = 1.3
        changed = (module.decode(moved) != module.decode(z)).squeeze(-2)
        assert not (changed & ~module.support()[..., k]).any()
    assert torch.equal(module.active() != 0, module.support().any(-2))


# -- parameters and copies ----------------------------------------------------------------------------------


def test_the_network_has_neither_the_mask_nor_anything_twice(case):
    module = case.module
    network = [id(p) for p in module.network_parameters()]
    mask = set() if module.mask is None else {id(p) for p in module.mask.parameters()}
    learned = {id(p) for p in module.parameters() if p.requires_grad}
    assert len(network) == len(set(network))
    assert not mask & set(network)
    heads = {id(module.decoder.heads)}
    in_gauge = getattr(module.config, "gauge", False) and not module.config.hidden_sizes
    assert set(network) == learned - mask - (heads if in_gauge else set())


def test_a_clone_is_independent(case):
    module, batch, noise, _ = case
    clone = module.clone()
    assert type(clone) is type(module)
    assert same_state(clone, module)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    with torch.no_grad():
        for value in clone.state_dict().values():
            value.zero_()
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name
    total(module.step(batch, noise, 100).loss).backward()
    assert all(parameter.grad is None for parameter in clone.parameters())


def test_modules_that_are_stacked_are_selected_as_they_were(make_case, name, likelihood):
    modules = [make_case(name, likelihood, seed=seed).module for seed in range(3)]
    batch = make_case(name, likelihood).batch
    stacked = type(modules[0]).stack(modules)
    assert stacked.replicates == (3,)
    for r, module in enumerate(modules):
        again = stacked.select(r)
        assert again.replicates == ()
        assert same_state(again, module)
    some = stacked.select([2, 0])
    assert some.replicates == (2,)
    for got, expected in zip(outputs(some, batch), outputs(stacked, batch), strict=True):
        assert_close(got, expected[[2, 0]])


def test_replicates_that_are_selected_stack_to_what_they_were(make_case, name, likelihood):
    several = make_case(name, likelihood, (2,)).module
    again = type(several).stack([several.select(r) for r in range(2)])
    assert again.replicates == several.replicates
    assert same_state(again, several)


def test_a_module_written_down_and_read_again_is_the_same(make_case, make_observation, name, likelihood):
    module, batch, noise, _ = make_case(name, likelihood)
    module = module.float().eval()
    batch = module.observation.batch(batch.x.float())
    if module.mask is not None:
        module.mask.set_rates(spike_rate=torch.rand(N_FEATURES, 1), slab_rate=0.5)
    again = type(module).from_dict(module.to_dict(), make_observation(SPECS[likelihood])).eval()
    assert again.config == module.config
    assert same_state(again, module)
    for got, expected in zip(outputs(again, batch), outputs(module, batch), strict=True):
        assert torch.equal(got, expected)
    losses = (m.step(batch, noise.float(), 100).loss for m in (again, module))
    assert all(torch.equal(got, expected) for got, expected in zip(*losses, strict=True))
    penalties, expected = again.penalties(100), module.penalties(100)
    assert all(torch.equal(penalties[term], expected[term]) for term in expected)


# -- some of the features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", FACTORISED)
def test_a_thinned_step_is_unbiased(make_case, name, likelihood, replicates):
    """The average over all subsets that `thin` may draw, which it draws alike, is the whole step."""
    module, batch, noise, _ = make_case(name, likelihood, replicates, features_per_step=2)
    full = module.step(batch, noise, 100)
    subsets = [torch.tensor(subset) for subset in combinations(range(N_FEATURES), 2)]
    steps = [module.step(batch._replace(features=subset), noise, 100) for subset in subsets]
    mean = torch.stack([step.loss.reconstruction for step in steps]).mean(0)
    assert_close(mean, full.loss.reconstruction)
    assert all(torch.equal(step.loss.kl, full.loss.kl) for step in steps)
    # Each feature is in a third of the subsets, and its sums are whole where it is.
    for sums, value in full.statistics.items():
        if sums.startswith("likelihood."):
            added = torch.stack([step.statistics[sums] for step in steps]).sum(0)
            assert_close(added, (N_FEATURES - 1) * value, msg=sums)
    expected = gradients(module, full.loss.reconstruction.sum())
    found = gradients(module, torch.stack([step.loss.reconstruction for step in steps]).mean(0).sum())
    for parameter, gradient in expected.items():
        assert_close(found[parameter], gradient, msg=parameter)


def test_a_thinned_batch_names_its_features_in_order(make_case, name, generator):
    module, batch, noise, _ = make_case(name, features_per_step=4)
    drawn = [module.thin(batch, generator) for _ in range(20)]
    for thinned in drawn:
        features = thinned.features.tolist()
        assert len(features) == 4
        assert all(a < b for a, b in pairwise(features))
        assert thinned.x is batch.x
        assert module.step(thinned, noise, 100).loss.reconstruction.isfinite()
    assert len({tuple(thinned.features.tolist()) for thinned in drawn}) > 5
