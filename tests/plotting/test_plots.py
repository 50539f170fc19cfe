"""Every plot draws on the axes it is given, or on new ones, and shows what it says."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from sparsevae import SparseVAE
from sparsevae.exceptions import ParameterError
from sparsevae.identifiability import Stability
from sparsevae.plotting import (
    plot_embedding,
    plot_factor_correlation,
    plot_history,
    plot_mask,
    plot_response,
    plot_sparsity_path,
    plot_stability,
)
from sparsevae.plotting.style import short
from sparsevae.plotting.training import phase_spans


def refits(model):
    names = model.get_feature_names_out()[model.active_factors_]
    chosen = pd.DataFrame(
        0.9 * (model.loadings() != 0).to_numpy(), index=model._feature_names(), columns=names
    )
    return Stability(
        pd.Series(np.linspace(0.4, 1.0, len(names)), index=names),
        chosen,
        pd.DataFrame(),
        pd.DataFrame({"failure": [""] * 4}),
        "seed",
    )


PLOTS = {
    "mask": lambda model, **axes: plot_mask(model, **axes),
    "correlation": lambda model, **axes: plot_factor_correlation(model, **axes),
    "history": lambda model, **axes: plot_history(model, **axes),
    "path": lambda model, **axes: plot_sparsity_path(model, **axes),
    "response": lambda model, **axes: plot_response(model, 0, **axes),
    "stability": lambda model, **axes: plot_stability(refits(model), **axes),
    "embedding": lambda model, **axes: plot_embedding(np.zeros((5, 2)), **axes),
}
every_plot = pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)


def rendered(ax: Axes) -> bytes:
    file = io.BytesIO()
    ax.figure.savefig(file, format="png", dpi=40)
    return file.getvalue()


@every_plot
@pytest.mark.parametrize("size", ["small", "large"])
def test_it_makes_a_picture_at_any_size(plot, size, request):
    model, _ = request.getfixturevalue(size)
    ax = plot(model)
    width, height = ax.figure.get_size_inches()
    assert 1.0 < width <= 13
    assert 1.0 < height <= 20
    assert rendered(ax).startswith(b"\x89PNG")


@every_plot
def test_it_draws_on_the_axes_it_is_given(plot, small):
    ax = Figure().subplots()
    assert plot(small[0], ax=ax) is ax
    assert ax.has_data()


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


def test_the_terms_of_a_narrow_history_are_named_beside_it(small):
    ax = plot_history(small[0], ax=Figure(figsize=(4, 3)).subplots())
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x0 >= ax.bbox.x1


@every_plot
def test_nothing_stays_open(plot, small):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    plot(small[0])
    assert pyplot.get_fignums() == before


@pytest.mark.parametrize("plot", [plot_mask, plot_factor_correlation, plot_history, plot_sparsity_path])
def test_a_model_without_fit_is_refused(plot):
    with pytest.raises(NotFittedError):
        plot(SparseVAE())


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


def test_a_response_goes_through_its_data(small):
    model, table = small
    ax = plot_response(model, "d", X=table)
    x, y = ax.lines[0].get_data()
    points = ax.collections[0].get_offsets()
    expected = np.interp(points[:, 0], x, y)
    assert np.corrcoef(points[:, 1], expected)[0, 1] > 0.9
    assert ax.get_xlabel() == "sparsevae1" or ax.get_xlabel() == "sparsevae0"


@pytest.mark.parametrize("wanted", [("nobody", None), (99, None), ("d", "factor 9")])
def test_a_name_that_is_not_there_is_refused(small, wanted):
    with pytest.raises(ParameterError, match="to be a name of the fit"):
        plot_response(small[0], *wanted)


def test_labels_are_colours_or_a_scale(rng):
    codes = pd.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
    few = plot_embedding(codes, ["x", "y"] * 20, factors=(0, 2))
    assert [text.get_text() for text in few.get_legend().get_texts()] == ["x", "y"]
    assert few.get_ylabel() == "c"
    many = plot_embedding(codes, [f"kind {i % 12}" for i in range(40)])
    assert "5 other kinds" in [text.get_text() for text in many.get_legend().get_texts()]
    scale = plot_embedding(codes, rng.standard_normal(40))
    assert scale.get_legend() is None
    assert len(scale.figure.axes) == 2


def test_codes_and_labels_must_fit(rng):
    with pytest.raises(ParameterError, match="a label for each"):
        plot_embedding(rng.standard_normal((4, 2)), [1, 2])
    with pytest.raises(ParameterError, match="columns 0 and 5"):
        plot_embedding(rng.standard_normal((4, 2)), factors=(0, 5))


def test_a_path_along_rates_marks_the_chosen_one():
    table = pd.DataFrame({"multiple": [0.5, 1.0, 2.0], "n_nonzero": [9, 7, 3], "score": [-3.0, -2.5, -4.0]})
    table["standard_error"] = [0.1, np.nan, 0.2]
    ax = plot_sparsity_path(SimpleNamespace(table=table, chosen=1))
    assert ax.get_xscale() == "log"
    assert "chosen" in [text.get_text() for text in ax.texts]
    assert rendered(ax)


def test_phases_are_runs_of_epochs():
    history = pd.DataFrame({"phase": ["a", "a", "b", "a"]})
    assert phase_spans(history) == [("a", 1, 2), ("b", 3, 3), ("a", 4, 4)]
    assert phase_spans(pd.DataFrame({"kl": []})) == []


def test_names_are_short_and_no_formulas():
    assert short("x" * 100) == "x" * 18 + "…" + "x" * 9
    assert short("  two\n words ") == "two words"
    assert short("$a$") == r"\$a\$"
    assert short("") == "(no name)"
