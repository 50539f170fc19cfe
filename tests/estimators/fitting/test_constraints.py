"""What is known before a fit: anchors, constant features, a given covariance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.estimators.fitting.constraints import name_factors_
from sparsevae.exceptions import DataWarning


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
    module, before = model.module_, model.module_.mask.clone()
    with torch.no_grad():
        module.mask.copy_(
            torch.tensor([[0.1, 0.9, 0.0], [0.0, 0.2, 0.8]] + [[0.5, 0.5, 0.5]] * (len(before) - 2))
        )
    name_factors_(model.set_params(anchors={"x0": 2, "x1": 0}), module)
    assert_close(module.mask[:2].detach(), torch.tensor([[0.0, 0.1, 0.9], [0.8, 0.0, 0.2]]))


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
    assert learned.module_.config["covariance"] == "learned"
    settings = {"recipe": "default", "n_init": 1, "init": init, "factor_covariance": "identity"}
    np.testing.assert_array_equal(fit(make_model(**settings), make_table()).factor_covariance_, np.eye(2))
