"""The trade of simplicity: factors, links and gain of simpler and richer fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.factor_analysis import LinearFactors
from sparsevae.fitting.spine import Spine
from sparsevae.fitting.trade import linear_supports, simplicity_path


@pytest.fixture
def spine():
    """Two factors of which the second has one feature left at the stricter point."""
    loose = np.array([[1, 0], [1, 0], [1, 1], [0, 1]], dtype=bool)
    strict = np.array([[1, 0], [1, 0], [1, 0], [0, 1]], dtype=bool)
    factors = LinearFactors(loose.astype(float), np.eye(2), np.full(4, 0.5))
    return Spine(factors, 0.0, [(0.0, 2.0, 5)], 2, [(0.3, 1.5, 4)], np.stack([loose, strict]))


def starts(chosen, bounds=(-6.0, -5.0, -10.0)):
    return pd.DataFrame(
        {
            "start": ["2, linear", "2, network", "none"],
            "n_active": [2, 2, 0],
            "n_nonzero": [5, 5, 0],
            "bound": bounds,
            "chosen": np.arange(3) == chosen,
        }
    )


@pytest.mark.parametrize("chosen, row", [(0, 0), (1, 2), (2, 3)])
def test_each_point_has_its_gain_on_the_scale_of_the_likelihood(spine, chosen, row):
    path = simplicity_path(starts(chosen), spine)
    assert list(path["model"]) == ["linear", "linear", "network", "none"]
    np.testing.assert_allclose(path["gain"], [4.0, 3.0, 5.0, 0.0])
    np.testing.assert_allclose(path["gain_kept"], [0.8, 0.6, 1.0, 0.0])
    np.testing.assert_array_equal(path["n_active"], [2, 1, 2, 0])  # a lone link is no factor
    np.testing.assert_array_equal(path["n_nonzero"], [5, 3, 5, 0])
    np.testing.assert_array_equal(np.flatnonzero(path["chosen"]), [row])


def test_supports_have_room_for_all_factors_allowed(spine):
    supports = linear_supports(spine, 3)
    assert supports.shape == (2, 4, 3)
    np.testing.assert_array_equal(supports.sum((1, 2)), [5, 3])
    assert linear_supports(None, 3) is None


def test_where_networks_settled_the_axes_the_candidates_are_the_points():
    table = starts(1).assign(start=["2", "3", "none"])
    path = simplicity_path(table, None)
    assert list(path["model"]) == ["2", "3", "none"]
    assert path["shrinkage"].isna().all()
    np.testing.assert_allclose(path["gain_kept"], [0.8, 1.0, 0.0])


def test_nothing_gained_keeps_no_share_and_nothing_compared_has_no_path(spine):
    path = simplicity_path(starts(2, bounds=(-10.5, -11.0, -10.0)), None)
    assert path["gain_kept"].isna().all()
    assert simplicity_path(starts(0).iloc[:2], spine) is None


def test_without_held_out_rows_the_candidates_are_named_and_have_no_links(spine):
    bare = spine._replace(path=[], stricter=(), supports=None)
    assert list(simplicity_path(starts(0), bare)["model"]) == ["linear", "network", "none"]
    assert linear_supports(bare, 3) is None


def test_without_a_finite_bound_to_compare_with_there_is_no_path(spine):
    assert simplicity_path(starts(2, bounds=(-np.inf, -np.inf, -np.inf)), spine) is None
