"""One contract for every estimator: a dictionary of small instances, and claims that hold for all of them.

scikit-learn's own checks of the same estimators are in `test_sklearn_checks.py`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.training import RowSource

from ..models import LADDER

# A few epochs on few rows do not settle, and say so; tables with empty rows or constant features do, too.
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::sparsevae.exceptions.DataWarning"),
]

TINY = {"n_factors": 2, "max_epochs": 4, "hidden_sizes": (6, 5), "random_state": 0}
ESTIMATORS = {
    "SparseVAE": SparseVAE(**TINY, n_init=1),
    "SparseVAE, linear": SparseVAE(**{**TINY, "hidden_sizes": (), "max_epochs": 60}),
    "SparseVAE, authors": SparseVAE(**TINY, recipe="authors"),
    "VAE": VAE(**TINY),
    "VAE, linear": VAE(**{**TINY, "hidden_sizes": ()}),
    "VAE, two starts": VAE(**TINY, n_init=2),
    "beta-VAE": VAE(**TINY, beta=4.0),
    "VAE, paper": VAE(**TINY, recipe="paper"),
    "VAE, authors": VAE(**TINY, recipe="authors"),
    "VSC": VSC(**TINY, n_pseudo_inputs=3),
    "VSC, paper": VSC(**TINY, recipe="paper", sparsity=0.5),
    "VSC, authors": VSC(**TINY, recipe="authors"),
    "OIVAE": OIVAE(**TINY),
    "OIVAE, groups": OIVAE(**TINY, groups=[0, 0, 1, 1, 1, 2], group_width=2),
    "OIVAE, linear": OIVAE(**{**TINY, "hidden_sizes": ()}, recipe="paper"),
    "OIVAE, authors": OIVAE(**TINY, recipe="authors", penalty=0.01),
    "NMF": NMF(n_factors=2, random_state=0),
    "NMF, unpenalised": NMF(n_factors=2, alpha=0.0, random_state=0),
}
NEURAL = [name for name in ESTIMATORS if not name.startswith("NMF")]
MASKED = [name for name in ESTIMATORS if name.split(",")[0] in ("SparseVAE", "OIVAE", "NMF")]
LIKELIHOODS = ["gaussian", "multinomial", "bernoulli", "poisson", "negative_binomial", "mixed"]

every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
every_network = pytest.mark.parametrize("name", NEURAL)
every_mask = pytest.mark.parametrize("name", MASKED)


def new(name, **parameters):
    return clone(ESTIMATORS[name]).set_params(**parameters)


def table(likelihood="gaussian", n_samples=40, n_features=6, seed=0):
    """Non-negative numbers of the right kind: a factor behind the first half, another behind the rest."""
    rng = np.random.default_rng(seed)
    signal = rng.standard_normal((n_samples, 2))[:, 2 * np.arange(n_features) // n_features]
    signal = signal + 0.3 * rng.standard_normal((n_samples, n_features))
    if likelihood == "gaussian":
        return np.exp(0.5 * signal)
    if likelihood == "bernoulli":
        return (signal > 0).astype(float)
    return rng.poisson(np.exp(1.0 + 0.5 * signal)).astype(float)


def mixed(n_samples=40, seed=0):
    columns = {"gaussian": slice(0, 2), "bernoulli": slice(2, 4), "poisson": slice(4, 6)}
    X = np.hstack([table(kind, n_samples, seed=seed)[:, where] for kind, where in columns.items()])
    return X, {kind: list(range(where.start, where.stop)) for kind, where in columns.items()}


@pytest.fixture(scope="module")
def fitted():
    """Each estimator fitted once to a table of real values, for the tests that only look."""
    store = {}

    def get(name):
        if name not in store:
            store[name] = new(name).fit(table())
        return store[name]

    return get


# -- one fit -------------------------------------------------------------------------------------------------


@every_estimator
def test_the_same_seed_gives_the_same_fit(name, fitted):
    again = new(name).fit(table())
    np.testing.assert_array_equal(again.transform(table()), fitted(name).transform(table()))
    np.testing.assert_array_equal(again.score_samples(table()), fitted(name).score_samples(table()))


@every_network
def test_another_seed_gives_another_fit(name, fitted):
    other = new(name, random_state=1).fit(table())
    weights, others = (list(model.module_.encoder.parameters()) for model in (fitted(name), other))
    assert not all(torch.equal(a, b) for a, b in zip(weights, others, strict=True))


@every_estimator
def test_global_generators_are_left_alone(name):
    torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    new(name, random_state=None).fit(table())
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002


@every_network
def test_a_batch_grows_with_the_rows_of_a_large_table(name):
    model = new(name, batch_size="auto", recipe="default")
    sizes = [model._rows_per_step(n) for n in (10, 12_800, 30_000, 10**6)]
    assert sizes == [128, 128, 300, 1024]
    assert model.set_params(batch_size=64)._rows_per_step(10**6) == 64
    assert model.set_params(batch_size="auto", recipe="paper")._rows_per_step(10**6) == 128


@every_network
def test_the_objective_falls(name):
    model = new(name, max_epochs=30)
    if isinstance(model, SparseVAE):  # a spine begins near its optimum
        model.set_params(recipe=LADDER)
    history = model.fit(table(n_samples=120)).history_
    without_masks = history["reconstruction"] + history["kl"]
    assert without_masks.iloc[-3:].min() < without_masks.iloc[0]
    assert {"epoch", "phase", "objective", "weight_penalty", "validation"} <= set(history.columns)
    assert history["epoch"].iloc[-1] == len(history)


@every_network
def test_every_parameter_receives_a_gradient(name, fitted):
    module = fitted(name).module_
    fresh = type(module)(module.observation, module.config, generator=torch.Generator().manual_seed(0))
    batch = RowSource(table(), module.observation).batch(torch.arange(40))
    noise = torch.randn(40, fresh.n_noise, generator=torch.Generator().manual_seed(1))
    sum(fresh.step(batch, noise, 40).loss).backward()
    without = [n for n, p in fresh.named_parameters() if p.requires_grad and not (p.grad != 0).any()]
    assert without == []


@every_estimator
def test_more_factors_than_features_are_allowed(name):
    model = new(name, n_factors=9).fit(table())
    assert model.transform(table()).shape == (40, 9)
    assert np.isfinite(model.score(table()))


@every_estimator
def test_fitted_attributes_are_there(name, fitted):
    model = fitted(name)
    assert model.n_features_in_ == 6
    assert model.n_iter_ >= 1
    assert isinstance(model.history_, pd.DataFrame)
    assert model.noise_variance_.shape == (6,)
    assert (model.noise_variance_ > 0).all()
    assert set(model.active_factors_) <= {0, 1}
    assert model.effects().shape == (6, len(model.active_factors_))


# -- using it ------------------------------------------------------------------------------------------------


@every_estimator
def test_a_subset_of_rows_gets_the_same_values(name, fitted):
    model, X = fitted(name), table(seed=1)
    some = [3, 17, 18]
    np.testing.assert_allclose(model.score_samples(X)[some], model.score_samples(X[some]), rtol=1e-6)
    np.testing.assert_allclose(model.transform(X)[some], model.transform(X[some]), rtol=1e-5, atol=1e-7)


@every_estimator
def test_score_is_the_mean_over_rows(name, fitted):
    model, X = fitted(name), table(seed=1)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


@every_network
def test_scores_are_in_the_units_of_the_table(name, fitted):
    """A table in other units has a density that differs by the Jacobian."""
    other = new(name).fit(1000.0 * table())
    expected = fitted(name).score_samples(table()) - 6 * np.log(1000.0)
    np.testing.assert_allclose(other.score_samples(1000.0 * table()), expected, rtol=1e-3)


@pytest.mark.parametrize("family", LIKELIHOODS)
@every_estimator
def test_held_out_rows_have_finite_scores_under_every_likelihood(name, family):
    likelihood = family
    if family == "mixed":
        X, likelihood = mixed()
        X_new, _ = mixed(seed=1)
    else:
        X, X_new = table(family), table(family, seed=1)
    model = new(name, likelihood=likelihood).fit(X)
    assert np.isfinite(model.score_samples(X_new)).all()
    Z = model.transform(X_new)
    assert np.isfinite(Z).all()
    X_back = model.inverse_transform(Z)
    assert X_back.shape == X_new.shape
    assert np.isfinite(X_back).all()


@pytest.mark.parametrize("family", ["gaussian", "multinomial", "bernoulli", "negative_binomial"])
@every_network
def test_samples_are_possible_data(name, family):
    model = new(name, likelihood=family).fit(table(family))
    drawn = model.sample(7, random_state=0)
    assert drawn.shape == (7, 6)
    assert np.isfinite(drawn).all()
    np.testing.assert_array_equal(drawn, model.sample(7, random_state=0))
    if family != "gaussian":
        assert (drawn >= 0).all()
        np.testing.assert_array_equal(drawn, np.rint(drawn))
    if family == "bernoulli":
        assert drawn.max() <= 1


@pytest.mark.parametrize("family", ["gaussian", "multinomial", "poisson"])
@every_estimator
def test_sparse_tables_give_the_same_as_dense_ones(name, family):
    X = np.where(np.arange(6) < 3, table(family), 0.0)
    X[::2, 4:] = 1.0
    X[1::2, 3] = 2.0
    dense, compressed = new(name, likelihood=family).fit(X), sparse.csr_array(X)
    model = new(name, likelihood=family).fit(compressed)
    np.testing.assert_allclose(model.transform(compressed), dense.transform(X), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.score_samples(compressed), dense.score_samples(X), rtol=1e-3)


@pytest.mark.parametrize("family", ["multinomial", "poisson"])
@every_estimator
def test_rows_without_counts_get_no_factors(name, family):
    X = table(family)
    X[5] = 0.0
    assert (new(name, likelihood=family).fit(X).transform(X)[5] == 0).all()


@every_mask
def test_the_fit_behind_these_tests_has_factors(name, fitted):
    assert len(fitted(name).active_factors_) > 0


@every_mask
def test_inactive_factors_are_exactly_zero_and_loadings_name_the_others(name):
    model = new(name, n_factors=4).fit(table())
    inactive = np.setdiff1d(np.arange(4), model.active_factors_)
    assert (model.transform(table())[:, inactive] == 0).all()
    np.testing.assert_array_equal(model.active_factors_, np.flatnonzero((model.mask_ != 0).any(0)))
    np.testing.assert_array_equal(model.components_, model.mask_.T)
    loadings = model.loadings()
    assert list(loadings.columns) == list(model.get_feature_names_out()[model.active_factors_])
    assert loadings.to_numpy().any(0).all()


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in MASKED])
def test_estimators_without_a_mask_have_no_loadings(name, fitted):
    assert not hasattr(fitted(name), "loadings")
    assert not hasattr(fitted(name), "mask_")


@every_estimator
def test_top_features_are_ranked_within_each_active_factor(name, fitted):
    model = fitted(name)
    top = model.top_features(3)
    assert list(top.columns[:3]) == ["factor", "rank", "feature"]
    assert "effect" in top if hasattr(model, "module_") else "loading" in top
    named = model.get_feature_names_out()[model.active_factors_]
    assert set(top["factor"]) <= set(named)
    for _, part in top.groupby("factor"):
        assert part["rank"].tolist() == list(range(1, len(part) + 1))
        assert part["feature"].is_unique
    with pytest.raises(ParameterError, match="Expected n "):
        model.top_features(0)


# -- names, types, devices -----------------------------------------------------------------------------------


@every_estimator
def test_feature_names_are_kept_and_asked_for(name):
    names = [f"gene {j}" for j in range(6)]
    frame = pd.DataFrame(table(), columns=names)
    model = new(name).fit(frame)
    assert list(model.feature_names_in_) == names
    assert list(model.effects().index) == names
    prefix = type(model).__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{prefix}0", f"{prefix}1"]
    with pytest.raises(DataError, match="in the same order"):
        model.transform(frame[names[::-1]])


@every_estimator
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_have_the_type_of_the_table(name, dtype, fitted):
    assert fitted(name).transform(table().astype(dtype)).dtype == dtype


@every_network
def test_devices_are_chosen_and_checked(name):
    module = new(name, device="cpu").fit(table()).module_
    assert {tensor.device.type for tensor in module.state_dict().values()} == {"cpu"}
    with pytest.raises(ParameterError, match="Expected device"):
        new(name, device="abacus").fit(table())


@every_estimator
def test_progress_goes_to_stderr_and_only_when_asked_for(name, capsys):
    new(name).fit(table())
    assert capsys.readouterr() == ("", "")
    new(name, verbose=1).fit(table())
    out, err = capsys.readouterr()
    assert out == ""
    assert err != ""


# -- on disk -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "multinomial", "negative_binomial"])
@every_estimator
def test_a_round_trip_to_disk_changes_no_bit(name, family, tmp_path):
    X = table(family)
    model = new(name, likelihood=family).fit(X)
    model.save(tmp_path / "model")
    back = type(model).load(tmp_path / "model")
    assert back.get_params() == model.get_params()
    Z = model.transform(X)
    np.testing.assert_array_equal(back.transform(X), Z)
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(back.inverse_transform(Z), model.inverse_transform(Z))
    pd.testing.assert_frame_equal(back.history_, model.history_)
    pd.testing.assert_frame_equal(back.effects(), model.effects())
    if hasattr(model, "sample"):
        np.testing.assert_array_equal(back.sample(5, random_state=0), model.sample(5, random_state=0))
    if hasattr(model, "loadings"):
        pd.testing.assert_frame_equal(back.loadings(), model.loadings())


# -- refusals ------------------------------------------------------------------------------------------------


@every_estimator
def test_nothing_works_before_fit(name, tmp_path):
    for call in (
        lambda model: model.transform(table()),
        lambda model: model.score(table()),
        lambda model: model.inverse_transform(np.zeros((2, 2))),
        lambda model: model.effects(),
        lambda model: model.top_features(),
        lambda model: model.save(tmp_path / "model"),
    ):
        with pytest.raises(NotFittedError):
            call(new(name))


@every_estimator
@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"n_factors": 0}, "Expected n_factors"),
        ({"likelihood": "softmax"}, "is 'multinomial'"),
    ],
)
def test_bad_parameters_are_refused_with_a_remedy(name, parameters, message):
    with pytest.raises(ParameterError, match=message):
        new(name, **parameters).fit(table())


@every_estimator
def test_bad_tables_are_refused(name, fitted):
    with pytest.raises(DataError, match="Negative values"):
        new(name, likelihood="poisson").fit(table() - 5.0)
    with pytest.raises(DataError, match="features"):
        fitted(name).transform(table(n_features=5))
    with pytest.raises(DataError, match=r"Expected factors of shape \(n_samples, 2\)"):
        fitted(name).inverse_transform(np.zeros((3, 4)))
