"""Variational sparse coding: samples that use few factors, the sparsity asked for, the recipes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae import VAE, VSC
from sparsevae.exceptions import ParameterError

QUICK = {"hidden_sizes": (16,), "max_epochs": 90, "random_state": 1}


def one_factor_each(n_samples=500, seed=0):
    """Each sample has one of three factors, and the other two are exactly zero."""
    rng = np.random.default_rng(seed)
    which = rng.integers(3, size=n_samples)
    z = np.zeros((n_samples, 3))
    z[np.arange(n_samples), which] = rng.normal(2.5, 0.5, size=n_samples)
    loadings = np.random.default_rng(9).standard_normal((3, 12))
    return z @ loadings + 0.3 * rng.standard_normal((n_samples, 12)), which


@pytest.fixture(scope="module")
def fitted():
    return VSC(3, sparsity=0.3, **QUICK).fit(one_factor_each()[0])


def test_codes_that_are_sparse_are_modelled_better_than_by_a_vae(fitted):
    new, _ = one_factor_each(seed=1)
    assert fitted.score(new) > VAE(3, **QUICK).fit(one_factor_each()[0]).score(new)


def test_gates_tell_which_factor_a_sample_has(fitted):
    """Samples with the same factor have the same pattern of gates, others another."""
    new, which = one_factor_each(seed=1)
    gates = fitted.inclusion(new).to_numpy()
    patterns = np.stack([gates[which == k].mean(0) for k in range(3)])
    within = np.mean([gates[which == k].var(0).mean() for k in range(3)])
    assert patterns.var(0).mean() > 3 * within


def test_inclusion_is_a_probability_with_names(fitted):
    inclusion = fitted.inclusion(one_factor_each()[0])
    assert isinstance(inclusion, pd.DataFrame)
    assert list(inclusion.columns) == ["vsc0", "vsc1", "vsc2"]
    assert ((inclusion >= 0) & (inclusion <= 1)).to_numpy().all()


def test_codes_are_gated_means(fitted):
    X, _ = one_factor_each()
    Z, gates = fitted.transform(X), fitted.inclusion(X).to_numpy()
    assert (np.abs(Z[gates < 1e-3]) < 0.1).all()


def test_draws_from_the_prior_have_exact_zeros_and_look_like_the_table(fitted):
    X, _ = one_factor_each()
    drawn = fitted.sample(2000, random_state=0)
    np.testing.assert_allclose(drawn.mean(0), X.mean(0), atol=0.6)
    np.testing.assert_allclose(drawn.std(0), X.std(0), rtol=0.4)


def test_a_lower_sparsity_shuts_more_gates():
    X, _ = one_factor_each()
    shares = [
        VSC(6, sparsity=sparsity, **{**QUICK, "max_epochs": 40}).fit(X).inclusion(X).to_numpy().mean()
        for sparsity in (0.9, 0.001)
    ]
    assert shares[0] > shares[1] + 0.1


def test_the_warm_up_is_over_when_early_stopping_begins(fitted):
    history = fitted.history_
    assert history["phase"].drop_duplicates().tolist() == ["warm-up", "train", "refine"]
    assert history.loc[history["phase"] == "warm-up", "validation"].isna().all()
    assert (fitted.module_.warmth == 1).all()


def test_the_prior_is_learned_except_in_the_authors_recipe():
    X, _ = one_factor_each(60)

    def moved(recipe):
        start, end = (
            VSC(2, hidden_sizes=(4,), recipe=recipe, max_epochs=epochs, random_state=0)
            .fit(X)
            .module_.pseudo_inputs.numpy()
            for epochs in (1, 6)
        )
        return not np.array_equal(start, end)

    assert moved("default")
    assert moved("paper")
    assert not moved("authors")


@pytest.mark.parametrize("sparsity", [0.0, 1.0, 2.0])
def test_sparsity_is_a_share(sparsity):
    with pytest.raises(ParameterError, match="Expected sparsity"):
        VSC(2, sparsity=sparsity).fit(one_factor_each(40)[0])


def test_pseudo_inputs_are_counted():
    with pytest.raises(ParameterError, match="Expected n_pseudo_inputs"):
        VSC(2, n_pseudo_inputs=0).fit(one_factor_each(40)[0])
