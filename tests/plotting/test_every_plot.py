"""Every plot draws on the axes it is given, or on new ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from sparsevae import SparseVAE
from sparsevae.identifiability import Stability
from sparsevae.plotting import (
    plot_embedding,
    plot_factor_correlation,
    plot_history,
    plot_mask,
    plot_paths,
    plot_response,
    plot_sparsity_path,
    plot_stability,
    plot_variance,
    plot_weights,
)

from .helpers import rendered


def refits(model):
    names = model.get_feature_names_out()[model.active_factors_]
    chosen = pd.DataFrame(
        0.9 * (model.loadings() != 0).to_numpy(), index=model.feature_names(), columns=names
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
    "variance": lambda model, **axes: plot_variance(model, **axes),
    "weights": lambda model, **axes: plot_weights(model, **axes),
    "paths": lambda model, **axes: plot_paths(model, **axes),
    "embedding": lambda model, **axes: plot_embedding(np.zeros((5, 2)), **axes),
}
every_plot = pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)


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


@every_plot
def test_a_new_figure_is_the_one_that_pyplot_shows(plot, small):
    ax = plot(small[0])
    assert pyplot.get_fignums() == [ax.figure.number]
    assert pyplot.gcf() is ax.figure


@every_plot
def test_given_axes_open_no_figure(plot, small):
    plot(small[0], ax=Figure().subplots())
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("plot", [plot_mask, plot_factor_correlation, plot_history, plot_sparsity_path])
def test_a_model_without_fit_is_refused(plot):
    with pytest.raises(NotFittedError):
        plot(SparseVAE())
