from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.plotting import plot_groups, plot_structure
from sparsevae.plotting.groups import _apart

from .helpers import rendered

# Background cells are below the average of every factor, as T cells are where factors are of other cells.
CODES = np.array([[2.0, -0.5, 0.0], [-0.5, 1.5, 0.0], [-0.7, -0.4, 0.0], [0.2, -0.4, 0.0], [1.0, 3.0, 0.0]])


def heights(ax):
    """Of the bars: (n_samples, n_parts), as they are drawn from left to right."""
    return np.column_stack(
        [part.get_data().values - np.asarray(part.get_data().baseline) for part in ax.patches]
    )


def test_every_sample_has_a_whole_bar():
    parts = heights(plot_structure(CODES))
    assert parts.sum(1) == pytest.approx(1.0)
    assert sorted(parts[:, -1]) == pytest.approx([0.0, 0.0, 0.0, 0.8, 1.0])


def test_a_sample_near_the_average_is_not_given_to_the_factor_it_is_slightly_high_in():
    parts = heights(plot_structure(CODES[[0, 3], :1]))
    assert parts.tolist() == [[1.0, 0.0], [pytest.approx(0.2), pytest.approx(0.8)]]


def test_factors_that_are_not_used_are_left_out():
    table = pd.DataFrame(CODES, columns=["one", "two", "unused"])
    shown = [text.get_text() for text in plot_structure(table).get_legend().get_texts()]
    assert shown == ["one", "two", "average or below"]
    dots = plot_groups(table, list("aabbb"))
    assert [label.get_text() for label in dots.get_xticklabels()] == ["one", "two"]


def test_names_of_narrow_groups_do_not_cover_each_other():
    assert _apart(np.array([10.0, 50.0]), 5.0).tolist() == [10.0, 50.0]
    near = _apart(np.array([10.0, 48.0, 49.0, 50.0]), 5.0)
    assert near.tolist() == [10.0, 40.0, 45.0, 50.0]


def test_a_dot_plot_of_two_groups_has_room_for_its_scale():
    ax = plot_groups(CODES, list("aabbb"))
    rendered(ax)
    label = ax.figure.axes[1].yaxis.label.get_window_extent()
    assert label.y0 >= 0
    assert label.y1 <= ax.figure.bbox.height


def test_a_dot_plot_says_what_the_sizes_are():
    legend = plot_groups(CODES, list("aabbb")).get_legend()
    assert legend.get_title().get_text() == "samples above zero"
    assert [text.get_text() for text in legend.get_texts()] == ["10%", "50%", "100%"]
