"""Certificates and stability results survive a file."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

from sparsevae.exceptions import DataError
from sparsevae.identifiability import Stability, certify
from sparsevae.identifiability.records import (
    certificate_from_record,
    certificate_record,
    stability_from_record,
    stability_record,
)

RISING = np.array([[1, 0], [2, 0], [0, 1], [0, 2], [1, 1]], dtype=float)


@pytest.fixture
def certificate(make_module):
    made = make_module(RISING, RISING)
    return certify(made.module, made.codes, feature_names=list("abcde"), factor_names=["f0", "f1"])


@pytest.fixture
def refits():
    matches = pd.DataFrame(
        [(0, "f0", 1, 0.9, 0.99, True), (0, "f1", -1, 0.0, 0.0, False)],
        columns=["refit", "factor", "partner", "overlap", "rank_correlation", "returned"],
    )
    details = {
        "seed": [3],
        "n_active": [1],
        "n_nonzero": [4],
        "n_new": [0],
        "converged": [True],
        "seconds": [0.5],
    }
    return Stability(
        reproducibility=pd.Series([1.0, 0.0], index=["f0", "f1"], name="reproducibility"),
        selection_probability=pd.DataFrame(
            [[1.0, 0.0]] * 5, index=list("abcde"), columns=pd.Index(["f0", "f1"], name="factor")
        ),
        matches=matches,
        refits=pd.DataFrame({**details, "failure": [""]}),
        how="seed",
    )


def through_a_file(record):
    return json.loads(json.dumps(record, allow_nan=False))


def test_a_certificate_comes_back(certificate):
    back = certificate_from_record(through_a_file(certificate_record(certificate)))
    assert back.summary() == certificate.summary()
    assert back.thresholds == certificate.thresholds
    np.testing.assert_allclose(back.table["a2_margin"], certificate.table["a2_margin"])


def test_a_stability_result_comes_back(refits):
    back = stability_from_record(through_a_file(stability_record(refits)))
    assert_series_equal(back.reproducibility, refits.reproducibility)
    assert_frame_equal(back.selection_probability, refits.selection_probability)
    assert_frame_equal(back.matches, refits.matches)
    assert back.summary() == refits.summary()


def test_refits_can_be_added_to_a_certificate_later(certificate, refits):
    later = certificate.with_stability(refits)
    assert later.table["returns"].tolist() == [1.0, 0.0]
    assert later.table["verdict"].tolist() == ["identified", "not identified"]
    assert certificate.table["returns"].isna().all()
    again = certificate_from_record(through_a_file(certificate_record(certificate))).with_stability(refits)
    assert again.summary() == later.summary()


@pytest.mark.parametrize("damage", [{}, {"table": 3}, {"table": [{"verdict": 1}], "notes": None}])
def test_a_damaged_certificate_is_refused(damage):
    with pytest.raises(DataError, match="damaged"):
        certificate_from_record(damage)


@pytest.mark.parametrize("damage", [{}, {"reproducibility": {"f": 1.0}, "features": [], "selected": {}}])
def test_a_damaged_stability_result_is_refused(damage):
    with pytest.raises(DataError, match="damaged"):
        stability_from_record(damage)
