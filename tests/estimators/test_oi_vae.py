"""The output-interpretable VAE: which group depends on which factor, groups as users write them, recipes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae import OIVAE
from sparsevae.estimators.oi_vae import number_groups
from sparsevae.exceptions import ParameterError
from sparsevae.metrics import support_f1

NAMES = np.array(list("abcdef"), dtype=object)


def two_blocks(n_samples=400, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n_samples, 2))
    sizes = np.random.default_rng(5).uniform(0.7, 1.5, size=8)
    return z[:, [0, 0, 0, 0, 1, 1, 1, 1]] * sizes + 0.3 * rng.standard_normal((n_samples, 8))


@pytest.fixture(scope="module")
def fitted():
    return OIVAE(3, hidden_sizes=(16,), max_epochs=120, random_state=0).fit(two_blocks())


def test_features_find_their_factor_and_leave_the_others_exactly(fitted):
    truth = np.repeat(np.eye(2), 4, axis=0)
    assert support_f1(fitted.mask_, truth) > 0.85
    assert (fitted.mask_ == 0).any()


def test_a_zero_loading_is_no_effect(fitted):
    assert (np.abs(fitted.effects_[fitted.mask_ == 0]) < 1e-6).all()
    Z = fitted.transform(two_blocks())
    for k in fitted.active_factors_:
        moved = Z.copy()
        moved[:, k] += 1.0
        change = np.abs(fitted.inverse_transform(moved) - fitted.inverse_transform(Z)).max(0)
        np.testing.assert_array_equal(change > 1e-6, fitted.mask_[:, k] != 0)


def test_held_out_rows_are_reconstructed(fitted):
    new = two_blocks(seed=1)
    left = np.square(new - fitted.inverse_transform(fitted.transform(new))).mean()
    assert left < 0.3 * new.var()


def test_a_stronger_penalty_leaves_fewer_loadings():
    counts = [
        (
            OIVAE(3, penalty=penalty, hidden_sizes=(8,), max_epochs=40, random_state=0)
            .fit(two_blocks())
            .mask_
            != 0
        ).sum()
        for penalty in (0.1, 1.0, 50.0)
    ]
    assert counts[0] >= counts[1] > counts[2] == 0


def test_features_of_a_group_share_its_loadings():
    frame = pd.DataFrame(two_blocks(80), columns=list("stuvwxyz"))
    groups = {"first": ["s", "t", "u"], "rest": ["v", "w", "x", "y", "z"]}
    model = OIVAE(2, groups=groups, hidden_sizes=(4,), max_epochs=4, penalty=0.01, random_state=0).fit(frame)
    assert list(model.loadings().index) == ["first", "rest"]
    assert model.group_loadings_.shape == (2, 2)
    for row in range(8):
        np.testing.assert_array_equal(model.mask_[row], model.group_loadings_[0 if row < 3 else 1])
    assert list(model.effects().index) == list("stuvwxyz")


def test_groups_can_be_labels_in_any_order():
    labels = ["b", "a", "b", "a", "b", "b", "c", "b"]
    model = OIVAE(2, groups=labels, hidden_sizes=(4,), max_epochs=4, penalty=0.01, random_state=0).fit(
        two_blocks(80)
    )
    assert list(model.group_names_) == ["c", "a", "b"]
    position = {name: i for i, name in enumerate(model.group_names_)}
    for j, label in enumerate(labels):
        np.testing.assert_array_equal(model.mask_[j], model.group_loadings_[position[label]])


def test_constant_features_stay_without_loadings():
    X = two_blocks(80)
    X[:, 3] = 7.0
    with pytest.warns(UserWarning, match="constant"):
        model = OIVAE(2, hidden_sizes=(4,), max_epochs=4, penalty=0.01, random_state=0).fit(X)
    assert (model.mask_[3] == 0).all()
    assert (model.mask_[0] != 0).any()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X))[:, 3], 7.0, atol=0.2)


@pytest.mark.parametrize(
    "recipe, penalty, prior", [("default", 1.0, None), ("paper", None, None), ("authors", 1.0, 1.0)]
)
def test_recipes_say_what_the_priors_are_charged_against(recipe, penalty, prior):
    model = OIVAE(2, hidden_sizes=(4,), recipe=recipe, max_epochs=2, random_state=0).fit(two_blocks(40))
    assert model.module_.config.samples_per_penalty == penalty
    assert model.module_.config.samples_per_weight_prior == prior


def test_numbers_follow_sizes_and_then_the_order_of_appearance():
    labels, names = number_groups(["x", "y", "x", "z", "w", "x"], NAMES)
    assert labels == [3, 0, 3, 1, 2, 3]
    assert names.tolist() == ["y", "z", "w", "x"]
    labels, names = number_groups({"two": ["b", 3], "four": ["a", "c", 4, "f"]}, NAMES)
    assert labels == [1, 0, 1, 0, 1, 1]
    assert number_groups(None, NAMES)[0] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "groups, message",
    [
        ([0, 1], "a label for each of the 6 features; got 2"),
        ({"x": ["a", "q"]}, "name features of the table; got 'q' in group 'x'"),
        (
            {"x": ["a", "b"], "y": ["b", "c", "d", "e", "f"]},
            "each feature in one group; got 'b' in 'x' and in 'y'",
        ),
        ({"x": ["a", "b"]}, "every feature in a group; got none for c, d, e, f"),
        ({"x": [7]}, "name features of the table; got 7"),
    ],
)
def test_groups_that_do_not_fit_the_table_are_refused(groups, message):
    with pytest.raises(ParameterError, match=message):
        number_groups(groups, NAMES)


@pytest.mark.parametrize("parameters", [{"penalty": 0.0}, {"group_width": 0}])
def test_bad_parameters_are_refused(parameters):
    with pytest.raises(ParameterError, match=f"Expected {next(iter(parameters))}"):
        OIVAE(2, **parameters).fit(two_blocks(40))
