"""Labels of groups: those of the fit are known again, however a later table has them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.annotations.groups import check_groups, number_groups
from sparsevae.exceptions import DataWarning

ROWS = np.zeros((3, 2))


def numbers(fitted, new):
    return number_groups(check_groups(new, ROWS), np.unique(check_groups(fitted, ROWS)), depth=1).tolist()


@pytest.mark.parametrize(
    "fitted, new",
    [
        ([0, 1, 1], [0.0, 1.0, 1.0]),
        ([0, 1, 1], ["0", "1", "1"]),
        ([0.0, 1.0, 1.0], [0, 1, 1]),
        (["0", "1", "1"], np.array([0, 1, 1], dtype=object)),
        ([0, 1, 1], pd.array([0, 1, 1], dtype="Int64")),
        (["a", "b", "b"], pd.Categorical(["a", "b", "b"])),
    ],
)
def test_a_label_is_known_by_its_name(fitted, new):
    assert numbers(fitted, new) == [0, 1, 1]


@pytest.mark.parametrize(
    "fitted, new",
    [
        (["0", "1", "1"], [0, 1, 12]),
        (np.array([0, 1, 1], dtype=np.int8), [0, 1, 256]),
        (["1.0.0", "2.0", "2.0"], ["1.0.0", 2, "1.0"]),
    ],
)
def test_a_label_that_begins_like_another_is_new(fitted, new):
    with pytest.warns(DataWarning, match="Groups that fit did not see"):
        assert numbers(fitted, new) == [0, 1, -1]


def test_labels_that_differ_by_decimals_alone_stay_apart():
    assert numbers(["1", "1.0", "1"], ["1.0", "1", "1"]) == [1, 0, 0]
