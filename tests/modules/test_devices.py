"""No tensor is left on the host: a step on the meta device would meet it, and PyTorch refuses to mix the two.

The meta device has shapes and no values; what it accepts runs on ``cuda`` and ``mps`` without copies between.
"""

from __future__ import annotations

import warnings

import pytest
import torch

from sparsevae import OIVAE, VAE, VSC
from sparsevae.modules import SparseVAEModule
from sparsevae.training import ProximalAdam

from ..models import make_model
from ..tables import LIKELIHOODS, make_table


def on_meta(model, X):
    """A module of the estimator on the meta device, and a batch of rows beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = model._prepare(X)
    module = model._new_module(data, 1) if hasattr(model, "_new_module") else None
    if module is None:
        settings = model._settings(data)
        module = SparseVAEModule(data.source.observation, settings.config, generator=torch.Generator())
        data.calibrate_(module)
    module.to("meta")
    x = torch.empty(9, module.n_features, device="meta")
    return module, module.observation.batch(x)


@pytest.mark.parametrize("likelihood", [*LIKELIHOODS, "mixed"])
def test_a_step_of_the_sparse_vae_needs_nothing_from_the_host(likelihood):
    module, batch = on_meta(make_model(likelihood), make_table(likelihood))
    module.mask.set_rates(spike_rate=10.0, slab_rate=1.0)
    loss, statistics = module.step(batch, torch.empty(9, module.n_noise, device="meta"), 100)
    total = loss.reconstruction + loss.kl + loss.weight_penalty
    assert total.device.type == "meta"
    total.backward()
    assert all(p.grad is None or p.grad.device.type == "meta" for p in module.parameters())
    optimizer = ProximalAdam(module, 100)
    optimizer._clip = lambda: None  # it asks for a value, which is allowed, and which nothing here has
    optimizer.step(3e-3)
    module.update(statistics, 100)
    assert {p.device.type for p in module.parameters()} == {"meta"}


@pytest.mark.parametrize("kind", [VAE, VSC, OIVAE])
def test_a_step_of_the_others_needs_nothing_from_the_host(kind):
    model = kind(n_factors=2, hidden_sizes=(5,), max_epochs=2, random_state=0)
    module, batch = on_meta(model, make_table())
    loss, _ = module.step(batch, torch.empty(9, module.n_noise, device="meta"), 100)
    (loss.reconstruction + loss.kl + loss.weight_penalty).backward()
    assert loss.reconstruction.device.type == "meta"


def test_a_tensor_left_on_the_host_would_be_found():
    module, batch = on_meta(make_model(), make_table())
    module.observation.input_location = torch.zeros(7)
    with pytest.raises(RuntimeError, match=r"meta|device"):
        module.observation.batch(batch.x)
