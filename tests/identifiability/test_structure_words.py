from __future__ import annotations

import numpy as np
import pytest

from sparsevae.identifiability.structure_words import Setting, describe_structure, one_to_one

BLOCKS = np.kron(np.eye(2, dtype=bool), np.ones((3, 1), dtype=bool))  # three features for each of two factors
NESTED = np.array([[1, 1], [1, 1], [1, 1], [0, 1], [0, 1], [0, 1]], dtype=bool)
LINEAR = Setting(linear=True, gaussian=True, covariance="learned")
CURVED = LINEAR._replace(linear=False)


def lines(support, setting, measured=None):
    names = np.array([f"x{j}" for j in range(len(support))], dtype=object)
    factors = [f"F{k}" for k in range(support.shape[1])]
    return describe_structure(
        support, setting, factor_names=factors, feature_names=names, measured=measured or {}
    )


@pytest.mark.parametrize(
    "support, setting, words",
    [
        (BLOCKS, LINEAR, "Settled by the zeros of the mask in the linear model: no other axes"),
        (BLOCKS[1:], LINEAR, "{F0} has 2 features, where 3 are asked for"),
        (BLOCKS, LINEAR._replace(covariance="identity"), "matching criterion: x0 with {x1} and {x2}"),
        (NESTED, LINEAR, "{F0, F1} can be mixed under them"),
        (NESTED, CURVED, "Settled only together, {F0, F1}"),
        (BLOCKS, CURVED, "needed, not sufficient"),
        (BLOCKS, CURVED._replace(covariance="identity"), "not proved with noise"),
        (NESTED, CURVED._replace(gaussian=False), "Settled only together, {F0, F1}"),
        (BLOCKS, LINEAR._replace(gaussian=False), "structural sparsity"),
    ],
)
def test_each_rule_speaks_where_its_assumptions_hold(support, setting, words):
    assert words in lines(support, setting)[0].words


def test_factors_that_can_be_mixed_name_each_other():
    for setting in (LINEAR, CURVED):
        assert [line.mixed_with for line in lines(NESTED, setting)] == [["F1"], ["F0"]]
        assert [line.mixed_with for line in lines(BLOCKS, setting)] == [[], []]


def test_a_fixed_covariance_leaves_no_room_for_linear_mixtures():
    for line in lines(NESTED, LINEAR._replace(covariance="fixed")):
        assert line == ("", [])


def test_three_anchors_of_any_curves_are_named_for_gaussian_noise_alone():
    measured = {0: [2, 0, 1]}
    assert "(x2, x0, x1) settle it, if" in lines(BLOCKS, CURVED, measured)[0].words
    assert "Three" not in lines(BLOCKS, CURVED, measured)[1].words
    assert "Three" not in lines(BLOCKS, CURVED._replace(gaussian=False), measured)[0].words


def test_a_curve_that_turns_back_or_does_not_move_is_not_one_to_one():
    z = np.linspace(-2, 2, 101)
    curves = np.column_stack([np.tanh(z), -(z**3), np.abs(z), np.zeros_like(z)])
    found = one_to_one(curves, np.column_stack([z] * 4))
    np.testing.assert_array_equal(found, [True, True, False, False])
