from __future__ import annotations

import json

import pytest

from sparsevae._version import installed_versions
from sparsevae.exceptions import DataError
from sparsevae.runs.record import RUN_FORMAT, read_run_record


def test_a_record_says_how_the_fit_was_made(run, table):
    record = read_run_record(run.path)
    assert record["format"] == RUN_FORMAT
    assert record["versions"] == installed_versions()
    assert record["data"] == {**table.fingerprint(), "n_samples": 40, "n_features": 5}
    assert record["reading"]["drop"] == []
    assert record["settings"]["n_init"] == 1
    assert "verbose" not in record["settings"]
    assert record["result"]["n_active"] == len(record["result"]["factors"])


@pytest.mark.parametrize("part,name", [("reading", "drop"), ("data", "sha256"), ("data", None)])
def test_a_record_that_lacks_a_part_is_refused(run, part, name):
    record = json.loads((run.path / "run.json").read_text("utf-8"))
    if name is None:
        record[part] = None
    else:
        del record[part][name]
    (run.path / "run.json").write_text(json.dumps(record), "utf-8")
    with pytest.raises(DataError, match=f"is missing in '{part}'|'{part}' in the record is no dict"):
        read_run_record(run.path)


@pytest.mark.parametrize(
    "text,phrase", [("{", "damaged"), ("[]", "damaged"), ('{"format": 99}', "format 99")]
)
def test_a_record_of_something_else_is_refused(tmp_path, text, phrase):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(DataError, match=phrase):
        read_run_record(tmp_path)


@pytest.mark.parametrize("value", ["words", 3, ["column"]])
def test_options_of_text_that_are_none_are_refused(run, value):
    record = json.loads((run.path / "run.json").read_text("utf-8"))
    record["reading"]["text"] = value
    (run.path / "run.json").write_text(json.dumps(record), "utf-8")
    with pytest.raises(DataError, match="'text' in 'reading' is no dict"):
        read_run_record(run.path)
