"""Where a command writes is known to be possible before it works."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from sparsevae.persistence import take_place

from .helpers import files_under, invoke, refusal


@pytest.fixture
def no_fit(monkeypatch):
    """A fit that must not happen."""

    def fail(*args, **options):
        pytest.fail("the place was not checked before the fit")

    monkeypatch.setattr("sparsevae.estimators.SparseVAE.fit_codes", fail)
    monkeypatch.setattr("sparsevae.cli.stability.refit", fail)


def test_a_place_under_a_file_is_refused_before_the_fit(shared, tmp_path, quick, no_fit):
    (tmp_path / "notes.txt").write_text("mine")
    said = refusal("fit", shared / "table.csv", "--out", tmp_path / "notes.txt" / "run", "--config", quick)
    assert "notes.txt is a file" in said


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_place_that_cannot_be_written_is_refused_before_the_fit(shared, quick, no_fit):
    said = refusal("fit", shared / "table.csv", "--out", "/proc/run", "--config", quick)
    assert said.endswith(": /proc/run.")


def test_a_name_that_is_too_long_is_refused_before_the_fit(shared, tmp_path, quick, no_fit):
    said = refusal("fit", shared / "table.csv", "--out", tmp_path / ("n" * 300), "--config", quick)
    assert "too long" in said


def test_a_place_that_another_fit_has_taken_is_refused_before_the_fit(shared, tmp_path, quick, no_fit):
    with take_place(tmp_path / "run", "run"):
        said = refusal("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert "another process" in said
    assert not files_under(tmp_path)


def test_a_disk_without_room_is_found_before_the_fit(shared, tmp_path, quick, no_fit, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    said = refusal("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert "Expected room for about 1 MB" in said
    assert not files_under(tmp_path)


def test_a_table_that_is_refused_leaves_no_directories(tmp_path, quick):
    (tmp_path / "bad.csv").write_text("a,b\n1,x\n2,y\n")
    refusal("fit", tmp_path / "bad.csv", "--out", tmp_path / "deep" / "er" / "run", "--config", quick)
    assert {path.name for path in tmp_path.iterdir()} == {"bad.csv"}


def test_refits_are_not_made_for_a_run_that_cannot_take_them(shared, no_fit, monkeypatch):
    def locked(self, *args, **options):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "write_bytes", locked)
    said = refusal("stability", shared / "run", shared / "table.csv", "-n", "1")
    assert "Permission denied" in said


@pytest.mark.parametrize("command", ["transform", "report"])
def test_an_output_under_a_file_is_refused(shared, tmp_path, command):
    (tmp_path / "notes").write_text("mine")
    ending = {"transform": "csv", "report": "html"}[command]
    table = [shared / "table.csv"] if command == "transform" else []
    said = refusal(command, shared / "run", *table, "-o", tmp_path / "notes" / f"out.{ending}")
    assert "notes" in said


def test_what_a_killed_fit_left_is_named_and_removed(shared, tmp_path, quick):
    left = tmp_path / ".run.partial"
    left.mkdir()
    (left / ".taken").write_text("1\n")
    result = invoke("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert result.exit_code == 0, result.stderr
    assert f"Note: Removed {left}" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_finished_work_that_was_left_gets_its_name_and_is_not_fitted_over(shared, tmp_path, quick, no_fit):
    left = shutil.copytree(shared / "run", tmp_path / ".run.partial")
    (left / ".complete").write_text("1\n")
    said = refusal("fit", shared / "table.csv", "--out", tmp_path / "run", "--config", quick)
    assert "already holds a run" in said
    assert files_under(tmp_path / "run") == files_under(shared / "run")
