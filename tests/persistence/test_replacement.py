"""Files are replaced as a whole or not at all, alone or as a set."""

from __future__ import annotations

import json
import os

import pytest

from sparsevae.persistence import check_writable, finish_replacement, replacing, replacing_together

NOBODY = 2**22 + 7  # no process has this number


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


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    left = tmp_path / f".rows.{NOBODY}.partial.csv"
    written = tmp_path / f".rows.{os.getppid()}.partial.csv"
    mine = tmp_path / ".rows.backup.partial.csv"
    for path in (left, written, mine):
        path.write_text("x")
    with replacing(tmp_path / "rows.csv") as partial:
        partial.write_text("new")
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", written.name, mine.name}


@pytest.fixture
def pair(tmp_path):
    """Two files that belong together."""
    paths = [tmp_path / "report.html", tmp_path / "report.json"]
    for path in paths:
        path.write_text("old")
    return paths


def test_a_set_gets_its_names_together(pair):
    with replacing_together(pair) as partials:
        for partial in partials:
            partial.write_text("new")
        assert [path.read_text() for path in pair] == ["old", "old"]
    assert [path.read_text() for path in pair] == ["new", "new"]
    assert sorted(pair[0].parent.iterdir()) == pair


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_a_set_that_is_not_written_leaves_the_old_one(pair, error):
    def fail() -> None:
        with replacing_together(pair) as partials:
            partials[0].write_text("new")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [path.read_text() for path in pair] == ["old", "old"]
    assert sorted(pair[0].parent.iterdir()) == pair


def test_a_set_that_was_decided_on_is_finished_by_the_next(pair, monkeypatch):
    replace, calls = os.replace, []

    def stuck(source, target):
        calls.append(target)
        if len(calls) == 3:  # the list, the page, and then
            raise KeyboardInterrupt
        return replace(source, target)

    monkeypatch.setattr(os, "replace", stuck)

    def fail() -> None:
        with replacing_together(pair) as partials:
            for partial in partials:
                partial.write_text("new")

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [path.read_text() for path in pair] == ["new", "old"]
    assert finish_replacement(pair)
    assert [path.read_text() for path in pair] == ["new", "new"]
    assert sorted(pair[0].parent.iterdir()) == pair
    assert not finish_replacement(pair)


@pytest.mark.parametrize(
    "renames",
    [{"../secret": "report.html"}, {"secret": "report.json"}, {".report.7.partial.json": "secret"}, [], 3],
)
def test_a_list_of_renames_that_names_other_files_is_not_believed(pair, renames):
    folder = pair[0].parent
    (folder / "secret").write_text("mine")
    (folder / ".report.7.partial.json").write_text("x")
    (folder / ".report.together.json").write_text(json.dumps(renames))
    finish_replacement(pair)
    assert (folder / "secret").read_text() == "mine"
    assert [path.read_text() for path in pair] == ["old", "old"]
    assert not (folder / ".report.together.json").exists()


def test_a_place_that_cannot_be_written_is_found_beforehand(tmp_path):
    check_writable(tmp_path / "new" / "file.csv")
    assert not list((tmp_path / "new").iterdir())
    (tmp_path / "file").write_text("x")
    with pytest.raises(OSError, match=r"Not a directory|exists"):
        check_writable(tmp_path / "file" / "file.csv")
    with pytest.raises(IsADirectoryError):
        check_writable(tmp_path / "new")
