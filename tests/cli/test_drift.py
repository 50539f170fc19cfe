from __future__ import annotations

import json

import numpy as np
import pytest

from .helpers import invoke, refusal


@pytest.fixture
def new(frame, tmp_path):
    """Rows like those of the fit, with one item shifted far."""
    other = frame.copy()
    other["item 1"] += 20.0 * other["item 1"].std()
    other.to_csv(tmp_path / "new.csv")
    return tmp_path / "new.csv"


def test_it_says_what_has_changed(shared, new):
    result = invoke("drift", shared / "run", new)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("40 new rows.")
    assert "item 1: shift" in result.stdout


def test_json_has_every_feature_and_factor(shared, new):
    record = json.loads(invoke("drift", shared / "run", new, "--json").stdout)
    assert "item 1" in record["broken"]
    assert len(record["features"]) == 5
    assert {"p_value", "adjusted", "shift", "slope", "column_p_value"} <= record["features"][0].keys()
    assert np.isfinite(record["level"])


def test_a_page_and_its_content_are_written(shared, new, tmp_path):
    page = tmp_path / "drift.html"
    assert invoke("drift", shared / "run", new, "-o", page).exit_code == 0
    text = page.read_text("utf-8")
    assert text.count('<div class="scroll"><table>') == 2  # wide tables scroll, and not the page
    assert "Drift of new.csv from table.csv" in text
    assert "<td>item 1</td>" in text
    assert "http" not in text.replace("http-equiv", "")
    assert json.loads((tmp_path / "drift.json").read_text("utf-8"))["n_samples"] == 40
    assert "Add --force" in refusal("drift", shared / "run", new, "-o", page)
    page.unlink()
    assert "drift.json exists" in refusal("drift", shared / "run", new, "-o", page)
    assert "ends in .html" in refusal("drift", shared / "run", new, "-o", tmp_path / "drift.pdf")


def test_a_place_that_cannot_be_written_is_refused_before_the_work(shared, tmp_path):
    (tmp_path / "file").write_text("")
    page = tmp_path / "file" / "drift.html"
    said = refusal("drift", shared / "run", tmp_path / "there is none.csv", "-o", page)
    assert "file" in said
    assert "there is none" not in said


def test_a_table_with_other_columns_is_refused(shared, frame, tmp_path):
    frame.rename(columns={"item 0": "other"}).to_csv(tmp_path / "other.csv")
    assert "'item 0' is missing" in refusal("drift", shared / "run", tmp_path / "other.csv")
