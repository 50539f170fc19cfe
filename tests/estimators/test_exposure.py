"""Size factors of counts: by totals, by known exposure, or none."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from sparsevae import OIVAE, VAE, VSC, SparseVAE
from sparsevae.exceptions import ConvergenceWarning, DataError, ParameterError

from ..tables import make_table

TINY = {"n_factors": 2, "hidden_sizes": (5,), "max_epochs": 4, "random_state": 0, "likelihood": "poisson"}


def fit(model, X, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **more)


def test_totals_as_exposure_are_the_default():
    X = make_table("poisson")
    default, given = fit(VAE(**TINY), X), fit(VAE(**TINY), X, exposure=X.sum(1))
    np.testing.assert_allclose(
        given.transform(X, exposure=X.sum(1)), default.transform(X), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(given.score(X, exposure=X.sum(1)), default.score(X), rtol=1e-6)


@pytest.mark.parametrize("kind", [SparseVAE, VAE, VSC, OIVAE])
def test_rows_without_size_factors_are_taken_as_they_are(kind, tmp_path):
    X = make_table("negative_binomial")
    model = fit(kind(**{**TINY, "likelihood": "negative_binomial", "size_factors": False}), X)
    assert not model.module_.observation.size_columns.any()
    batch = model.codes(X).batch(np.arange(3))
    assert batch.size is None
    again = kind.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_expected_counts_grow_with_exposure():
    rng = np.random.default_rng(0)
    exposure = rng.uniform(0.5, 4.0, size=200)
    X = rng.poisson(exposure[:, None] * np.array([1.0, 2.0, 4.0, 0.5]))
    model = fit(VAE(**{**TINY, "max_epochs": 30}), X, exposure=exposure)
    observed = np.ones(X.shape, dtype=bool)
    observed[:, 2] = False
    filled = model.impute(X, observed=observed, exposure=exposure)[:, 2]
    assert np.corrcoef(filled, exposure)[0, 1] > 0.8


def test_exposure_that_makes_no_sense_is_refused():
    X = make_table("poisson")
    with pytest.raises(DataError, match="an exposure for each of 60 rows"):
        VAE(**TINY).fit(X, exposure=np.ones(3))
    with pytest.raises(DataError, match="exposures above 0; got 0"):
        VAE(**TINY).fit(X, exposure=np.zeros(60))
    with pytest.raises(DataError, match="exposures that are numbers"):
        VAE(**TINY).fit(X, exposure=["a"] * 60)
    with pytest.raises(DataError, match="as in fit; got None"):
        fit(VAE(**TINY), X, exposure=np.ones(60)).transform(X)
    with pytest.raises(DataError, match="as in fit; got sizes"):
        fit(VAE(**TINY), X).transform(X, exposure=np.ones(60))
    with pytest.raises(ValueError, match="size_factors to be True or False"):
        VAE(**TINY, size_factors="no").fit(X)


@pytest.mark.parametrize("options", [{"likelihood": "gaussian"}, {"size_factors": False}])
def test_an_exposure_that_would_be_left_aside_is_refused(options):
    with pytest.raises(ParameterError, match="no exposure where no count is relative to it"):
        VAE(**{**TINY, **options}).fit(make_table("poisson"), exposure=np.ones(60))
