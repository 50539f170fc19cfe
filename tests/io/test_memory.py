from __future__ import annotations

import gzip

import numpy as np
import pytest

from sparsevae.exceptions import DataError
from sparsevae.io import memory, read_table
from sparsevae.io.memory import available_bytes, bytes_needed, check_memory


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = np.random.default_rng(0).standard_normal((400, 30))
    np.savetxt(
        path, rows, delimiter=",", fmt="%.5f", header=",".join(f"a{j}" for j in range(30)), comments=""
    )
    return path


def test_the_memory_of_a_text_is_that_of_its_cells(table):
    assert bytes_needed(table, ".csv") == pytest.approx(16 * 401 * 30, rel=0.05)


def test_a_packed_text_needs_what_it_needs_unpacked(table, tmp_path):
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    assert bytes_needed(packed, ".csv") == pytest.approx(bytes_needed(table, ".csv"), rel=0.05)


def test_an_archive_needs_its_contents_and_a_mapped_array_nothing(tmp_path):
    X = np.zeros((1000, 100))
    np.savez_compressed(tmp_path / "table.npz", X=X)
    np.save(tmp_path / "table.npy", X)
    assert bytes_needed(tmp_path / "table.npz", ".xlsx") == bytes_needed(tmp_path / "table.npz", ".npz")
    assert bytes_needed(tmp_path / "table.npz", ".npz") == pytest.approx(X.nbytes, rel=0.01)
    assert bytes_needed(tmp_path / "table.npy", ".npy") == 0


def test_a_file_that_is_no_archive_is_left_to_its_reader(tmp_path):
    for name in ("broken.npz", "broken.csv.gz"):
        (tmp_path / name).write_bytes(b"junk")
    assert bytes_needed(tmp_path / "broken.npz", ".npz") == 4
    assert bytes_needed(tmp_path / "broken.csv.gz", ".csv") == 0


def test_the_system_has_some_memory_or_does_not_say():
    available = available_bytes()
    assert available is None or available > 1e6


def test_without_an_answer_of_the_system_nothing_is_refused(table, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    check_memory(table, ".csv")


def test_a_table_too_large_for_memory_is_refused_before_it_is_read(table, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(DataError, match="fits into memory"):
        read_table(table)
