"""Newton steps from the encoder's posterior: exact for linear models, never worse, row by row."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.estimators.posterior import _expansion, _opposite_draws, newton_steps, posterior
from sparsevae.training import Table


@pytest.fixture(scope="module")
def case(fit, make_model, make_table):
    """A fitted module in float64 and rows in its units."""

    def make(likelihood="gaussian", **options):
        X = make_table(likelihood)
        model = fit(make_model(likelihood, **options), X)
        module = copy.deepcopy(model.module_).double()
        checked = model._check_table(X, reset=False)
        return module, Table(checked, module.observation).rows(torch.arange(len(checked)))

    return make


def test_one_step_finds_the_posterior_of_a_linear_model(case):
    module, x = case(hidden_sizes=())
    assert module.active().all()
    start = torch.zeros(len(x), module.n_factors, dtype=torch.float64)
    mean, log_variance = newton_steps(module, x, start, start, 1)
    loadings = module.mask * module.decoder.heads
    weighted = loadings.mT / module.noise_variance
    precision = torch.linalg.inv(module.prior_covariance()) + weighted @ loadings
    expected = torch.linalg.solve(precision, weighted @ (x - module.decoder.intercept).mT).mT
    assert_close(mean, expected.detach())
    assert_close(log_variance, -precision.diagonal().log().detach().expand_as(mean))


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "poisson", "multinomial", "mixed"])
def test_slopes_and_information_make_the_curvature_of_canonical_likelihoods(case, kind):
    module, x = case(kind, hidden_sizes=())
    z = 0.3 * torch.randn(len(x), module.n_factors, generator=torch.Generator().manual_seed(0)).double()
    slopes, score, information = _expansion(module, x, z, torch.ones_like(z))
    active = torch.nonzero(module.active()).ravel()
    curvature = (slopes * information.unsqueeze(-2)) @ slopes.mT
    gradient = (slopes @ score.unsqueeze(-1)).squeeze(-1)
    for i in range(5):

        def log_likelihood(row, i=i):
            return module.log_likelihood(x[i : i + 1], module.decode(row.unsqueeze(0))).sum()

        hessian = torch.autograd.functional.hessian(log_likelihood, z[i])[active][:, active]
        assert_close(curvature[i].detach(), -hessian, rtol=1e-6, atol=1e-6)
        row = z[i].detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(log_likelihood(row), row)
        assert_close(gradient[i].detach(), slope[active])


def test_no_row_is_worse_off_and_most_are_better(case, likelihood):
    module, x = case(likelihood)
    assert module.active().all()
    draws = _opposite_draws(module.n_factors).to(x)
    before = module.encode(x)
    first = module.bound(x, draws, before)
    after = module.bound(x, draws, newton_steps(module, x, *before, 2))
    assert (after >= first).all()
    assert after.mean() > first.mean()
    assert_close(first, module.bound(x, draws))


def test_without_active_factors_there_is_nothing_to_do(case):
    module, x = case()
    with torch.no_grad():
        module.mask.zero_()
    mean, log_variance = module.encode(x)
    assert_close(newton_steps(module, x, mean, log_variance, 2), (mean, log_variance))


@pytest.fixture(scope="module")
def wide(make_table):
    return make_table(n_features=100)


@pytest.mark.parametrize("estimator", [SparseVAE, VAE, OIVAE])
def test_many_features_make_the_encoder_a_start_only(fit, wide, estimator):
    model = fit(estimator(2, hidden_sizes=(5,), max_epochs=12, random_state=0), wide)
    x = Table(wide, model.module_.observation).rows(torch.arange(len(wide)))
    mean, _ = model.module_.encode(x)
    found = model.transform(wide)
    assert np.abs(found - mean.numpy()).max() > 1e-3
    np.testing.assert_array_equal(found[7:9], model.transform(wide[7:9]))
    np.testing.assert_array_equal(model.score_samples(wide)[7:9], model.score_samples(wide[7:9]))
    draws = model._draws().float()
    assert model.score(wide) > float(
        model.module_.bound(x, draws).mean() + model.module_.observation.log_jacobian()
    )


@pytest.mark.parametrize(
    "model",
    [
        SparseVAE(2, hidden_sizes=(5,), recipe="paper", max_epochs=2),
        VSC(2, hidden_sizes=(5,), max_epochs=2),
    ],
    ids=["literal", "spike and slab"],
)
def test_a_literal_recipe_and_another_posterior_keep_the_encoders_word(fit, wide, model):
    module = fit(model, wide).module_
    x = Table(wide, module.observation).rows(torch.arange(len(wide)))
    assert_close(posterior(module, x), module.encode(x))
