from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sparsevae.exceptions import DataError
from sparsevae.io.record import read_record, to_json


def test_what_is_written_is_read_again(tmp_path):
    content = {"mask": np.eye(2), "n": np.int64(3), "path": Path("a") / "b", "name": None}
    for compact in (True, False):
        (tmp_path / "r.json").write_text(to_json(content, compact=compact), "utf-8")
        expected = {"mask": [[1.0, 0.0], [0.0, 1.0]], "n": 3, "path": str(Path("a") / "b"), "name": None}
        assert read_record(tmp_path / "r.json") == expected


def test_a_record_that_is_absent_is_none(tmp_path):
    assert read_record(tmp_path / "r.json") is None


@pytest.mark.parametrize("text,phrase", [("{", "cut off or changed"), ("[]", "something else")])
def test_a_damaged_record_is_refused(tmp_path, text, phrase):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=phrase):
        read_record(tmp_path / "r.json")


def test_what_json_cannot_hold_is_an_error():
    with pytest.raises(TypeError, match="got set"):
        to_json({1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(float("nan"))
    assert json.loads(to_json("ü")) == "ü"
