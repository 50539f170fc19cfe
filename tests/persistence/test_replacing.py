"""Files are replaced as a whole or not at all."""

from __future__ import annotations

import pytest

from sparsevae.persistence import replacing


def test_a_file_gets_its_name_when_it_is_complete(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("old", "utf-8")
    with replacing(path) as partial:
        partial.write_text("new", "utf-8")
        assert partial.parent == tmp_path
        assert partial.suffix == ".csv"
        assert path.read_text("utf-8") == "old"
    assert path.read_text("utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("old", "utf-8")

    def fail() -> None:
        with replacing(path) as partial:
            partial.write_text("ne", "utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
