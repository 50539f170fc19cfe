"""What is known before a fit: anchors, constant features, a given covariance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.exceptions import DataWarning, ParameterError
from sparsevae.fitting.constraints import (
    anchor_entries,
    constrain_,
    freeze_spare_,
    initial_mask,
    name_factors_,
)
from sparsevae.fitting.settings import new_module


@pytest.mark.parametrize("hidden_sizes", [(), (5,)])
def test_known_anchors_have_one_factor_and_keep_its_place(fit, make_model, make_table, hidden_sizes):
    anchors = {"x0": 2, 1: 0, "x3": 0}
    settings = {"recipe": "default", "hidden_sizes": hidden_sizes, "n_factors": 3, "anchors": anchors}
    model = fit(make_model(**settings), make_table())
    for j, k in ((0, 2), (1, 0), (3, 0)):
        np.testing.assert_array_equal(np.flatnonzero(model.mask_[j]), [k])


def test_the_linear_model_estimates_the_loadings_of_its_anchors(fit, make_model):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 1))
    X = z * [0.9, 0.5, 0.7] + rng.normal(size=(400, 3)) * np.sqrt([1 - 0.81, 1 - 0.25, 1 - 0.49])
    settings = {"recipe": "default", "hidden_sizes": (), "n_factors": 1, "max_epochs": 200}
    mask = np.abs(fit(make_model(**settings, anchors={0: 0, 1: 0}), X).mask_[:, 0])
    np.testing.assert_allclose(mask, [0.9, 0.5, 0.7], atol=0.12)


@pytest.mark.parametrize("hidden_sizes", [(), (5,)])
def test_factors_without_known_anchors_must_earn_their_place(fit, make_model, make_table, hidden_sizes):
    anchors = {"x0": 0, "x2": 0, "x1": 1, "x3": 1}
    settings = {"recipe": "default", "hidden_sizes": hidden_sizes, "n_factors": 4, "anchors": anchors}
    starts = list(fit(make_model(**settings), make_table()).starts_["start"])
    assert starts[0] == "2"
    assert len(starts) > 2
    assert "none" in starts


def test_factors_get_the_numbers_of_the_anchors_that_load_on_them(fit, make_model, make_table):
    model = fit(make_model(recipe="default", n_init=1, n_factors=3, max_epochs=12), make_table())
    module = model.module_
    with torch.no_grad():
        module.mask.weight.copy_(torch.tensor([[0.1, 0.9, 0.0], [0.0, 0.2, 0.8]] + [[0.5, 0.5, 0.5]] * 5))
    settings, _ = model.set_params(anchors={"x0": 2, "x1": 0}).prepare_fit(make_table())
    name_factors_(settings, module)
    assert_close(module.mask.weight[:2].detach(), torch.tensor([[0.0, 0.1, 0.9], [0.8, 0.0, 0.2]]))


@pytest.mark.parametrize("hidden_sizes", [(), (5,)])
def test_a_constant_feature_has_an_empty_row(fit, make_model, make_table, hidden_sizes):
    X = make_table()
    X[:, 2] = 1.0
    with pytest.warns(DataWarning, match="are constant"):
        model = fit(make_model(recipe="default", n_init=1, hidden_sizes=hidden_sizes), X)
    assert (model.mask_[2] == 0).all()


@pytest.mark.parametrize("init", ["auto", "rotation"])
def test_a_given_covariance_is_kept(fit, make_table, make_model, init):
    given = np.array([[1.0, 0.5], [0.5, 1.0]])
    model = fit(make_model(recipe="default", n_init=1, init=init, factor_covariance=given), make_table())
    np.testing.assert_allclose(np.abs(model.factor_covariance_), given)


@pytest.mark.parametrize("init", ["auto", "rotation"])
def test_the_covariance_is_learned_unless_the_identity_is_asked_for(fit, make_table, make_model, init):
    learned = fit(make_model(recipe="default", n_init=1, init=init), make_table())
    assert learned.module_.config.covariance == "learned"
    settings = {"recipe": "default", "n_init": 1, "init": init, "factor_covariance": "identity"}
    np.testing.assert_array_equal(fit(make_model(**settings), make_table()).factor_covariance_, np.eye(2))


def test_anchors_are_named_or_counted():
    names = np.array(["a", "b", "c"], dtype=object)
    assert anchor_entries({"c": 1, 0: 0}, names, 2) == ((2, 1), (0, 0))
    assert anchor_entries(None, names, 2) == ()
    with pytest.raises(ParameterError, match="Expected anchors to name features of the table; got 'd'"):
        anchor_entries({"d": 0}, names, 2)
    with pytest.raises(ParameterError, match="Expected anchors to name factors from 0 to 1; got 2 for 'a'"):
        anchor_entries({"a": 2}, names, 2)


@pytest.mark.parametrize("hidden_sizes, is_estimated", [((), True), ((5,), False)])
def test_rows_of_anchors_are_fixed_but_for_loadings_without_a_curve(
    make_model, make_table, hidden_sizes, is_estimated
):
    model = make_model(recipe="default", hidden_sizes=hidden_sizes, anchors={"x0": 1})
    settings, data = model.prepare_fit(make_table())
    module = new_module(settings, data, 2)
    constrain_(settings, data, module)
    assert module.mask.weight[:, 0].tolist() == [[0.0, 1.0]] * 2
    assert module.mask.frozen[0].tolist() == [True, not is_estimated]
    assert module.mask.known[0].tolist() == [False, is_estimated]
    assert not module.mask.frozen[1:].any()


def test_columns_that_are_empty_now_stay_empty(make_module):
    module = make_module(n_factors=3)
    with torch.no_grad():
        module.mask.weight[:, 1] = 0.0
        module.mask.weight[2, 0] = 0.0
    freeze_spare_(module)
    assert module.mask.frozen.all(0).tolist() == [False, True, False]
    assert module.mask.frozen.sum() == 5


# -- first masks --------------------------------------------------------------------------------------------


def first_mask(model, X):
    return initial_mask(*model.prepare_fit(X))


def test_the_first_mask_is_of_ones_given_or_at_random(make_model, make_table):
    given = np.arange(14.0).reshape(7, 2)
    np.testing.assert_array_equal(first_mask(make_model(init=given), make_table()), given)
    assert torch.equal(first_mask(make_model(), make_table()), torch.ones(7, 2))
    drawn = first_mask(make_model(init="random"), make_table())
    assert ((drawn > 0) & (drawn < 1)).all()
    authors = first_mask(make_model(recipe="authors"), make_table())
    assert (authors < 0).any()
    assert (authors > 1).any()
    with pytest.raises(
        ParameterError, match=r"Expected init of shape \(7, 2\), a row per feature; got \(2, 7\)"
    ):
        first_mask(make_model(init=given.T), make_table())


@pytest.mark.parametrize("hidden_sizes", [(), (5,)])
def test_rotated_loadings_have_signs_only_where_no_curve_carries_them(make_model, make_table, hidden_sizes):
    model = make_model(recipe="default", init="rotation", hidden_sizes=hidden_sizes)
    mask = first_mask(model, make_table(n_samples=300)).numpy()
    assert (mask < 0).any() == (not hidden_sizes)
    assert np.abs(mask).max() > 0.5
    if hidden_sizes:
        assert mask.min() >= np.float32(0.05)  # able to grow
