from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest

from sparsevae.exceptions import ParameterError
from sparsevae.plotting import plot_groups, plot_map, plot_paths, plot_structure, plot_variance, plot_weights


@pytest.fixture
def codes(small):
    model, table = small
    return pd.DataFrame(model.transform(table)[:, :2], columns=["zeal", "calm"])


@pytest.fixture
def groups():
    return np.array(["b", "a", "c"] * 40)


def drawn(ax):
    """The picture as it would be saved: whatever cannot be drawn fails here."""
    ax.figure.canvas.draw()
    return ax


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_bars_are_the_variance_of_each_factor(small):
    model, _ = small
    ax = drawn(plot_variance(model))
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], 100 * model.variance_explained_[:2])
    assert labels(ax.yaxis) == ["sparsevae0", "sparsevae1"]


def test_views_are_columns_of_a_heat_map(small):
    model, _ = small
    views = ["one"] * 3 + ["two"] * 4
    ax = drawn(plot_variance(model, views))
    np.testing.assert_allclose(ax.images[0].get_array(), 100 * model.explained_by_view(views).iloc[:-1])
    assert labels(ax.xaxis) == ["one", "two"]


def test_views_that_the_model_knows_are_drawn_unless_bars_are_asked_for(small):
    model = copy.deepcopy(small[0]).set_views(["one"] * 3 + ["two"] * 4)
    assert labels(drawn(plot_variance(model)).xaxis) == ["one", "two"]
    assert len(drawn(plot_variance(model, False)).patches) == 2


def test_weights_are_ranked_and_anchors_filled(small):
    model, _ = small
    ax = drawn(plot_weights(model, "sparsevae1", 3))
    order = model.strongest_features(1)[:3]
    (points,) = [collection for collection in ax.collections if len(collection.get_offsets()) == 3]
    np.testing.assert_allclose(points.get_offsets()[:, 0], model.link_strength()[order, 1])
    filled = [tuple(face) != (1.0, 1.0, 1.0, 1.0) for face in points.get_facecolors()]
    assert filled == ((model.mask_[order] != 0).sum(1) == 1).tolist()
    with pytest.raises(ParameterError, match="Expected factor"):
        plot_weights(model, "anger")


def test_dots_have_the_mean_and_the_fraction_of_each_group(codes, groups):
    ax = drawn(plot_groups(codes, groups))
    assert labels(ax.yaxis) == ["a", "b", "c"]
    assert labels(ax.xaxis) == ["zeal", "calm"]
    points = ax.collections[0]
    np.testing.assert_allclose(points.get_array(), codes.groupby(groups).mean().to_numpy().ravel())
    above = (codes > 0).groupby(groups).mean().to_numpy().ravel()
    assert (np.argsort(points.get_sizes()) == np.argsort(above)).all()


def test_the_parts_of_each_sample_fill_its_bar(codes, groups):
    ax = drawn(plot_structure(codes, groups))
    assert labels(ax.xaxis) == ["a", "b", "c"]
    assert len(ax.patches) == 3
    assert ax.patches[-1].get_data().values == pytest.approx(1.0)
    assert not labels(drawn(plot_structure(codes)).xaxis)


def test_a_map_has_the_principal_components(codes, groups):
    ax = drawn(plot_map(codes, groups))
    assert ax.get_xlabel() == "PCA 1"
    points = np.concatenate([collection.get_offsets() for collection in ax.collections])
    np.testing.assert_allclose(points.var(0).sum(), codes.to_numpy().var(0).sum())
    assert drawn(plot_map(codes[["zeal"]])).get_ylabel() == "PCA 2"


def test_plots_draw_on_the_axes_given(small, codes, groups):
    from matplotlib.figure import Figure

    model, _ = small
    for draw in (
        lambda ax: plot_variance(model, ax=ax),
        lambda ax: plot_weights(model, ax=ax),
        lambda ax: plot_paths(model, ax=ax),
        lambda ax: plot_groups(codes, groups, ax=ax),
        lambda ax: plot_structure(codes, groups, ax=ax),
        lambda ax: plot_map(codes, ax=ax),
    ):
        ax = Figure(figsize=(3, 2)).subplots()
        assert draw(ax) is ax
        drawn(ax)


@pytest.mark.parametrize("plot", [plot_groups, plot_structure])
def test_groups_of_another_length_are_refused(codes, plot):
    with pytest.raises(ParameterError, match="a group for each of 120 samples; got 3"):
        plot(codes, ["a", "b", "c"])
    with pytest.raises(ParameterError, match="Expected codes of shape"):
        plot(np.zeros(3), ["a", "b", "c"])
