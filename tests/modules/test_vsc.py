"""Variational sparse coding: the objective by hand, gates, warm-up, prior, and that everything is learned."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.testing import assert_close

from sparsevae.divergences import kl_spike_slab
from sparsevae.modules import VSCConfig, VSCModule
from sparsevae.modules.vsc import SpikeSlab, _authors_kl

FLOAT64 = torch.float64


@pytest.fixture
def make_vsc(make_observation):
    def make(likelihood="gaussian", n_factors=3, hidden_sizes=(5, 4), *, replicates=(), seed=0, **options):
        options = {"n_pseudo_inputs": 4, **options}
        config = VSCConfig(n_factors=n_factors, hidden_sizes=hidden_sizes, **options)
        generator = torch.Generator().manual_seed(seed)
        observation = make_observation(likelihood)
        return VSCModule(observation, config, replicates=replicates, generator=generator).double()

    return make


def noise_of(module, n_samples=8, seed=2):
    generator = torch.Generator().manual_seed(seed)
    shape = (*module.replicates, n_samples, module.n_noise)
    return torch.randn(shape, generator=generator, dtype=FLOAT64)


def divergence_by_hand(posterior, prior):
    slab = kl_divergence(
        Normal(posterior.mean, torch.exp(0.5 * posterior.log_variance)),
        Normal(prior.mean, torch.exp(0.5 * prior.log_variance)),
    )
    gates = kl_divergence(Bernoulli(logits=posterior.logits), Bernoulli(logits=prior.logits))
    return (torch.sigmoid(posterior.logits) * slab + gates).sum(-1)


@pytest.mark.parametrize("likelihood", ["gaussian", "multinomial", "bernoulli", "negative_binomial"])
def test_every_parameter_receives_a_gradient(make_vsc, make_batch, likelihood):
    module = make_vsc(likelihood, warmup_epochs=5)
    loss = module.step(make_batch(likelihood), noise_of(module), 100).loss
    sum(loss).backward()
    without = [n for n, p in module.named_parameters() if p.requires_grad and not (p.grad != 0).any()]
    assert without == []
    assert {"pseudo_inputs", "selector_weight", "selector_bias"} <= {
        n for n, p in module.named_parameters() if p.requires_grad
    }


def test_the_objective_is_that_of_its_formula(make_vsc, make_batch):
    module = make_vsc(sparsity=0.2).eval()
    batch, noise = make_batch(), noise_of(module)
    posterior, prior = module.posterior(batch), module.prior()
    share = torch.softmax(batch.inputs @ module.selector_weight.T + module.selector_bias, -1)
    divergence = torch.zeros(8, dtype=FLOAT64)
    for u in range(4):
        one = SpikeSlab(*(part[u].expand(8, -1) for part in prior))
        divergence = divergence + share[:, u] * divergence_by_hand(posterior, one)
    gamma = (share @ torch.sigmoid(prior.logits)).mean(-1)
    divergence = divergence + 3 * kl_divergence(Bernoulli(gamma), Bernoulli(torch.full_like(gamma, 0.2)))

    z = module.draw(posterior, noise)
    log_prob = Normal(module.decode(z), module.noise_variance.sqrt()).log_prob(batch.x).sum(-1)

    loss = module.step(batch, noise, 100).loss
    assert_close(loss.kl, divergence.mean())
    assert_close(loss.reconstruction, -log_prob.mean())
    assert module.penalties(100)["mask_penalty"] == loss.weight_penalty == 0


def test_gates_are_open_in_their_share_of_draws_and_shut_exactly(make_vsc):
    module = make_vsc().eval()
    logits = torch.tensor([-1.0, 0.0, 2.0], dtype=FLOAT64)
    posterior = SpikeSlab(torch.ones(3, dtype=FLOAT64), torch.zeros(3, dtype=FLOAT64), logits)
    z = module.draw(posterior, noise_of(module, 20_000))
    assert_close((z != 0).double().mean(0), torch.sigmoid(logits), atol=0.015, rtol=0)


def test_moments_are_those_of_the_draws(make_vsc):
    module = make_vsc().eval()
    generator = torch.Generator().manual_seed(5)
    posterior = SpikeSlab(*(torch.randn(3, generator=generator, dtype=FLOAT64) for _ in range(3)))
    z = module.draw(posterior, noise_of(module, 100_000))
    mean, log_variance = posterior.moments()
    assert_close(z.mean(0), mean, atol=0.02, rtol=0.02)
    assert_close(z.var(0), log_variance.exp(), atol=0.02, rtol=0.03)


def test_the_relaxed_gate_steepens_while_warming_up(make_vsc, make_batch):
    module = make_vsc(warmup_epochs=4).train()
    statistics = module.step(make_batch(), noise_of(module), 100).statistics
    posterior = SpikeSlab(*(torch.zeros(3, dtype=FLOAT64) + value for value in (1.0, -20.0, 0.0)))
    noise = noise_of(module, 500)
    softness = []
    for _ in range(6):
        z = module.draw(posterior, noise)
        softness.append(float(torch.minimum(z, 1 - z).abs().mean()))
        module.update(statistics, 100)
    assert all(a > b for a, b in pairwise(softness[:4]))
    assert softness[3:] == [softness[3]] * 3
    assert softness[-1] < 0.02


def test_slabs_begin_near_the_standard_normal_and_end_as_their_own(make_vsc, make_batch):
    module, batch = make_vsc(warmup_epochs=10), make_batch()
    own = make_vsc().posterior(batch)
    first = module.posterior(batch)
    assert_close(first.mean, 0.1 * own.mean)
    assert_close(first.log_variance, 0.1 * own.log_variance)
    assert_close(first.logits, own.logits)
    statistics = module.step(batch, noise_of(module), 100).statistics
    for _ in range(12):
        module.update(statistics, 100)
    assert_close(module.posterior(batch).mean, own.mean)
    assert float(module.warmth) == 1.0


def test_slabs_may_be_their_own_from_the_start(make_vsc, make_batch):
    batch = make_batch()
    assert_close(make_vsc(warmup_epochs=10, warm_slabs=False).posterior(batch), make_vsc().posterior(batch))


def test_the_prior_shares_are_the_average_selection(make_vsc, make_batch):
    module, batch = make_vsc(), make_batch()
    parts = [module.step(part, noise_of(module, part.n_rows), 8).statistics for part in batch.split(5)]
    module.update(parts[0] + parts[1], 8)
    assert_close(module.pseudo_share, module.selector(batch).exp().mean(0), atol=1e-6, rtol=1e-6)


def test_the_bound_is_a_lower_bound_on_the_mixture_and_its_choice_counts(make_vsc, make_batch):
    """Importance weights under p(z) = Σ π q(z | x_u) give log p(x) itself, which the bound stays below."""
    module, batch = make_vsc().eval(), make_batch()
    with torch.no_grad():
        module.pseudo_share.copy_(torch.tensor([0.1, 0.2, 0.3, 0.4]))
        draws = noise_of(module, 4000)
        elbo = module.bound(batch, draws)
        prior = module.prior()
        generator = torch.Generator().manual_seed(3)
        which = torch.multinomial(module.pseudo_share, 20_000, replacement=True, generator=generator)
        z = module.draw(SpikeSlab(*(part[which] for part in prior)), noise_of(module, 20_000))
        output = module.decode(z)
        rows = (batch.rows(slice(i, i + 1)).repeated(20_000) for i in range(batch.n_rows))
        terms = torch.stack([module.log_likelihood(row, output) for row in rows])
        evidence = torch.logsumexp(terms, 1) - torch.log(torch.tensor(20_000.0))
    assert (elbo < evidence + 0.05).all()


def test_factors_drawn_from_the_prior_are_mostly_zero_where_gates_are_shut(make_vsc):
    module = make_vsc().eval()
    with torch.no_grad():
        module.encoder.gate_bias.copy_(torch.tensor([-30.0, 30.0, -30.0]))
        module.encoder.gate_weight.zero_()
    z = module.draw_prior(50, torch.Generator().manual_seed(0))
    assert z.shape == (50, 3)
    assert (z[:, [0, 2]] == 0).all()
    assert (z[:, 1] != 0).all()


def test_replicates_are_separate_models(make_vsc, make_batch):
    module, batch = make_vsc(replicates=(2,)), make_batch()
    noise = noise_of(module)
    together = module.step(batch, noise, 100).loss
    for r in range(2):
        alone = make_vsc(seed=1)
        state = module.state_dict()
        alone.load_state_dict(
            {name: state[name][r] if state[name].shape != value.shape else state[name]
             for name, value in alone.state_dict().items()}
        )  # fmt: skip
        one = alone.step(batch, noise[r], 100).loss
        assert_close(together.reconstruction[r], one.reconstruction)
        assert_close(together.kl[r], one.kl)


def test_the_authors_arithmetic_is_kept_apart(make_vsc, make_batch):
    module = make_vsc(authors_arithmetic=True)
    sum(module.step(make_batch(), noise_of(module), 100).loss).backward()
    assert module.pseudo_inputs.grad is None
    assert module.selector_weight.grad is None
    assert all(p.grad is not None and (p.grad != 0).any() for p in module.parameters() if p.requires_grad)


@pytest.mark.parametrize("variance, authors", [(2.0, -0.13), (100.0, -0.33)])
def test_the_authors_divergence_can_be_negative_where_the_right_one_is_not(variance, authors):
    zero = torch.zeros(1, 1, dtype=FLOAT64)
    gamma = torch.logit(torch.full((1, 1), 0.05, dtype=FLOAT64))
    posterior, prior = SpikeSlab(zero, zero, gamma), SpikeSlab(zero, zero + variance, gamma)
    prior = prior._replace(log_variance=prior.log_variance.log())
    assert _authors_kl(*posterior, *prior).item() == pytest.approx(authors, abs=0.01)
    assert kl_spike_slab(*posterior, *prior).item() > 0


def test_the_authors_penalty_takes_each_pseudo_input_by_itself_and_counts_features(make_vsc, make_batch):
    module, batch = make_vsc(authors_arithmetic=True, sparsity=0.2), make_batch()
    prior, log_share = module.prior(), module.selector(batch)
    gamma = torch.sigmoid(prior.logits).mean(-1)
    each = kl_divergence(Bernoulli(gamma), Bernoulli(torch.full_like(gamma, 0.2)))
    expected = module.n_features * (log_share.exp() * each).sum(-1)
    assert_close(module._sparsity_penalty(prior, log_share), expected)


def test_a_gate_of_the_authors_is_open_with_probability_one_from_zero_on(make_vsc, make_batch):
    module, batch = make_vsc(authors_arithmetic=True), make_batch()
    encoder = module.encoder
    a = encoder.hidden(batch.inputs) @ encoder.gate_weight.mT + encoder.gate_bias
    gamma = torch.sigmoid(module.posterior(batch).logits)
    assert (a > 0).any()
    assert (a < 0).any()
    assert_close(gamma, torch.minimum(a.exp(), torch.ones_like(a)), atol=2e-6, rtol=0)


def test_moments_of_soft_gates_are_those_of_many_draws():
    size = (200_000, 3)
    generator = torch.Generator().manual_seed(0)
    gamma = torch.tensor([0.02, 0.5, 0.97], dtype=FLOAT64)
    posterior = SpikeSlab(
        *(part.expand(size) for part in (gamma * 2 - 1, torch.log(gamma + 0.5), torch.logit(gamma)))
    )
    uniform = torch.rand(size, generator=generator, dtype=FLOAT64)
    slab = posterior.mean + torch.exp(0.5 * posterior.log_variance) * torch.randn(
        size, generator=generator, dtype=FLOAT64
    )
    z = torch.sigmoid(10.0 * (uniform - 1 + gamma)) * slab
    mean, log_variance = (moment[0] for moment in posterior.relaxed_moments(10.0))
    assert_close(z.mean(0), mean, atol=0.01, rtol=0)
    assert_close(z.var(0), log_variance.exp(), atol=0.01, rtol=0.01)


def test_gates_of_the_authors_stay_soft_when_codes_are_read_and_the_right_ones_do_not(make_vsc, make_batch):
    right, authors = make_vsc().eval(), make_vsc(authors_arithmetic=True).eval()
    with torch.no_grad():
        right.encoder.gate_bias.fill_(-1.0)
        authors.encoder.gate_bias.fill_(-1.0)
        hard, soft = (m.draw(m.posterior(make_batch()), noise_of(right)) for m in (right, authors))
        relaxed = authors.posterior(make_batch()).relaxed_moments(10.0)
        assert_close(authors.encode(make_batch()), relaxed)
    assert (hard == 0).any()
    assert (soft != 0).all()


def test_a_score_is_a_bound_whatever_the_objective_was(make_vsc, make_batch):
    right, authors = make_vsc().eval(), make_vsc(authors_arithmetic=True).eval()
    with torch.no_grad():  # of one γ in both forms
        for module in (right, authors):
            module.encoder.gate_weight.zero_()
        right.encoder.gate_bias.fill_(torch.logit(torch.tensor(0.3)))
        authors.encoder.gate_bias.fill_(torch.log(torch.tensor(0.3)))
    draws = noise_of(right, 5)
    assert_close(authors.bound(make_batch(), draws), right.bound(make_batch(), draws))


def test_a_module_is_rebuilt_from_its_configuration(make_vsc, make_observation, make_batch):
    module = make_vsc(warmup_epochs=3, sparsity=0.1)
    module.update(module.step(make_batch(), noise_of(module), 10).statistics, 10)
    copy = VSCModule(make_observation(), module.config, generator=torch.Generator()).double()
    copy.load_state_dict(module.state_dict())
    assert_close(copy.posterior(make_batch()), module.posterior(make_batch()))
