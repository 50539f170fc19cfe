"""The trade of simplicity on a page: points, their links, a picture, a slider and a table."""

from __future__ import annotations

from copy import copy

import numpy as np
import pandas as pd
import pytest

from sparsevae.report import build_content, write_report
from sparsevae.report.trade import describe_point, draw_trade, trade_steps


@pytest.fixture(scope="module")
def walked(model):
    """The model with a path: one link more, the same, and two links fewer, and a network that was chosen."""
    model = copy(model)
    own = model.mask_ != 0
    richer, simpler = own.copy(), own.copy()
    richer[7, 0] = True
    simpler[6] = False
    model.path_supports_ = np.stack([richer, own, simpler])
    n = int(own.sum())
    model.simplicity_path_ = pd.DataFrame(
        {
            "model": ["linear"] * 3 + ["network", "none"],
            "shrinkage": [0.0, 0.1, 0.2, np.nan, np.nan],
            "n_active": [2, 2, 2, 2, 0],
            "n_nonzero": [n + 1, n, n - 2, n, 0],
            "gain": [4.9, 4.8, 4.5, 5.0, 0.0],
            "gain_kept": [0.98, 0.96, 0.9, 1.0, 0.0],
            "chosen": [False, False, False, True, False],
        }
    )
    return model


@pytest.fixture(scope="module")
def points(walked):
    return build_content(walked)["trade"]


def test_points_refer_to_the_links_of_the_fit(points, walked):
    content = build_content(walked)
    richer, same, simpler, network, none = points
    assert richer["gone"] == []
    assert len(richer["more"]) == 1
    assert (same["gone"], same["more"]) == (network["gone"], network["more"]) == ([], [])
    assert [content["links"]["feature"][link] for link in simpler["gone"]] == [6, 6]
    assert none["gone"] is None


def test_the_walk_goes_from_rich_to_simple_and_stops_at_the_fit(points):
    assert trade_steps(points) == [0, 3, 2]
    assert describe_point(points[3]) == "8 links on 2 factors keep 100% of the best gain: this fit."


def test_a_model_without_a_path_has_no_trade(model):
    content = build_content(model)
    assert content["trade"] == []
    assert draw_trade([]) == ""


def test_points_on_other_axes_are_drawn_and_not_walked(walked):
    model = copy(walked)
    del model.path_supports_
    points = build_content(model)["trade"]
    assert trade_steps(points) == []
    assert draw_trade(points).count("<circle") == 4


@pytest.fixture
def trade_page(chromium, walked, tmp_path):
    write_report(build_content(walked), tmp_path / "trade.html")
    chromium.problems.clear()
    chromium.emulate()
    chromium.open(tmp_path / "trade.html")
    return chromium


def test_links_disappear_as_the_slider_is_moved_by_key_and_come_back(trade_page):
    def gone():
        return trade_page.evaluate("document.querySelectorAll('tr.gone').length")

    def status():
        return trade_page.evaluate("document.querySelector('#simplicity-status').textContent")

    assert "this fit" in status()
    assert gone() == 0
    trade_page.evaluate("document.querySelector('#simplicity').focus()")
    trade_page.press("ArrowRight")
    assert status() == "6 links on 2 factors keep 90% of the best gain. Links: 2 of this fit left out."
    assert gone() == 2
    trade_page.click("#simplicity-back")
    assert "this fit" in status()
    assert gone() == 0
    trade_page.press("ArrowLeft")
    assert status().endswith("Links: 1 beyond it, outlined.")
    assert trade_page.evaluate("document.querySelectorAll('#trade-table tbody tr').length") == 5
    assert trade_page.problems == []
