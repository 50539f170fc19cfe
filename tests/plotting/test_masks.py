from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from sparsevae.plotting import plot_factor_correlation, plot_mask

from .helpers import rendered


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("plot", [plot_mask, plot_factor_correlation])
@pytest.mark.parametrize("inches", [None, 2.0])
def test_names_have_room_beside_each_other(plot, size, inches, request):
    ax = None if inches is None else Figure(figsize=(inches, inches)).subplots()
    ax = plot(request.getfixturevalue(size)[0], ax=ax)
    for axis, length in ((ax.xaxis, ax.bbox.width), (ax.yaxis, ax.bbox.height)):
        low, high = sorted(axis.get_view_interval())
        gap = np.diff(axis.get_majorticklocs()).min(initial=high - low) / (high - low)
        assert gap * length / ax.figure.dpi >= 0.15


def test_the_mask_is_white_where_it_is_zero(small):
    model, _ = small
    image = plot_mask(model).images[0].get_array()
    assert image.shape == (7, 2)
    assert (~np.ma.getmaskarray(image)).sum() == (model.mask_ != 0).sum()
    assert np.abs(image).max() <= 1.0


def test_features_of_one_factor_stand_together(small):
    model, _ = small
    image = plot_mask(model).images[0].get_array()
    strongest = np.abs(image.filled(0.0)).argmax(1)
    assert (np.diff(strongest) >= 0).all()


def test_a_single_link_among_thousands_stays_visible(large):
    model, _ = large
    image = plot_mask(model).images[0].get_array()
    assert len(image) <= 700
    assert (~np.ma.getmaskarray(image)).any(0).all()
    assert np.abs(image).max() > 0.5


def test_a_model_without_factors_can_be_drawn(small, linear_model):
    _, table = small
    model = linear_model(table, np.zeros((120, 2)), np.zeros((7, 2)))
    assert rendered(plot_mask(model))
