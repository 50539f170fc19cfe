from __future__ import annotations

import json
import warnings

import pandas as pd
import pytest

from sparsevae import Run, stability
from sparsevae.exceptions import ConvergenceWarning, ParameterError
from sparsevae.report import build_content

from ..cli.helpers import invoke, refusal

TABLES = ("loadings.csv", "effects.csv", "factors.csv")


@pytest.fixture
def whole(run, table):
    """A run with refits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run.add_stability(stability(run.model(), table.for_estimator(), 1, n_jobs=1))
    return run


def test_every_file_has_the_new_name_and_the_old_numbers(whole):
    old = str(whole.model().loadings().columns[0])
    before = {name: (whole.path / name).read_text("utf-8") for name in (*TABLES, "selection.csv")}
    assert whole.name_factors({0: "zeal, and all"}) is whole
    run = Run.open(whole.path)
    assert run.model().get_feature_names_out()[0] == "zeal, and all"
    assert run.record["result"]["factors"][0]["name"] == "zeal, and all"
    for name, text in before.items():
        frame = pd.read_csv(run.path / name, index_col=0)
        assert frame.columns[0] == "zeal, and all"
        assert (run.path / name).read_text("utf-8").split("\n", 1)[1] == text.split("\n", 1)[1]
    assert pd.read_csv(run.path / "stability.csv").iloc[0, 0] == "zeal, and all"
    assert run.stability().reproducibility.index[0] == "zeal, and all"
    for name in ("evidence.json", "stability.json", "run.json"):
        assert old not in (run.path / name).read_text("utf-8")


def test_a_report_of_a_named_run_says_the_name(whole):
    run = Run.open(whole.name_factors({0: "zeal"}).path)
    content = build_content(run.model(), evidence=run.evidence(), stability=run.stability())
    factor = content["factors"][0]
    assert factor["name"] == "zeal"
    assert factor["certificate"]["verdict"]
    assert factor["stability"]["reproducibility"] is not None
    assert "The factor, zeal, explains" in " ".join(content["summary"])


def test_a_name_that_is_refused_leaves_the_run_as_it_was(run):
    before = {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}
    with pytest.raises(ParameterError, match="Expected a factor by its position"):
        run.name_factors({99: "zeal"})
    assert {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()} == before
    assert "zeal" not in run.model().get_feature_names_out()


def test_the_command_names_lists_and_takes_back(run):
    result = invoke("name", run.path, "0=zeal")
    assert result.exit_code == 0, result.stderr
    assert "0  zeal  (" in result.stdout
    assert json.loads(invoke("name", run.path, "--json").stdout)["factors"]["0"] == "zeal"
    assert invoke("name", run.path, "zeal=").stdout.startswith("0  sparsevae0")
    assert "FACTOR=NAME" in refusal("name", run.path, "zeal")
    assert "by its position" in refusal("name", run.path, "7=zeal")


def test_a_name_like_a_formula_is_text_in_the_tables_and_itself_everywhere_else(whole):
    run = Run.open(whole.name_factors({0: "=1+1"}).path)
    assert run.model().get_feature_names_out()[0] == "=1+1"
    assert run.record["renamed"] == {"'=1+1": "=1+1"}
    for name in (*TABLES, "selection.csv"):
        assert pd.read_csv(run.path / name, index_col=0).columns[0] == "'=1+1"
    assert pd.read_csv(run.path / "stability.csv").iloc[0, 0] == "'=1+1"
    run.name_factors({0: "zeal"})
    assert pd.read_csv(run.path / "loadings.csv", index_col=0).columns[0] == "zeal"


def test_names_stay_raw_where_that_was_asked_for(model, table, tmp_path):
    run = Run.create(tmp_path / "run", model, table, raw_names=True)
    run.name_factors({0: "=1+1"})
    assert pd.read_csv(run.path / "loadings.csv", index_col=0).columns[0] == "=1+1"
    assert run.record["renamed"] == {}


def test_a_mark_that_a_crash_has_left_does_not_hinder(run):
    (run.path / ".complete").write_bytes(b"")
    run.name_factors({0: "zeal"})
    assert not (run.path / ".complete").exists()
    assert Run.open(run.path).model().get_feature_names_out()[0] == "zeal"
