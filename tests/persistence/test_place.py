"""A directory has its place from the beginning of the work, and its name from the moment it is complete."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparsevae.exceptions import DataError, DataWarning
from sparsevae.persistence import place, recover_place, replacing_directory, take_place


@pytest.fixture
def folder(tmp_path):
    """A directory with one file in it, which nothing lies beside."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    return folder


@pytest.fixture(params=["exchange", "two renames"])
def way(request, monkeypatch):
    """Both ways to replace a directory: in one step, and where the system cannot."""
    if request.param == "two renames":
        monkeypatch.setattr(place, "exchange", lambda first, second: False)
    return request.param


def replace(folder: Path) -> None:
    with replacing_directory(folder) as written:
        (written / "new.txt").write_text("new")
        assert (folder / "old.txt").read_text() == "old"


def test_a_directory_gets_its_name_when_it_is_complete(folder, way):
    replace(folder)
    assert [path.name for path in folder.iterdir()] == ["new.txt"]
    assert list(folder.parent.iterdir()) == [folder]


def test_a_new_directory_has_the_usual_permissions_and_its_parents(tmp_path):
    (tmp_path / "usual").mkdir()
    with replacing_directory(tmp_path / "a" / "b"):
        pass
    assert (tmp_path / "a" / "b").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_parents_of_a_directory_that_never_came_are_removed(tmp_path):
    def fail() -> None:
        with take_place(tmp_path / "a" / "b" / "run"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [OSError("gone away"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", [0, 1])
def test_the_old_directory_is_put_back_if_a_rename_fails(folder, monkeypatch, error, step):
    monkeypatch.setattr(place, "exchange", lambda first, second: False)
    rename, calls = os.rename, []

    def stuck(source, target):
        if Path(target).name in (".run.old", "run"):
            calls.append(target)
            if len(calls) == step + 1:
                raise error
        return rename(source, target)

    monkeypatch.setattr(os, "rename", stuck)
    with pytest.raises(type(error)):
        replace(folder)
    assert [path.name for path in folder.iterdir()] == ["old.txt"]
    assert list(folder.parent.iterdir()) == [folder]


def test_the_old_directory_is_never_deleted_without_one_in_its_place(folder, monkeypatch):
    monkeypatch.setattr(place, "exchange", lambda first, second: False)
    rename = os.rename

    def stuck(source, target):
        if Path(target) == folder:
            raise OSError("gone away")
        return rename(source, target)

    monkeypatch.setattr(os, "rename", stuck)
    with pytest.raises(OSError, match="gone away"):
        replace(folder)
    monkeypatch.undo()
    assert not folder.exists()
    with pytest.warns(DataWarning, match="Put .*run back"):
        recover_place(folder)
    assert [path.name for path in folder.iterdir()] == ["old.txt"]


def test_a_place_is_taken_once(tmp_path):
    taken = pytest.raises(DataError, match=rf"another process \({os.getpid()}\) is writing")
    with take_place(tmp_path / "run", "run"), taken:
        take_place(tmp_path / "run", "run").__enter__()
    with take_place(tmp_path / "run", "run"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_place_that_another_process_has_taken_is_refused_until_it_ends(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from sparsevae.persistence import take_place\n"
        f"with take_place(Path({str(tmp_path / 'run')!r})):\n"
        "    print('taken', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "taken\n"
        try:
            with pytest.raises(DataError, match="another process"):
                take_place(tmp_path / "run").__enter__()
        finally:
            other.kill()
    with (
        pytest.warns(DataWarning, match=r"Removed .*\.run\.partial, .* unfinished"),
        take_place(tmp_path / "run"),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_long_name_has_a_place_too(tmp_path):
    name = "ü" * 120  # 240 bytes
    with replacing_directory(tmp_path / name) as written:
        (written / "new.txt").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_room_is_reserved_and_given_back(tmp_path):
    with take_place(tmp_path / "run") as taken:
        taken.reserve(50_000)
        assert (taken.folder / ".reserve").stat().st_size in (0, 50_000)
        taken.commit()
    assert not list((tmp_path / "run").iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve")
def test_a_disk_without_room_is_found_before_the_work(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with take_place(tmp_path / "run") as taken, pytest.raises(DataError, match="room for about 5 MB"):
        taken.reserve(5_000_000)


def test_a_name_that_is_a_link_is_written_through(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing_directory(tmp_path / "link") as written:
        (written / "new.txt").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "new.txt").read_text() == "new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device is Linux's")
def test_on_a_full_disk_nothing_is_left_of_a_place_that_could_not_be_taken(tmp_path, monkeypatch):
    usual = Path.open

    def full(path, *given, **named):
        return usual(Path("/dev/full") if path.name == ".taken" else path, *given, **named)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left"), take_place(tmp_path / "run", "run"):
        pass
    assert list(tmp_path.iterdir()) == []
