"""Damaged files get one sentence from every command that reads them, and no traceback."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from .helpers import invoke, refusal


def with_key(*keys, value):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


RECORDS = {
    "unknown key": with_key("reading", "colour", value="red"),
    "drop null": with_key("reading", "drop", value=None),
    "drop numbers": with_key("reading", "drop", value=[1, 2]),
    "transpose text": with_key("reading", "transpose", value="no"),
    "assumptions": with_key("assumptions", value=5),
    "sentences": with_key("assumptions", value=[5]),
    "settings": with_key("settings", value=[]),
    "data": with_key("data", value=[]),
    "samples": with_key("data", "n_samples", value="many"),
    "created": with_key("created", value=5),
    "versions": with_key("versions", value="new"),
}


@pytest.fixture
def run(shared, tmp_path):
    return shutil.copytree(shared / "run", tmp_path / "run")


@pytest.mark.parametrize("change", RECORDS.values(), ids=RECORDS)
def test_a_changed_run_json_is_refused_in_words(run, shared, tmp_path, change):
    record = json.loads((run / "run.json").read_text("utf-8"))
    change(record)
    (run / "run.json").write_text(json.dumps(record), "utf-8")
    report = ("report", run, "-o", tmp_path / "report.html")
    if "colour" in record["reading"]:  # of a later version, perhaps
        assert invoke(*report).exit_code == 0
        assert invoke("transform", run, shared / "table.csv").exit_code == 0
        return
    assert "run.json to be as sparsevae wrote it; it is damaged" in refusal(*report)


@pytest.mark.parametrize("name", ["run.json", "evidence.json", "stability.json", "model/model.json"])
@pytest.mark.parametrize("content", ["[" * 100_000, "{", "[]", '{"a": 1}', "", "\x00\xff"], ids=range(6))
def test_a_json_file_of_another_kind_is_refused_in_words(run, tmp_path, name, content):
    (run / name).write_text(content, "latin-1")
    result = invoke("report", run, "-o", tmp_path / "report.html")
    assert result.exit_code in (0, 1)
    assert "defect" not in result.stderr
    assert "Traceback" not in result.stderr
    if name != "evidence.json":
        assert result.exit_code == 1


@pytest.mark.parametrize("size", [100, 500])
def test_a_table_that_was_cut_off_says_so(shared, tmp_path, size):
    packed = gzip.compress((shared / "table.csv").read_bytes())
    (tmp_path / "t.csv.gz").write_bytes(packed[:size])
    assert "the file is cut off" in refusal("fit", tmp_path / "t.csv.gz", "--out", tmp_path / "run")


def test_an_error_that_nobody_foresaw_says_that_it_is_a_defect(shared, tmp_path, monkeypatch):
    def fail(*args, **options):
        raise LookupError("lost")

    monkeypatch.setattr("sparsevae.cli.fit.read_table", fail)
    result = invoke("fit", shared / "table.csv", "--out", tmp_path / "run")
    assert result.exit_code == 70
    assert "Error: lost (LookupError). This is a defect of sparsevae" in result.stderr
    assert "SPARSEVAE_DEBUG=1" in result.stderr
    monkeypatch.setenv("SPARSEVAE_DEBUG", "1")
    assert isinstance(invoke("fit", shared / "table.csv", "--out", tmp_path / "run").exception, LookupError)
