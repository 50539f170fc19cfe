"""Three thousand features and fifty factors on one page."""

from __future__ import annotations

import numpy as np
import pytest

from sparsevae.report import build_content, write_report


@pytest.fixture(scope="module", params=[3, 25], ids=["sparse", "half full"])
def large_page(request, linear_model, tmp_path_factory):
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((30, 50))
    loadings = np.zeros((3000, 50))
    for j, row in enumerate(loadings):
        own = (j + np.arange(request.param)) % 50
        row[own] = rng.uniform(0.1, 0.6, len(own))
    X = factors @ loadings.T + 0.3 * rng.standard_normal((30, 3000))
    model = linear_model(X, factors, loadings)
    content = build_content(model, evidence=model.evidence(X))
    return write_report(content, tmp_path_factory.mktemp("large") / "report.html")["page"]


def test_a_large_page_is_under_ten_megabytes(large_page):
    assert large_page.stat().st_size < 10e6


def test_a_large_page_opens_without_complaint_and_can_be_searched(large_page, chromium):
    chromium.problems.clear()
    chromium.emulate()
    chromium.open(large_page)
    chromium.evaluate("document.querySelector('#search').focus()")
    chromium.type("x2999")
    chromium.evaluate("new Promise(done => setTimeout(done, 300))")
    assert chromium.evaluate("document.querySelector('#search-status').textContent").startswith("1 feature")
    assert chromium.problems == []
