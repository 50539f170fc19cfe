"""The claims of examples/a2_random_networks.py, on few networks."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).resolve().parents[2] / "examples" / "a2_random_networks.py"


@pytest.fixture(scope="module")
def results():
    spec = importlib.util.spec_from_file_location("a2_random_networks", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.WIDTHS, example.N_NETWORKS, example.N_SAMPLES = (8, 128), 12, 60
    return example.measure()


def median(values):
    return np.median(values[:, 2:])


def test_terms_that_the_appendix_keeps_vanish_with_the_width(results):
    assert median(results["kept"][128]) < 0.4 * median(results["kept"][8])


def test_all_terms_together_do_not(results):
    assert median(results["all"][128]) > 0.4 * median(results["all"][8])


def test_anchors_with_one_curve_correlate_most_at_any_width(results):
    """In a narrow network another curve may be the same by accident, never closer."""
    assert results["correlation"][8].max() <= 1.0 + 1e-9
    assert results["correlation"][128][:, 2:].max() < 1.0 - 1e-6
    np.testing.assert_allclose(results["correlation"][128][:, 1], 1.0)
