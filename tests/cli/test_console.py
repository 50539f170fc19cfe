from __future__ import annotations

import pytest

from .helpers import files_under, refusal


def test_a_table_too_large_for_memory_is_refused_in_one_sentence(shared, tmp_path, monkeypatch):
    monkeypatch.setattr("sparsevae.io.memory.available_bytes", lambda: 1000)
    assert "save it as NPY" in refusal("fit", shared / "table.csv", "--out", tmp_path / "run")
    assert files_under(tmp_path) == set()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_memory_that_runs_out_on_the_way_is_one_sentence_too(shared, tmp_path, monkeypatch, error):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr("sparsevae.cli.fit.read_table", fail)
    assert "not enough memory for this table and this model" in refusal(
        "fit", shared / "table.csv", "--out", tmp_path / "run"
    )
