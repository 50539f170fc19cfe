"""Files and directories are replaced as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsevae.persistence import replacing, replacing_directory


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


@pytest.fixture
def folder(tmp_path):
    """A directory with one file in it, which nothing lies beside."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    return folder


def replace(folder: Path) -> None:
    with replacing_directory(folder) as written:
        (written / "new.txt").write_text("new")
        assert (folder / "old.txt").read_text() == "old"


def test_a_directory_gets_its_name_when_it_is_complete(folder):
    replace(folder)
    assert [path.name for path in folder.iterdir()] == ["new.txt"]
    assert list(folder.parent.iterdir()) == [folder]


def test_a_new_directory_has_the_usual_permissions_and_its_parents(tmp_path):
    (tmp_path / "usual").mkdir()
    with replacing_directory(tmp_path / "a" / "b"):
        pass
    assert (tmp_path / "a" / "b").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("error", [OSError("gone away"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", [0, 1])
def test_the_old_directory_is_put_back_if_a_rename_fails(folder, monkeypatch, error, step):
    rename, calls = Path.rename, []

    def stuck(self, target):
        calls.append(target)
        if len(calls) == step + 1:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stuck)
    with pytest.raises(type(error)):
        replace(folder)
    assert [path.name for path in folder.iterdir()] == ["old.txt"]
    assert list(folder.parent.iterdir()) == [folder]


def test_ctrl_c_after_the_last_rename_leaves_the_new_directory_alone(folder, monkeypatch):
    rename = Path.rename

    def late(self, target):
        done = rename(self, target)
        if Path(target) == folder:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Path, "rename", late)
    with pytest.raises(KeyboardInterrupt):
        replace(folder)
    assert [path.name for path in folder.iterdir()] == ["new.txt"]
    assert list(folder.parent.iterdir()) == [folder]


def test_the_old_directory_is_never_deleted_without_one_in_its_place(folder, monkeypatch):
    rename = Path.rename

    def stuck(self, target):
        if Path(target) == folder:
            raise OSError("gone away")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stuck)
    with pytest.raises(OSError, match="gone away"):
        replace(folder)
    (kept,) = folder.parent.iterdir()
    assert [path.name for path in kept.iterdir()] == ["old.txt"]
