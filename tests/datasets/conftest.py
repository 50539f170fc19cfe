"""Where the real data are: tests that need them skip, with the reason, where they are absent."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data():
    """Path of a real file or folder by name, or a skip."""
    folder = Path(
        os.environ.get("SPARSEVAE_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data"
    )

    def find(name):
        path = folder / name
        if not path.exists():
            pytest.skip(f"real data not found: {path} (set SPARSEVAE_TEST_DATA to its folder)")
        return path

    return find


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """An empty data directory that the loaders search."""
    monkeypatch.setenv("SPARSEVAE_DATA", str(tmp_path))
    return tmp_path
