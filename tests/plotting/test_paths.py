from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

from sparsevae.plotting import plot_paths

from .helpers import rendered


@pytest.fixture(scope="module")
def correlated(linear_model):
    """Six factors, all of them correlated."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((300, 6)) + rng.standard_normal((300, 1))
    factors /= factors.std(0)
    loadings = np.kron(np.eye(6), np.full((4, 1), 0.9))
    X = factors @ loadings.T + 0.3 * rng.standard_normal((300, 24))
    model = linear_model(X, factors, loadings)
    model.factor_correlation_ = np.corrcoef(factors.T)
    return model


def arrows(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


def numbers(ax):
    """The texts of the correlations."""
    return [text for text in ax.texts if text.get_text().lstrip("−")[:2] == "0."]


def test_a_diagram_has_an_arrow_for_each_link(small):
    model, _ = small
    ax = plot_paths(model, cut=0.0, correlation_cut=0.99)
    assert len(arrows(ax)) == (model.mask_ != 0).sum()
    texts = [text.get_text() for text in ax.texts]
    assert "sparsevae0" in texts
    assert "g" in texts
    fewer = plot_paths(model, cut=0.7, correlation_cut=0.99)
    assert len(arrows(fewer)) == (np.abs(model.link_strength()) >= 0.7).sum()
    assert rendered(fewer).startswith(b"\x89PNG")


def test_it_has_an_arc_with_its_number_for_each_correlation(correlated):
    ax = plot_paths(correlated, cut=0.1, correlation_cut=0.1)
    above = correlated.factor_correlation().to_numpy()[np.tril_indices(6, -1)]
    assert sorted(text.get_text() for text in numbers(ax)) == sorted(f"{value:.2f}" for value in above)
    assert len(arrows(ax)) == (np.abs(correlated.link_strength()) >= 0.1).sum() + len(above)


def test_no_number_of_a_correlation_is_on_another_or_outside(correlated):
    ax = plot_paths(correlated, correlation_cut=0.1)
    rendered(ax)
    boxes = [text.get_window_extent() for text in numbers(ax)]
    assert len(boxes) == 15
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 for box in boxes)


def test_the_strongest_of_many_correlations_are_drawn(correlated):
    assert len(numbers(plot_paths(correlated, correlation_cut=0.0))) == 15
    strong = np.sort(np.abs(correlated.factor_correlation().to_numpy()[np.tril_indices(6, -1)]))[-3]
    assert len(numbers(plot_paths(correlated, correlation_cut=float(strong) - 1e-9))) == 3
