"""The plain VAE: one pass for all features, factors that are switched off, the gauge."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from sparsevae.divergences import kl_standard_normal
from sparsevae.modules import VAEModule

from .helpers import decode_by_hand

DEPTHS = pytest.mark.parametrize("hidden_sizes", [(), (5,), (5, 4), (5, 4, 3)])


@DEPTHS
def test_a_plain_vae_has_no_mask_penalty_and_one_pass_for_all_features(
    make_module, make_batch, make_noise, hidden_sizes
):
    module, batch = make_module(hidden_sizes=hidden_sizes, kind=VAEModule), make_batch()
    assert module.mask is None
    assert module.penalties(50)["mask_penalty"] == 0
    z = make_noise(seed=5)
    assert_close(module.decode(z), decode_by_hand(module, z))
    module.used[1] = False
    assert (module.encode(batch)[0][:, 1] == 0).all()
    assert_close(module.decode(z), module.decode(z * torch.tensor([1.0, 0.0, 1.0])))


def test_factors_that_are_not_used_have_the_prior_as_posterior(make_module, make_batch):
    module = make_module(kind=VAEModule)
    module.used[1] = False
    mean, log_variance = module.encode(make_batch())
    assert (mean[:, 1] == 0).all()
    assert (log_variance[:, 1] == 0).all()
    assert module.active().tolist() == [1.0, 0.0, 1.0]
    assert module.support().all()


def test_the_prior_is_standard_normal(make_module, make_batch, make_noise, generator):
    module, batch = make_module(kind=VAEModule), make_batch()
    mean, log_variance = module.encode(batch)
    loss = module.step(batch, make_noise(), 9).loss
    assert_close(loss.kl, kl_standard_normal(mean, log_variance).mean())
    assert torch.equal(module.prior_covariance(), torch.eye(3, dtype=torch.float64))
    draws = module.draw_prior(200_000, generator)
    assert_close(torch.cov(draws.T), torch.eye(3), atol=0.02, rtol=0)


@DEPTHS
def test_a_projection_fixes_the_norms_if_the_gauge_is_asked_for_and_else_nothing(make_module, hidden_sizes):
    for gauge in (True, False):
        module = make_module(hidden_sizes=hidden_sizes, kind=VAEModule, gauge=gauge)
        expected = module.clone().decoder
        if gauge:
            expected.fix_gauge_()
        module.project_()
        assert_close(module.decoder.state_dict(), expected.state_dict())


def test_a_new_module_is_in_the_gauge(make_observation, generator):
    config = VAEModule.config_class(n_factors=3, hidden_sizes=(5, 4), gauge=True)
    module = VAEModule(make_observation(), config, generator=generator)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    module.project_()
    assert_close(module.state_dict(), before)


@pytest.mark.parametrize("gauge", [True, False])
@pytest.mark.parametrize("hidden_sizes", [(), (5,)])
def test_heads_that_the_gauge_fixes_are_left_to_it(make_module, hidden_sizes, gauge):
    module = make_module(hidden_sizes=hidden_sizes, kind=VAEModule, gauge=gauge)
    moved = any(p is module.decoder.heads for p in module.network_parameters())
    assert moved == (not gauge or bool(hidden_sizes))
