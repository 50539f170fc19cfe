"""Names from a table are text wherever they go: no formula in a spreadsheet, no command to a terminal."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from sparsevae import read_table
from sparsevae.io.spreadsheet import neutralise_text

from .helpers import invoke

NAMES = ["=cmd|'/C calc'!A0", "+1", "-x", "@SUM(A1)", "plain"]
SAMPLES = [f"=HYPERLINK({i})" for i in range(40)]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, frame):
    """A table whose names are formulas."""
    path = tmp_path_factory.mktemp("hostile") / "table.csv"
    table = frame.set_axis(NAMES, axis=1).set_axis(SAMPLES, axis=0)
    table.to_csv(path, index_label="who", quoting=csv.QUOTE_ALL)
    return path


def cells(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [cell for row in csv.reader(file) for cell in row]


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_no_cell_of_a_run_or_a_report_is_a_formula(hostile, quick, tmp_path):
    run = tmp_path / "run"
    for command in (
        ("fit", hostile, "--out", run, "--config", quick),
        ("report", run, "-o", tmp_path / "report.html"),
        ("stability", run, hostile, "-n", "1", "--jobs", "1"),
        ("replicate", hostile, "-o", tmp_path / "again", "-n", "1", "--config", quick, "--jobs", "1"),
        ("transform", run, hostile, "-o", tmp_path / "factors.csv"),
        ("transform", run, hostile, "-o", tmp_path / "factors.tsv"),
    ):
        result = invoke(*command)
        assert result.exit_code == 0, result.stderr
    written = [*tmp_path.rglob("*.csv"), *tmp_path.rglob("*.tsv")]
    assert len(written) == 14
    for path in written:
        wrong = [cell for cell in cells(path) if cell[:1] in tuple("=+-@\t") and not is_number(cell)]
        assert not [cell for cell in wrong if cell], path
    record = json.loads((run / "run.json").read_text("utf-8"))
    assert record["renamed"] == {neutralise_text(name): name for name in (*NAMES[:4], *SAMPLES)}
    again = read_table(run / "factors.csv")
    assert list(again.sample_names) == SAMPLES


def test_raw_names_are_written_for_those_who_join_tables(hostile, quick, tmp_path):
    run = tmp_path / "run"
    result = invoke("fit", hostile, "--out", run, "--config", quick, "--raw-names")
    assert result.exit_code == 0, result.stderr
    assert NAMES[0] in cells(run / "loadings.csv")
    assert SAMPLES[3] in cells(run / "factors.csv")
    assert json.loads((run / "run.json").read_text("utf-8"))["renamed"] == {}
    printed = invoke("transform", run, hostile)  # as the run was written
    assert SAMPLES[3] in printed.stdout
    assert f"'{SAMPLES[3]}" not in printed.stdout
    page = invoke("report", run, "-o", tmp_path / "report.html")
    assert page.exit_code == 0, page.stderr
    assert f"'{NAMES[0]}" in cells(tmp_path / "report.features.csv")  # meant for spreadsheets


def test_escape_codes_do_not_reach_the_terminal(tmp_path, quick):
    rng = np.random.default_rng(0)
    name = "\x1b]0;pwned\x07a"
    rows = "".join(f"{x},{x + y},{x - y}\n" for x, y in rng.standard_normal((30, 2)))
    (tmp_path / "t.csv").write_text(f"{name},b,c\n{rows}")
    fitted = invoke("fit", tmp_path / "t.csv", "--out", tmp_path / "run", "--config", quick)
    assert fitted.exit_code == 0, fitted.stderr
    shown = invoke("report", tmp_path / "run", "-o", tmp_path / "r.html")
    (tmp_path / "bad.csv").write_text(f"{name},b\nx,1\nx,2\nz,3\n")
    refused = invoke("fit", tmp_path / "bad.csv", "--out", tmp_path / "other")
    for result in (fitted, shown, refused):
        assert "\x1b" not in result.output + result.stderr
        assert "\x07" not in result.output + result.stderr
    assert "]0;pwneda" in refused.stderr
    assert "\x1b" not in (tmp_path / "run" / "log.txt").read_text()
