"""A small model with names from strangers, its report, and a browser where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparsevae import SparseVAE
from sparsevae.report import build_content, write_report

from .browser import Browser, find_browser

HOSTILE = [
    "<script>window.broken = 1</script>",
    "</script><img src=x onerror='window.broken = 2'>",
    "\"quoted\" & 'single' `tick` ${x} {{ 7 * 7 }}",
    "emoji 🙂 عربى \u202eabc",
    "long " + "x" * 10_000,
    "<!--",
    "=1+1",
    "plain",
]


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    """Two factors, three features for each, one of both and one of none."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 150))
    signal = np.column_stack([a, 2 * a, -a, b, 3 * b, b, a + b, np.zeros(150)])
    return pd.DataFrame(signal + 0.3 * rng.standard_normal(signal.shape), columns=HOSTILE)


@pytest.fixture(scope="session")
def model(table, linear_model) -> SparseVAE:
    a, b = np.random.default_rng(0).standard_normal((2, 150))
    strong = 0.95
    mask = np.array([[strong, 0]] * 2 + [[-strong, 0]] + [[0, strong]] * 3 + [[0.7, 0.7], [0, 0]])
    return linear_model(table, np.column_stack([a, b]), mask)


@pytest.fixture(scope="session")
def evidence(model, table) -> dict[str, Any]:
    samples = [f"<b>sample {i}</b>" for i in range(len(table))]
    return model.evidence(table, samples=samples, table_name="<i>table</i>.csv")


@pytest.fixture(scope="session")
def content(model, evidence) -> dict[str, Any]:
    return build_content(model, evidence=evidence, title="Answers of <em>strangers</em>")


@pytest.fixture(scope="session")
def written(content, tmp_path_factory):
    """A report on disk, by what its files hold."""
    return write_report(content, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def chromium():
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium here to open the report in: apt-get install chromium")
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.fixture
def page(chromium, written):
    """The report, opened anew."""
    chromium.problems.clear()
    chromium.emulate()
    chromium.open(written["page"])
    return chromium
