"""What a report takes from the data, against decoding everything anew for each factor."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.inspection.codes import fixed_draws
from sparsevae.io.record import to_json
from sparsevae.report import gather_evidence
from sparsevae.training import RowSource

LOADINGS = np.array([[0.9, 0, 0], [-0.8, 0, 0], [0.6, 0.5, 0], [0, 0.9, 0], [0, 0.7, 0.4], [0, 0, 0.8]])


@pytest.fixture(scope="module", params=["gaussian", "multinomial", "poisson"])
def looked_at(request, linear_model):
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((80, 3))
    signal = factors @ LOADINGS.T
    if request.param == "gaussian":
        X = signal + 0.4 * rng.standard_normal(signal.shape)
    else:
        X = rng.poisson(np.exp(0.5 * signal + 1.0))
    model = linear_model(X, factors, LOADINGS, likelihood=request.param)
    return model, X, model.evidence(X)


@torch.no_grad()
def slow_cost(model, X, k):
    """The definition, word by word: all features are decoded again without the factor."""
    module = model.module_
    batch = RowSource(model.check_table(X), module.observation).batch(torch.arange(len(X)))
    mean, log_variance = module.encode(batch)
    draw = fixed_draws(module.n_noise)[:1].float()
    costs = []
    for noise in (draw, -draw):
        z = mean + torch.exp(0.5 * log_variance) * noise
        without = z.clone()
        without[:, k] = 0.0
        with_it, without_it = (module.log_likelihood(batch, module.decode(at)) for at in (z, without))
        costs.append((with_it - without_it).mean().item())
    return np.mean(costs)


def test_the_cost_of_a_factor_is_what_holding_it_at_its_mean_loses(looked_at):
    model, X, evidence = looked_at
    for k, (name, ablation) in zip(model.active_factors_, evidence["ablation"].items(), strict=True):
        assert name == model.get_feature_names_out()[k]
        assert ablation["cost"] == pytest.approx(slow_cost(model, X, k), rel=2e-3)


def test_curves_are_expected_rows_with_the_other_factors_at_their_mean(looked_at):
    model, _, evidence = looked_at
    for k, name in zip(model.active_factors_, evidence["curves"], strict=True):
        for curve in evidence["curves"][name]:
            z = torch.zeros(len(curve["grid"]), model.n_factors)
            z[:, k] = torch.as_tensor(curve["grid"])
            expected = model._expected(z)[:, curve["feature"]].numpy()
            np.testing.assert_allclose(curve["curve"], expected, rtol=5e-3, atol=5e-3)


def test_the_old_name_of_it_warns_and_gives_the_same(looked_at):
    model, X, _ = looked_at
    options = {"samples": [f"row {i}" for i in range(len(X))], "table_name": "t.csv", "seen_in_fit": False}
    with pytest.warns(DeprecationWarning, match=r"is deprecated: call model.evidence\(X, ...\) instead"):
        found = gather_evidence(model, X, **options)
    assert to_json(found) == to_json(model.evidence(X, **options))
