"""Codes of rows: Newton steps that are exact for linear models, and one set of codes for everybody."""

from __future__ import annotations

import copy
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from sparsevae import OIVAE, VAE, VSC, Run, SparseVAE, read_table
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.identifiability import certify
from sparsevae.identifiability.records import certificate_record
from sparsevae.inspection import codes as codes_of_rows
from sparsevae.inspection.codes import Codes, block_size, spread_rows
from sparsevae.inspection.newton import _expansion, _opposite_draws, newton_steps, posterior
from sparsevae.inspection.outputs import Outputs, average_slopes, expected_rows
from sparsevae.inspection.variance import communalities, variance_shares
from sparsevae.io.record import to_json
from sparsevae.training import RowSource

from ..models import LADDER, fit, make_model
from ..tables import LIKELIHOODS, make_table

WIDE = {"n_factors": 3, "recipe": LADDER, "n_init": 1, "max_epochs": 60}


def whole_batch(X, module):
    return RowSource(X, module.observation).batch(torch.arange(len(X)))


# -- Newton steps -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case():
    """A fitted module in float64 and rows in its units."""

    def make(likelihood="gaussian", **options):
        X = make_table(likelihood)
        model = fit(make_model(likelihood, **options), X)
        module = copy.deepcopy(model.module_).double()
        return module, whole_batch(model.check_table(X), module)

    return make


def test_one_step_finds_the_posterior_of_a_linear_model(case):
    module, batch = case(hidden_sizes=())
    assert module.active().all()
    start = torch.zeros(batch.n_rows, module.n_factors, dtype=torch.float64)
    mean, log_variance = newton_steps(module, batch, start, start, 1)
    loadings = module.mask.weight * module.decoder.heads
    weighted = loadings.mT / module.noise_variance
    precision = torch.linalg.inv(module.prior_covariance()) + weighted @ loadings
    expected = torch.linalg.solve(precision, weighted @ (batch.x - module.decoder.intercept).mT).mT
    assert_close(mean, expected.detach())
    assert_close(log_variance, -precision.diagonal().log().detach().expand_as(mean))


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "poisson", "multinomial", "mixed"])
def test_slopes_and_information_make_the_curvature_of_canonical_likelihoods(case, kind):
    module, batch = case(kind, hidden_sizes=())
    z = 0.3 * torch.randn(batch.n_rows, module.n_factors, generator=torch.Generator().manual_seed(0)).double()
    slopes, score, information = _expansion(module, batch, z, torch.ones_like(z))
    active = torch.nonzero(module.active()).ravel()
    curvature = (slopes * information.unsqueeze(-2)) @ slopes.mT
    gradient = (slopes @ score.unsqueeze(-1)).squeeze(-1)
    for i in range(5):
        one = batch.rows(slice(i, i + 1))

        def log_likelihood(row, one=one):
            return module.log_likelihood(one, module.decode(row.unsqueeze(0))).sum()

        hessian = torch.autograd.functional.hessian(log_likelihood, z[i])[active][:, active]
        assert_close(curvature[i].detach(), -hessian, rtol=1e-6, atol=1e-6)
        row = z[i].detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(log_likelihood(row), row)
        assert_close(gradient[i].detach(), slope[active])


def test_no_row_is_worse_off_and_most_are_better(case, likelihood):
    module, batch = case(likelihood)
    assert module.active().all()
    draws = _opposite_draws(module.n_factors).to(batch.x)
    before = module.encode(batch)
    first = module.bound(batch, draws, before)
    after = module.bound(batch, draws, newton_steps(module, batch, *before, 2))
    assert (after >= first).all()
    assert after.mean() > first.mean()
    assert_close(first, module.bound(batch, draws))


def test_without_active_factors_there_is_nothing_to_do(case):
    module, batch = case()
    with torch.no_grad():
        module.mask.weight.zero_()
    mean, log_variance = module.encode(batch)
    assert_close(newton_steps(module, batch, mean, log_variance, 2), (mean, log_variance))


@pytest.fixture(scope="module")
def wide():
    return make_table(n_features=100)


@pytest.mark.parametrize("estimator", [SparseVAE, VAE, OIVAE])
def test_many_features_make_the_encoder_a_start_only(wide, estimator):
    options = {"recipe": LADDER} if estimator is SparseVAE else {}  # with a spine the encoder is the answer
    model = fit(estimator(2, hidden_sizes=(5,), max_epochs=12, random_state=0, **options), wide)
    batch = whole_batch(wide, model.module_)
    mean, _ = model.module_.encode(batch)
    found = model.transform(wide)
    assert np.abs(found - mean.numpy()).max() > 1e-3
    np.testing.assert_array_equal(found[7:9], model.transform(wide[7:9]))
    np.testing.assert_array_equal(model.score_samples(wide)[7:9], model.score_samples(wide[7:9]))
    draws = model.score_draws().float()
    assert model.score(wide) > float(
        model.module_.bound(batch, draws).mean() + model.module_.observation.log_jacobian()
    )


@pytest.mark.parametrize(
    "model",
    [
        SparseVAE(2, hidden_sizes=(5,), recipe="paper", max_epochs=2),
        VSC(2, hidden_sizes=(5,), max_epochs=2),
    ],
    ids=["literal", "spike and slab"],
)
def test_a_literal_recipe_and_another_posterior_keep_the_encoders_word(wide, model):
    module = fit(model, wide).module_
    batch = whole_batch(wide, module)
    assert_close(posterior(module, batch), module.encode(batch))


def test_rows_are_spread_over_the_table():
    assert spread_rows(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert spread_rows(100, 3).tolist() == [0, 50, 99] or spread_rows(100, 3).tolist() == [0, 49, 99]


# -- one set of codes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[*LIKELIHOODS, "mixed", "wide"])
def known(request):
    """A table, a model fitted to it by `fit_codes`, and the codes that came with the fit.

    The wide one has its codes by Newton steps, and factors that the end of the fit reorders and turns.
    """
    if request.param == "wide":
        X, model = wide_table(), make_model(**WIDE)
    else:
        X, model = make_table(request.param), make_model(request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        codes = model.fit_codes(X)
    assert bool(model.module_.config.input_dropout) == (request.param == "wide")
    assert len(model.active_factors_) > 1
    return X, model, codes


def wide_table(n_samples=90):
    """A hundred and two features, a third of which follow each of three factors."""
    rng = np.random.default_rng(0)
    loadings = np.kron(np.eye(3), np.linspace(0.3, 1.5, 34)) * [[1.0], [-3.0], [2.0]]
    return rng.standard_normal((n_samples, 3)) @ loadings + rng.standard_normal((n_samples, 102))


@pytest.fixture
def encoded(monkeypatch):
    """Every row of which a posterior is found, as bytes; the last one of a block also fills it up."""
    rows = []

    def spy(module, batch):
        seen = [row.numpy().tobytes() for row in batch.x]
        n_filled = sum(1 for _ in itertools.takewhile(lambda row: row == seen[-1], reversed(seen)))
        rows.extend(seen[: len(seen) - n_filled + 1])
        return posterior(module, batch)

    monkeypatch.setattr(codes_of_rows, "posterior", spy)
    return rows


def certificate(model, codes):
    names = {"feature_names": model.feature_names(), "factor_names": model.get_feature_names_out()}
    kept = {
        "resamples": model._resamples(),
        "practical": model.practical_anchors().sum(0),
        "correlation": model.factor_correlation().to_numpy(),
    }
    return to_json(certificate_record(certify(model.module_, codes, **names, **kept)))


def altered(codes):
    """The same codes, but those of the first factor in reverse order of the rows."""
    other = copy.copy(codes)
    other._moments = codes.moments().copy()
    other._moments[:, 0] = other._moments[::-1, 0]
    return other


def test_the_codes_of_a_fit_are_those_of_its_table(known):
    X, model, codes = known
    np.testing.assert_array_equal(codes.moments(), model.codes(X).moments())


def test_transform_and_fit_transform_give_the_codes(known):
    X, model, codes = known
    np.testing.assert_array_equal(model.transform(X), codes.means())
    np.testing.assert_array_equal(model.codes(X).means(), codes.means())
    again = copy.deepcopy(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(again.fit_transform(X), codes.means())


def test_scores_are_bounds_at_the_codes(known):
    X, model, codes = known
    np.testing.assert_array_equal(model.score_samples(X), codes.bounds(model.score_draws()))


def test_effects_and_variance_explained_are_taken_at_the_codes(known):
    _, model, codes = known
    rows = np.arange(codes.X.shape[0])

    def read(z):
        outputs, batch = Outputs(model.module_, torch.as_tensor(z)), codes.batch(rows)
        [effects] = average_slopes(outputs, lambda output: expected_rows(model.module_, output))
        return effects, variance_shares(outputs, batch), communalities(outputs, batch)

    near = {"rtol": 1e-3, "atol": 1e-5}
    kept = model.effects_, model.variance_shares_, model.communalities_
    for found, value in zip(read(codes.means()), kept, strict=True):
        np.testing.assert_allclose(found, value, **near)
    others = read(altered(codes).means())
    assert not np.allclose(others[1], model.variance_shares_, **near)


def test_with_many_features_no_effect_is_taken_at_the_encoders_means():
    X = wide_table()
    model = fit(make_model(**WIDE), X)
    z, _ = model.module_.encode(whole_batch(X, model.module_))
    [effects] = average_slopes(Outputs(model.module_, z), lambda output: expected_rows(model.module_, output))
    assert not np.allclose(effects, model.effects_, rtol=1e-3, atol=1e-5)


def test_the_certificate_is_made_from_the_codes_it_is_given(known, encoded):
    X, model, codes = known
    own = certificate(model, codes)
    assert not encoded
    assert certificate(model, altered(codes)) != own
    assert not encoded
    assert to_json(certificate_record(model.identifiability(codes))) == own
    assert not encoded
    assert to_json(certificate_record(model.identifiability(X))) == own
    assert encoded


def test_evidence_is_made_from_the_codes_it_is_given(known, encoded):
    X, model, codes = known
    own = model.evidence(codes)
    assert not encoded
    assert to_json(own["certificate"]) == certificate(model, codes)
    Z, points = codes.means(), spread_rows(codes.X.shape[0], 120)
    for k, name in zip(model.active_factors_, own["samples"], strict=True):
        values = [row["value"] for row in own["samples"][name]["strongest"]]
        np.testing.assert_allclose(values, np.sort(Z[:, k])[::-1][: len(values)], rtol=1e-3)
        for curve in own["curves"][name]:
            np.testing.assert_allclose(curve["at"], Z[points, k], rtol=1e-3)
    other = model.evidence(altered(codes))
    assert not encoded
    for part in ("ablation", "curves", "samples", "certificate"):
        assert to_json(other[part]) != to_json(own[part]), part
    assert to_json(model.evidence(X)) == to_json(own)


def test_a_codes_object_finds_each_row_once_when_it_is_asked_for(known, encoded):
    _, model, codes = known
    fresh = Codes(model.module_, codes.X)
    some = np.array([5, 3, 3, 17])
    np.testing.assert_array_equal(fresh.moments(some), codes.moments()[some])
    assert len(encoded) == 3
    np.testing.assert_array_equal(fresh.moments(), codes.moments())
    fresh.means(some)
    assert len(encoded) == len(codes.X)


@pytest.mark.parametrize("n_samples", [90, 2100], ids=["read as a whole", "read in part"])
def test_a_fit_and_its_run_encode_each_row_once_and_check_the_table_once(
    tmp_path, encoded, monkeypatch, n_samples
):
    """Effects are read off at most 1,000 rows; the run has the factors of all."""
    pd.DataFrame(wide_table(n_samples)).add_prefix("f").to_csv(tmp_path / "table.csv", index=False)
    table, checks = read_table(tmp_path / "table.csv"), []
    check = SparseVAE._check_table

    def watched(self, X, *others, reset, **options):
        checks.append(reset)
        return check(self, X, *others, reset=reset, **options)

    monkeypatch.setattr(SparseVAE, "_check_table", watched)
    model = make_model(**{**WIDE, "recipe": "default", "max_epochs": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        codes = model.fit_codes(table.for_estimator())
    assert len(encoded) == min(n_samples, 1000)
    run = Run.create(tmp_path / "run", model, table, codes)
    assert len(encoded) == len(set(encoded)) == n_samples
    assert checks == [True]
    factors = pd.read_csv(run.path / "factors.csv", index_col=0).to_numpy()
    np.testing.assert_allclose(factors, codes.means()[:, model.active_factors_], rtol=1e-5)


def test_rows_that_cost_much_come_in_small_blocks():
    """The last block is filled up: 512 rows of a network per feature took most of the time of a small fit."""
    X = np.random.default_rng(0).normal(size=(20, 2000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wide = OIVAE(10, max_epochs=1, random_state=0).fit(X)
        narrow = OIVAE(2, max_epochs=1, random_state=0).fit(X[:, :5])
    assert block_size(wide.module_) == 16
    assert block_size(narrow.module_) == 512
