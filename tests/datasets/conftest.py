"""A data directory of the test's own."""

import pytest


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """An empty data directory that the loaders search."""
    monkeypatch.setenv("SPARSEVAE_DATA", str(tmp_path))
    return tmp_path
