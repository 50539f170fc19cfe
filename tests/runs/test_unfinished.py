from __future__ import annotations

from pathlib import Path

from sparsevae.runs.unfinished import check_unfinished, checkpoint_place, is_finished


def test_checkpoints_are_beside_the_run_under_a_name_that_fits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert checkpoint_place(Path("run")) == tmp_path / "run.checkpoint"
    assert checkpoint_place(Path("deep/..")) == tmp_path.with_name(f"{tmp_path.name}.checkpoint")
    long = checkpoint_place(Path("r" * 250))
    assert long.parent == tmp_path
    assert len(long.name) < 100


def test_where_nothing_is_nothing_is_refused(tmp_path):
    run = tmp_path / "run"
    assert not is_finished(run)
    for force in (True, False):
        for resume in (True, False):
            assert check_unfinished(run, resume=resume, force=force) is force
