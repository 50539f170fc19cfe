"""Pages and claims say what the committed rows say; `tests/docs/test_readme.py` has the README."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsevae.reproduction.overview import render_overview
from sparsevae.reproduction.results import Results
from sparsevae.reproduction.spec import load_spec, load_specs
from sparsevae.reproduction.tables import current_rows, render

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.mark.parametrize("name", load_specs())
def test_a_page_is_what_the_rows_say(name):
    folder, spec = RESULTS / name / "paper", load_spec(name)
    results = Results(folder)
    figures = [folder / f"{name}.png"] if spec.figure else []
    page = render(spec, "paper", current_rows(spec, "paper", results), results.about(), figures)
    assert (folder / "table.md").read_text("utf-8") == page, "draw it anew: sparsevae reproduce NAME --draw"


def test_the_page_of_claims_is_what_the_rows_say():
    assert (RESULTS / "claims-paper.md").read_text("utf-8") == render_overview(RESULTS, "paper")
