"""The sparse VAE: what its fitted attributes say, what its recipes and parameters do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from sparsevae import SparseVAE
from sparsevae.datasets import load_ability_tests, make_anchored_factors, make_sparse_factors
from sparsevae.exceptions import ConvergenceWarning, ParameterError

from ..models import LADDER

RECIPES = ["default", "paper", "authors"]
TERMS = ["reconstruction", "kl", "mask_penalty", "noise_penalty", "weight_penalty"]


@pytest.fixture(scope="module")
def found(fit):
    """A fit of data with two factors, long enough to find them."""
    data = make_sparse_factors(400, random_state=0)
    model = SparseVAE(4, n_init=2, hidden_sizes=(16, 16), max_epochs=80, random_state=0)
    return fit(model, data.X), data


# -- fitted attributes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
def test_fitted_attributes_have_their_shapes(fit, make_model, make_table, likelihood, recipe):
    model = fit(
        make_model(likelihood, recipe=recipe, n_init=1, n_factors=3, max_epochs=2), make_table(likelihood)
    )
    assert model.mask_.shape == model.inclusion_.shape == model.effects_.shape == (7, 3)
    assert model.components_.shape == (3, 7)
    assert model.inclusion_rate_.shape == model.variance_explained_.shape == (3,)
    assert model.noise_variance_.shape == (7,)
    assert model.factor_covariance_.shape == (3, 3)
    assert model.n_features_in_ == 7
    assert model.n_iter_ == len(model.history_)
    for name in ("mask_", "inclusion_", "inclusion_rate_", "factor_covariance_", "effects_"):
        assert getattr(model, name).dtype == np.float64
    np.testing.assert_array_equal(model.components_, model.mask_.T)
    assert ((model.inclusion_ >= 0) & (model.inclusion_ <= 1)).all()
    np.testing.assert_allclose(np.diag(model.factor_covariance_), 1.0, rtol=1e-6)


@pytest.mark.parametrize("recipe", RECIPES)
def test_history_has_a_row_per_epoch_and_numbers_for_every_term(fit, make_model, make_table, recipe):
    history = fit(make_model(recipe=recipe, n_init=2), make_table()).history_
    assert {"epoch", "phase", "objective", "n_nonzero", "n_active", "validation", *TERMS} <= set(
        history.columns
    )
    for name in ("objective", "n_nonzero", "n_active", *TERMS):
        assert history[name].dtype.kind in "if", name
    np.testing.assert_allclose(history[TERMS].sum(axis=1), history["objective"], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(history["epoch"], np.arange(1, len(history) + 1))


def test_factors_found_are_counted_ordered_and_explained(found):
    model, _ = found
    np.testing.assert_array_equal(model.active_factors_, np.flatnonzero((model.mask_ != 0).any(0)))
    np.testing.assert_array_equal(model.active_factors_, np.arange(len(model.active_factors_)))
    explained = model.variance_explained_
    assert (np.diff(explained) <= 1e-12).all()
    assert (explained[len(model.active_factors_) :] == 0).all()
    assert ((explained >= 0) & (explained <= 1)).all()
    assert sorted([*model.active_factors_, *model.dropped_factors_]) == [0, 1, 2, 3]
    assert all(isinstance(why, str) for why in model.dropped_factors_.values())
    assert model.starts_["chosen"].sum() == 1


def test_the_papers_two_factors_are_found_with_exact_zeros(found):
    model, _ = found
    assert len(model.active_factors_) == 2
    assert (model.mask_ == 0).sum() > 14
    np.testing.assert_array_equal((model.mask_[:, 2:] == 0), True)


def test_columns_of_inactive_factors_are_exactly_zero(found):
    model, data = found
    Z = model.transform(data.X)
    inactive = np.setdiff1d(np.arange(4), model.active_factors_)
    assert (Z[:, inactive] == 0).all()
    assert (Z[:, model.active_factors_].std(0) > 0.3).all()


def test_a_feature_does_not_react_to_factors_outside_its_row(found):
    model, _ = found
    Z = np.random.default_rng(0).normal(size=(50, 4))
    for k in range(4):
        moved = Z.copy()
        moved[:, k] += 1.0
        change = np.abs(model.inverse_transform(moved) - model.inverse_transform(Z)).max(0)
        assert (change[model.mask_[:, k] == 0] == 0).all()


def test_the_strongest_anchor_rises_with_its_factor(found):
    model, _ = found
    anchors = (model.mask_ != 0).sum(1) == 1
    for k in model.active_factors_:
        own = np.flatnonzero(anchors & (model.mask_[:, k] != 0))
        if len(own):
            slope = model.effects_[own, k] / model.module_.observation.scale.numpy()[own]
            assert slope[np.abs(slope).argmax()] > 0


def test_effects_are_average_slopes(found):
    model, data = found
    Z = model.transform(data.X)
    step = np.eye(4)[0] * 0.1
    slope = (model.inverse_transform(Z + step) - model.inverse_transform(Z - step)) / 0.2
    np.testing.assert_allclose(model.effects_[:, 0], slope.mean(0), atol=0.02)
    assert (model.effects_[model.mask_ == 0] == 0).all()


# -- reading a fit ------------------------------------------------------------------------------------------


def test_loadings_and_effects_have_names_and_active_factors_only(found):
    model, _ = found
    for table in (model.loadings(), model.effects()):
        assert list(table.columns) == [f"sparsevae{k}" for k in model.active_factors_]
        assert list(table.index) == [f"x{j}" for j in range(7)]
    np.testing.assert_array_equal(model.loadings(), model.mask_[:, model.active_factors_])


def test_top_features_are_ranked_and_say_which_are_anchors(found):
    model, _ = found
    top = model.top_features(2)
    assert list(top.columns) == ["factor", "rank", "feature", "loading", "effect", "share", "anchor"]
    assert (top.groupby("factor")["rank"].max() <= 2).all()
    for factor, rows in top.groupby("factor"):
        assert (np.diff(rows["share"]) <= 0).all()
        anchors = model.anchor_features()[factor]
        assert [feature in anchors for feature in rows["feature"]] == list(rows["anchor"])


def test_anchor_features_depend_on_one_factor(found):
    model, _ = found
    anchors = model.anchor_features()
    assert list(anchors) == [f"sparsevae{k}" for k in model.active_factors_]
    loadings = model.loadings()
    for factor, features in anchors.items():
        assert ((loadings.loc[features] != 0).sum(axis=1) == 1).all()
        k = list(anchors).index(factor)
        assert (np.diff(model.variance_shares_[[int(name[1:]) for name in features], k]) <= 0).all()


def test_a_fit_without_factors_can_be_read_all_the_same(fit, make_model):
    noise = np.random.default_rng(0).normal(size=(80, 4))
    model = fit(make_model(recipe="default", n_init=1, max_epochs=8), noise)
    with torch.no_grad():
        model.module_.mask.weight.zero_()
    model.mask_[:], model.active_factors_ = 0.0, np.array([], dtype=int)
    assert model.loadings().shape == (4, 0)
    assert model.effects().shape == (4, 0)
    assert len(model.top_features()) == 0
    assert model.anchor_features() == {}
    assert (model.transform(noise) == 0).all()


# -- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("hidden_sizes", [(), (4,), (4, 4), (4, 3, 5)])
def test_any_depth_fits_by_any_recipe(fit, make_model, make_table, recipe, hidden_sizes):
    options = {"n_init": 1, "max_epochs": 2}
    recipe = LADDER if recipe == "default" else recipe
    model = fit(make_model(recipe=recipe, hidden_sizes=hidden_sizes, **options), make_table())
    assert model.module_.config.hidden_sizes == hidden_sizes
    assert np.isfinite(model.score(make_table()))


def test_the_literal_recipes_have_an_identity_prior_and_no_gauge(fit, make_model, make_table):
    for recipe in ("paper", "authors"):
        model = fit(make_model(recipe=recipe), make_table())
        np.testing.assert_array_equal(model.factor_covariance_, np.eye(2))
        assert not model.module_.config.gauge
        assert not model.module_.config.linear_path
        assert set(model.history_["phase"]) == {"final"}
        assert model.module_.mask.spike_rate == 10.0
        assert model.module_.mask.slab_rate == 1.0
    assert model.module_.config.beta == 0.5
    assert not model.module_.config.keep_rate_ratio


def test_rates_given_are_the_rates_used(fit, make_model, make_table):
    for recipe in ("default", "paper"):
        settings = {"recipe": recipe, "n_init": 1, "spike_rate": 40.0, "slab_rate": 2.0}
        model = fit(make_model(**settings), make_table())
        assert float(model.module_.mask.spike_rate) == pytest.approx(40.0)
        assert float(model.module_.mask.slab_rate) == pytest.approx(2.0)


def test_the_inclusion_prior_is_free_down_to_the_indian_buffet(fit, make_model, make_table):
    model = fit(make_model(recipe="default", n_init=1, inclusion_prior=(0.5 / 2, 1.0)), make_table())
    assert model.module_.mask.inclusion_prior == (0.25, 1.0)
    assert ((model.inclusion_rate_ > 0) & (model.inclusion_rate_ < 1)).all()
    assert np.isfinite(model.history_["mask_penalty"]).all()
    default = fit(make_model(), make_table())
    assert default.module_.mask.inclusion_prior == (1.0, 7.0)


@pytest.mark.parametrize("recipe", ["paper", "authors"])
@pytest.mark.parametrize("hidden_sizes", [(), (5,)])
def test_known_anchors_keep_their_rows_and_their_factors_their_places(
    fit, make_model, make_table, recipe, hidden_sizes
):
    anchors = {"x0": 2, 1: 0, "x3": 0}
    settings = {"recipe": recipe, "hidden_sizes": hidden_sizes, "n_factors": 3, "anchors": anchors}
    model = fit(make_model(**settings), make_table())
    for j, k in ((0, 2), (1, 0), (3, 0)):
        np.testing.assert_array_equal(np.flatnonzero(model.mask_[j]), [k])
    np.testing.assert_array_equal(np.abs(model.mask_[[0, 1, 3]]).sum(1), 1.0)


@pytest.mark.parametrize("init", ["rotation", "random", "array"])
@pytest.mark.parametrize("hidden_sizes", [(), (5,)])
def test_other_starts_fit(fit, make_model, make_table, init, hidden_sizes):
    start = np.full((7, 2), 0.5) if init == "array" else init
    model = fit(make_model(recipe="default", init=start, hidden_sizes=hidden_sizes), make_table())
    assert np.isfinite(model.score(make_table()))


def test_stopping_too_soon_is_warned_of(make_model, make_table):
    with pytest.warns(
        ConvergenceWarning, match=r"still changing .* Raise max_epochs, or lower learning_rate"
    ):
        make_model(max_epochs=6, spike_rate=200.0, slab_rate=200.0, learning_rate=0.05).fit(make_table())


def test_the_validation_share_is_held_out_for_early_stopping(fit, make_model, make_table):
    with_rows = fit(make_model(validation_fraction=0.3), make_table()).history_["validation"]
    without = fit(make_model(validation_fraction=0.0), make_table()).history_["validation"]
    assert with_rows.notna().all()
    assert without.isna().all()


def test_a_progress_bar_shows_only_when_asked_for(fit, make_model, make_table, capsys):
    fit(make_model(), make_table())
    assert capsys.readouterr() == ("", "")
    fit(make_model(verbose=1), make_table())
    out, err = capsys.readouterr()
    assert out == ""
    assert "objective=" in err


def test_bfloat16_products_do_not_reach_the_scores(fit, make_model, make_table):
    model = fit(make_model(recipe="default", n_init=1, hidden_sizes=(8, 8)), make_table())
    before = model.score_samples(make_table())
    model.module_.decoder.precision = "bfloat16"
    np.testing.assert_array_equal(model.score_samples(make_table()), before)


def test_the_example_of_the_docstring_uses_names_that_exist():
    assert "make_sparse_factors(500, correlation=0.4, random_state=0)" in SparseVAE.__doc__
    documented = SparseVAE.__doc__.split("Attributes")[0]
    for name in SparseVAE().get_params():
        assert name in documented, name


def test_the_released_arithmetic_makes_no_zeros_until_the_mask_is_read(fit, make_model, make_table):
    model = fit(make_model(recipe="authors", spike_rate=50.0, slab_rate=1.0, max_epochs=40), make_table())
    assert (model.history_["n_nonzero"] == model.mask_.size).all()
    size = np.abs(model.mask_)
    assert (size[size > 0] > 0.01).all()
    assert (size == 0).any()


# -- the number of factors -----------------------------------------------------------------------------------


def test_the_number_of_factors_is_found_where_none_is_given():
    X = make_anchored_factors(200, 12, 2, random_state=0).X
    model = SparseVAE("auto", max_epochs=4, n_init=1, random_state=0).fit(X)
    assert model.n_linear_factors_ < model.n_factors_ == model.mask_.shape[1] <= 6
    given = SparseVAE(1, max_epochs=4, n_init=1, random_state=0).fit(X)
    assert given.n_factors_ == 1 < given.n_linear_factors_


@pytest.mark.parametrize(
    "options",
    [
        {"anchors": {0: 0}},
        {"init": np.ones((12, 2))},
        {"factor_covariance": np.eye(2)},
        {"recipe": "paper"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_number_is_needed_where_factors_have_numbers(options):
    with pytest.raises(ParameterError, match=f"a number for n_factors beside {next(iter(options))}"):
        SparseVAE("auto", **options).check_parameters()
    with pytest.raises(ParameterError, match="whole number of 1 or more, or 'auto'; got 'many'"):
        SparseVAE("many").check_parameters()


def test_the_trade_of_simplicity_is_kept_and_saved_with_the_links_of_the_fit(tmp_path):
    X = load_ability_tests().X
    model = SparseVAE(5, hidden_sizes=(8,), n_init=2, max_epochs=10, random_state=0).fit(X)
    path = model.simplicity_path_
    assert path["chosen"].sum() == 1
    linear = path[path["shrinkage"].notna()]
    assert (np.diff(linear["n_nonzero"]) <= 0).all()
    np.testing.assert_array_equal(model.path_supports_.sum((1, 2)), linear["n_nonzero"])
    own = int(np.flatnonzero(linear["n_nonzero"] == (model.mask_ != 0).sum())[0])
    np.testing.assert_array_equal(model.path_supports_[own], model.mask_ != 0)
    model.save(tmp_path / "model")
    again = SparseVAE.load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.simplicity_path_, path)
    np.testing.assert_array_equal(again.path_supports_, model.path_supports_)
