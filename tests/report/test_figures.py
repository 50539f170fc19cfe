"""Pictures are well-formed SVG, also for data that are flat, few or far out."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from sparsevae.report.figures import correlation_figure, curve_figure, history_figure, path_figure
from sparsevae.report.mask_figure import draw_mask

GRID = np.linspace(-2.5, 2.5, 41)


def curve(values, at=(), points=()):
    return {"grid": GRID.tolist(), "curve": list(values), "at": list(at), "points": list(points)}


@pytest.mark.parametrize(
    "values, at, points",
    [(2 * GRID, [0.0, 1.0], [0.1, 1e9]), (np.zeros(41), [], []), (GRID**2, [0.5], [None])],
    ids=["outlier", "flat", "missing"],
)
def test_a_curve_is_drawn_whatever_its_data(values, at, points):
    svg = ElementTree.fromstring(curve_figure(curve(values, at, points), "<a> & 'b'", "factor"))
    assert "<a> & 'b'" in svg.get("aria-label")
    paths = [item for item in svg.iter() if item.get("class") == "curve"]
    assert len(paths) == 1
    assert "nan" not in paths[0].get("d")


def test_an_outlier_does_not_flatten_the_curve():
    rng = np.random.default_rng(0)
    at = rng.standard_normal(200)
    points = 2 * at
    points[0] = 1e6
    figure = curve_figure(curve(2 * GRID, at, points), "a", "b")
    path = next(item for item in ElementTree.fromstring(figure).iter() if item.get("class") == "curve").get(
        "d"
    )
    heights = [float(pair.split()[1]) for pair in path.strip("M").split("L")]
    assert max(heights) - min(heights) > 60


def test_the_words_say_where_a_curve_goes():
    assert "rises" in curve_figure(curve(GRID), "a", "b")
    assert "falls" in curve_figure(curve(-GRID), "a", "b")
    assert "bends" in curve_figure(curve(GRID**2), "a", "b")


def test_histories_are_drawn_with_their_phases():
    history = {
        "epoch": [1, 2, 3, 4],
        "phase": ["dense", "dense", "<final>", "<final>"],
        "objective": [4.0, 3.0, None, 2.0],
        "kl": [0.0, 0.0, 0.0, 0.0],
        "n_nonzero": [10, 10, 5, 4],
    }
    svg = ElementTree.fromstring(history_figure(history))
    assert len([item for item in svg.iter() if "series" in (item.get("class") or "")]) == 1
    assert "<final>" in "".join(svg.itertext())
    assert "to 4 at the end" in path_figure(history)


def test_without_history_there_is_no_picture():
    assert history_figure({"epoch": []}) == ""
    assert path_figure({"epoch": []}) == ""


@pytest.mark.parametrize("n", [1, 2, 50])
def test_correlations_have_a_square_each(n):
    svg = ElementTree.fromstring(correlation_figure(np.eye(n).tolist(), [f"<{k}>" for k in range(n)]))
    assert len([item for item in svg.iter() if item.tag == "rect"]) == n * n


def test_the_mask_on_paper_has_a_cell_for_each_link(content):
    factors = [{**factor, "id": f"F{k}"} for k, factor in enumerate(content["factors"])]
    drawn = draw_mask(content, factors)
    assert sum(d.count("M") for d in re.findall(r' d="([^"]*)"', drawn)) == len(content["links"]["feature"])
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn


def test_many_features_share_rows_of_the_paper_and_the_strongest_is_seen():
    n = 3000
    links = {
        "feature": list(range(n)),
        "factor": [0] * n,
        "strength": [0.1] * n,
        "direction": [1] * n,
    }
    links["strength"][1501], links["direction"][1501] = -0.9, -1
    content = {
        "features": [{"name": str(j)} for j in range(n)],
        "feature_order": list(range(n)),
        "links": links,
    }
    drawn = draw_mask(content, [{"id": "F0"}])
    assert len(drawn) < 20_000
    assert re.search(r'class="neg" fill-opacity="1.0" d="M[^M]*"', drawn)


def test_a_mask_without_factors_has_no_picture():
    assert draw_mask({"features": [{"name": "a"}]}, []) == ""
