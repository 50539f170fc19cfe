"""The Holzinger-Swineford ability tests, the real example inside the package."""

from __future__ import annotations

import csv
from importlib import resources

import numpy as np

from sparsevae.datasets.base import Dataset

__all__ = ["load_ability_tests"]

_TESTS = {
    "x1": "visual perception",
    "x2": "cubes",
    "x3": "lozenges",
    "x4": "paragraph comprehension",
    "x5": "sentence completion",
    "x6": "word meaning",
    "x7": "speeded addition",
    "x8": "speeded counting of dots",
    "x9": "speeded discrimination of capitals",
}


def load_ability_tests() -> Dataset:
    """Nine ability tests of 301 pupils of two schools (Holzinger & Swineford 1939).

    The tests were made to measure three abilities, three tests each: visual (the first three), textual (the
    next three) and speed (the last three). That design is an expectation, not a known truth, so ``mask`` is
    None.

    Returns
    -------
    Dataset
        ``target`` is the school of each pupil.
    """
    text = (
        resources.files("sparsevae.datasets").joinpath("data/holzinger_swineford1939.csv").read_text("utf-8")
    )
    rows = list(csv.DictReader(text.splitlines()))
    return Dataset(
        X=np.array([[float(row[code]) for code in _TESTS] for row in rows]),
        feature_names=np.array(list(_TESTS.values())),
        target=np.array([row["school"] for row in rows]),
        description=(
            "Holzinger & Swineford (1939), A study in factor analysis: scores of 301 pupils (156 Pasteur, "
            "145 Grant-White) in nine ability tests made to measure visual (visual perception, cubes, "
            "lozenges), textual (paragraph comprehension, sentence completion, word meaning) and speed "
            "abilities (addition, counting of dots, discrimination of capitals). Published 1939, free to "
            "pass on; scores as in common use, divided by constants so that their spreads are alike; "
            "nothing else was done to them."
        ),
    )
