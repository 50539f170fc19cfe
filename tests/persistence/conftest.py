"""A small fitted model, and the directory it was saved to."""

from __future__ import annotations

import pytest

from .helpers import fit


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture
def saved(model, tmp_path):
    return model.save(tmp_path / "model")
