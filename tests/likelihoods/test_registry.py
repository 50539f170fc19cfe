"""How a user names likelihoods, and a likelihood that comes from outside."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE
from sparsevae.exceptions import ConvergenceWarning, ParameterError
from sparsevae.likelihoods import LIKELIHOODS, Factorised, Gaussian, Mixed, get_likelihood
from sparsevae.likelihoods.base import per_feature


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_name_gives_its_likelihood(name):
    likelihood = get_likelihood(name, 4)
    assert likelihood.name == name
    assert get_likelihood(likelihood, 4) is likelihood


@pytest.mark.parametrize(
    "columns",
    [[0, 2], (0, 2), np.array([0, 2]), slice(0, 3, 2), [True, False, True, False], range(0, 4, 2)],
    ids=["list", "tuple", "array", "slice", "boolean", "range"],
)
def test_a_dict_gives_each_likelihood_its_columns(columns):
    likelihood = get_likelihood({"poisson": columns, Gaussian(): [3, 1]}, 4)
    parts = {part.name: list(c) for part, c in likelihood.split(4)}
    assert parts == {"poisson": [0, 2], "gaussian": [3, 1]}


@pytest.mark.parametrize(
    "spec, message",
    [
        ("softmax", "got 'softmax'. The paper's softmax loss is 'multinomial'"),
        ("Normal", "Real values with normal noise are 'gaussian'"),
        ("cauchy", "one of 'gaussian', 'multinomial', .*; got 'cauchy'. Pass one of these names"),
        (None, "got None"),
        (3, "got 3"),
        ({"poisson": [0, 1], "softmax": [2]}, "got 'softmax'"),
        ({"poisson": [0, 1]}, "each of the 3 columns exactly once; got 2 columns"),
        ({"poisson": [0, 1], "gaussian": [1, 2]}, "every column exactly once; got .*'poisson': \\[0, 1\\]"),
        ({"poisson": [0, 3], "gaussian": [1, 2]}, "table of 3 columns; got \\[0, 3\\]"),
        ({"poisson": ["age"], "gaussian": [1, 2]}, "name columns of the table; got 'age'"),
        ({"poisson": [0.5], "gaussian": [1, 2]}, "list of indices, a slice or a boolean mask; got \\[0.5\\]"),
        ({}, "every column exactly once"),
    ],
)
def test_an_unusable_specification_is_refused_with_a_remedy(spec, message):
    with pytest.raises(ValueError, match=message):
        get_likelihood(spec, 3)


def test_columns_of_a_likelihood_are_named_or_counted():
    names = ["a", "b", "c", "d"]
    wanted = {"poisson": "b", "bernoulli": ["d", 2], "gaussian": slice(0, 1)}
    parts = {part.name: columns for part, columns in get_likelihood(wanted, 4, names).split(4)}
    assert {name: np.arange(4)[columns].tolist() for name, columns in parts.items()} == {
        "poisson": [1],
        "bernoulli": [3, 2],
        "gaussian": [0],
    }
    assert get_likelihood("poisson", 4).name == "poisson"
    with pytest.raises(ParameterError, match="Expected likelihood to name columns of the table; got 'e'"):
        get_likelihood({"poisson": ["a", "e"], "gaussian": ["b", "c", "d"]}, 4, names)


def test_an_object_for_another_table_is_refused():
    with pytest.raises(ValueError, match="each of the 4 columns"):
        get_likelihood(Mixed([(Gaussian(), [0, 1])]), 4)


# -- a likelihood from outside the package ------------------------------------------------------------------

N_SAMPLES, N_FEATURES = 80, 6
SHORT = {"n_factors": 2, "max_epochs": 6, "hidden_sizes": (5,), "random_state": 0}


class Laplace(Factorised):
    """Real values with Laplace noise, whose width has a closed form: the mean absolute residual."""

    name = "toy"
    support = "real"

    def log_density(self, x, output, parameters, size):
        width = self._width(parameters)
        return -(x - output).abs() / width - torch.log(2.0 * width)

    def mean(self, output, *, size=None, total=None):
        return output

    def sample(self, output, parameters, *, size=None, total=None, generator=None):
        uniform = torch.rand(output.shape, generator=generator, dtype=output.dtype) - 0.5
        return output - self._width(parameters) * uniform.sign() * torch.log1p(-2.0 * uniform.abs())

    def initial_output(self, feature_mean):
        return feature_mean

    def information(self, feature_mean, parameters):
        return (0.0 * feature_mean + 1.0) / self._width(parameters).squeeze(-2).square()

    def initial_parameters(self, n_features, replicates=()):
        return {"width": torch.ones(*replicates, n_features)}

    def statistics(self, x, output, observed=None):
        observed = torch.ones_like(x, dtype=torch.bool) if observed is None else observed
        sizes = torch.where(observed, (x - output).abs(), 0.0)
        return {"sizes": sizes.sum(-2), "seen": observed.sum(-2)}

    def update(self, parameters, sums, n_samples):
        width = (sums["sizes"] / sums["seen"]).clamp_min(1e-3)
        return {"width": torch.where(sums["seen"] > 0, width, parameters["width"])}

    def _width(self, parameters):
        return per_feature(parameters, "width", self)


class LearnedLaplace(Laplace):
    """The same, with a width that follows gradients instead."""

    def initial_parameters(self, n_features, replicates=()):
        return {"log_width": nn.Parameter(torch.zeros(*replicates, n_features))}

    def statistics(self, x, output, observed=None):
        return {}

    def update(self, parameters, sums, n_samples):
        return {}

    def _width(self, parameters):
        return per_feature(parameters, "log_width", self).exp()


@pytest.fixture(params=[Laplace, LearnedLaplace], ids=["closed form", "gradient"])
def toy(request):
    """A name for a likelihood that the package does not know of, for one test."""
    LIKELIHOODS["toy"] = request.param
    yield "toy"
    del LIKELIHOODS["toy"]


@pytest.fixture(scope="module")
def X():
    """Two factors, Laplace noise of different widths; positive, for a factorisation."""
    rng = np.random.default_rng(0)
    signal = np.abs(rng.normal(size=(N_SAMPLES, 2)))[:, [0, 0, 0, 1, 1, 1]]
    noise = rng.laplace(scale=[0.1, 0.2, 0.3, 0.1, 0.2, 0.3], size=(N_SAMPLES, N_FEATURES))
    return np.abs(5.0 + signal + noise)


def fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few epochs do not settle
        return model.fit(X)


def moved(model, columns=slice(None)):
    """Whether the toy's parameter has left its first value in these columns."""
    values = model.module_.nuisance.values()
    width = values["width"] if "width" in values else values["log_width"].exp()
    assert width.isfinite().all()
    assert (width > 0).all()
    return bool(((width[columns] - 1.0).abs() > 1e-4).all())


ESTIMATORS = {
    "SparseVAE": (SparseVAE, {"n_init": 1}),
    "VAE": (VAE, {}),
    "VSC": (VSC, {}),
    "OIVAE": (OIVAE, {}),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_fits_scores_samples_and_saves_it(toy, name, X, tmp_path):
    kind, options = ESTIMATORS[name]
    model = fit(kind(likelihood=toy, **SHORT, **options), X)
    assert moved(model)
    assert isinstance(model.module_.observation.likelihood, LIKELIHOODS[toy])
    Z, rows = model.transform(X), model.sample(7, random_state=0)
    assert Z.shape == (N_SAMPLES, 2)
    assert rows.shape == (7, N_FEATURES)
    assert np.isfinite(Z).all()
    assert np.isfinite(rows).all()
    assert np.isfinite(model.score(X))

    again = kind.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(X), Z)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.sample(7, random_state=0), rows)
    for parameter, value in model.module_.nuisance.values().items():
        assert torch.equal(again.module_.nuisance.values()[parameter], value)


def test_its_score_is_its_own_density(toy, X):
    """At posterior means and without a charge for codes: the density in the units of the table."""
    model = fit(VAE(likelihood=toy, **SHORT), X)
    values = model.module_.nuisance.values()
    width = (values["width"] if "width" in values else values["log_width"].exp()).numpy()
    width = width * model.module_.observation.scale.numpy()
    expected = (-np.abs(X - model.reconstruct(X)) / width - np.log(2 * width)).sum(1)
    assert np.corrcoef(model.score_samples(X), expected)[0, 1] > 0.9
    assert model.score(X) < expected.mean()


def test_a_factorisation_is_scored_with_it(toy, X):
    model = fit(NMF(n_factors=2, likelihood=toy, random_state=0), X)
    assert np.isfinite(model.score_samples(X)).all()
    assert model.score(X) > model.score(X[:, ::-1].copy())


def test_it_has_columns_of_a_mixed_table(toy, X, tmp_path):
    spec = {toy: [0, 2, 4], "gaussian": [1, 3, 5]}
    model = fit(SparseVAE(likelihood=spec, n_init=1, **SHORT), X)
    assert moved(model, [0, 2, 4])
    assert not moved(model, [1, 3, 5])  # of columns that lack it
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.sample(7, random_state=0)).all()
    assert (model.noise_variance_[[1, 3, 5]] > 0).all()
    again = SparseVAE.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


@pytest.mark.parametrize("columns", [range(N_FEATURES), [0, 2, 4]], ids=["all", "mixed"])
def test_it_may_see_some_of_its_features_in_a_step(toy, columns, X):
    """Of a mixed table a step may see columns of one kind alone."""
    others = [j for j in range(N_FEATURES) if j not in columns]
    spec = {toy: list(columns), "gaussian": others} if others else toy
    model = fit(SparseVAE(likelihood=spec, n_init=1, features_per_step=2, batch_size=10, **SHORT), X)
    assert moved(model, list(columns))
    assert np.isfinite(model.score(X))


def test_it_is_gone_once_its_line_is(X):
    assert "toy" not in LIKELIHOODS
    with pytest.raises(ValueError, match="got 'toy'"):
        SparseVAE(2, likelihood="toy").fit(X)
