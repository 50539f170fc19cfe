"""Where the real data are: tests that need them skip, with the reason, where they are absent."""

import os
from pathlib import Path

import pytest

REAL = Path(os.environ.get("SPARSEVAE_TEST_DATA") or Path(__file__).parents[2].parent / "shared" / "data")


@pytest.fixture(scope="session")
def real_data():
    """Path of a real file or folder by name, or a skip."""

    def find(name):
        if not (REAL / name).exists():
            pytest.skip(f"real data not found: {REAL / name} (set SPARSEVAE_TEST_DATA to its folder)")
        return REAL / name

    return find
