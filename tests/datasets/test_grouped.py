from __future__ import annotations

import numpy as np
import pytest

from sparsevae.datasets import make_grouped_factors


def test_specific_factors_are_zero_elsewhere():
    data = make_grouped_factors(300, 20, n_shared=2, n_specific=1, n_groups=3, random_state=0)
    assert data.factors.shape == (300, 5)
    assert data.mask.shape == (20, 5)
    for k in range(5):
        groups = set(data.target[data.factors[:, k] != 0])
        assert len(groups) == (3 if k < 2 else 1)
    assert sorted(np.unique(data.target, return_counts=True)[1]) == [100, 100, 100]


def test_groups_differ_by_shifts_alone_where_no_factor_is_specific():
    options = {"n_shared": 3, "n_specific": 0, "random_state": 1}
    shifted = make_grouped_factors(2000, 10, shift=2.0, **options)
    plain = make_grouped_factors(2000, 10, shift=0.0, **options)
    difference = shifted.X - plain.X
    first = shifted.target == "group 0"
    assert np.abs(difference[first] - difference[first][0]).max() < 1e-9
    assert np.abs(difference[first][0] - difference[~first][0]).max() > 0.5


def test_counts_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="n_groups"):
        make_grouped_factors(10, 5, n_groups=0)
