"""Modules as version 0.1 wrote them; whole models that it saved are in ``tests/saved``."""

from __future__ import annotations

from dataclasses import asdict

import pytest
import torch

from sparsevae.metrics.likelihood import CLOSED_FORMS as LIKELIHOODS  # those of version 0.1
from sparsevae.modules import OIVAEModule, SparseVAEModule, VAEModule, VSCModule
from sparsevae.modules.compatibility import upgrade_saved_module

from .helpers import outputs, same_state

KINDS = {
    SparseVAEModule: {"inclusion_prior": (2.0, 5.0)},
    VAEModule: {},
    VSCModule: {"n_pseudo_inputs": 4, "authors_arithmetic": True},
    OIVAEModule: {"groups": (1, 0, 1, 0, 1, 1), "group_width": 2},
}
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def written_by_0_1(module):
    """The form of version 0.1: each module was a sparse VAE with parts switched off, with their tensors."""
    n_features, n_factors = module.n_features, module.n_factors
    nothing = torch.zeros(n_features, n_factors, dtype=torch.bool)
    tensors = {
        "mask": torch.ones(n_features, n_factors),
        "frozen": nothing,
        "known": nothing.clone(),
        "inclusion_rate": torch.full((n_factors,), 0.5),
        "noise_variance": torch.ones(n_features),
        "noise_scale": torch.full((n_features,), 0.05),
        "log_dispersion": torch.zeros(n_features),
        "factor_covariance": torch.eye(n_factors),
        "used": torch.ones(n_factors, dtype=torch.bool),
        "real": torch.ones(n_features, dtype=torch.bool),
    }
    for name, value in module.state_dict().items():
        old = name.removeprefix("mask.").removeprefix("nuisance.")
        tensors["mask" if name == "mask.weight" else old] = value
    config = {"learned_mask": module.mask is not None, "covariance": "identity", "gauge": False}
    config |= asdict(module.config)
    if "authors_arithmetic" in config:
        config["released"] = config.pop("authors_arithmetic")
    if "groups" in config:
        config["groups"] = list(config["groups"])
    rates = {} if module.mask is None else module.mask.rates()
    return {"config": config, "spike_rate": 1.0, "slab_rate": 1.0, **rates, "tensors": tensors}


@every_kind
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_module_of_version_0_1_is_the_same_today(
    make_module, make_observation, make_batch, kind, likelihood
):
    module = make_module(likelihood, kind=kind, **KINDS[kind]).float()
    if kind is SparseVAEModule:
        module.mask.set_rates(spike_rate=torch.rand(6, 1), slab_rate=0.5)
        module.mask.frozen[1, 2] = module.mask.known[0, 0] = True
    saved = upgrade_saved_module(written_by_0_1(module), kind)
    again = kind.from_dict(saved, make_observation(likelihood))
    assert again.config == module.config
    observation = module.observation
    levels = torch.zeros_like(observation.scale)
    units = torch.stack([observation.location, observation.scale, levels]).double()
    observation.set_extra_state(units)  # version 0.1 had units in float32
    assert same_state(again, module)
    batch = make_batch(likelihood)
    batch = module.observation.batch(batch.x.float())
    for got, expected in zip(outputs(again, batch), outputs(module, batch), strict=True):
        assert torch.equal(got, expected)
    if kind is SparseVAEModule:
        assert torch.equal(again.mask.inclusion(), module.mask.inclusion())
        assert again.mask.inclusion_prior == (2.0, 5.0)


@every_kind
def test_what_is_written_today_is_left_alone(make_module, kind):
    saved = make_module(kind=kind, **KINDS[kind]).to_dict()
    again = upgrade_saved_module(saved, kind)
    assert again == saved
    assert again is not saved


def test_models_from_before_the_authors_arithmetic_have_the_right_one(make_module):
    saved = written_by_0_1(make_module(kind=VSCModule, n_pseudo_inputs=4))
    del saved["config"]["released"]
    assert upgrade_saved_module(saved, VSCModule)["config"]["authors_arithmetic"] is False
