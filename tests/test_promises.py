"""What the default promises, on data with known factors; `python -m benchmarks.recovery` has the figures.

Each of these takes minutes, so they run with ``make test-slow``.
"""

from __future__ import annotations

import numpy as np
import pytest

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors, make_sparse_factors
from sparsevae.metrics import support_f1

pytestmark = pytest.mark.slow


def support_of(X, **options):
    return SparseVAE(**{"n_factors": 5, "random_state": 0, **options}).fit(X).mask_ != 0


def agreement(support, other):
    """Jaccard index of two supports with their factors matched."""
    f1 = support_f1(support, other)
    return f1 / (2.0 - f1)


@pytest.fixture(scope="module")
def data():
    return make_sparse_factors(1000, correlation=0.4, random_state=500)


@pytest.fixture(scope="module")
def reference(data):
    support = support_of(data.X[:500])
    assert support_f1(support, data.mask) == 1.0
    return support


def test_five_seeds_find_the_same_support(data, reference):
    for seed in range(1, 5):
        assert agreement(support_of(data.X[:500], random_state=seed), reference) >= 0.95


def test_twice_the_data_leave_the_support_as_it_is(data, reference):
    assert agreement(support_of(data.X), reference) == 1.0


@pytest.mark.parametrize("width", [32, 128])
def test_the_width_of_the_network_leaves_the_support_as_it_is(data, reference, width):
    assert agreement(support_of(data.X[:500], hidden_sizes=(width, width)), reference) == 1.0


@pytest.mark.parametrize("batch_size", [64, 500])
def test_the_batch_size_leaves_the_support_as_it_is(data, reference, batch_size):
    assert agreement(support_of(data.X[:500], batch_size=batch_size), reference) == 1.0


@pytest.mark.parametrize("n_factors", [2, 3, 10])
def test_room_for_more_factors_leaves_the_support_as_it_is(data, reference, n_factors):
    assert agreement(support_of(data.X[:500], n_factors=n_factors), reference) == 1.0


def test_units_leave_the_support_as_it_is(data, reference):
    scale = np.geomspace(1e-3, 1e4, 7)
    assert agreement(support_of(data.X[:500] * scale - 7.0 * scale), reference) == 1.0


def test_pure_noise_shows_no_factor():
    noise = make_anchored_factors(500, 7, 0, random_state=501)
    assert not support_of(noise.X).any()


def test_the_number_of_factors_is_found_and_each_missing_one_accounted_for():
    data = make_anchored_factors(1000, 30, 4, correlation=0.3, random_state=502)
    model = SparseVAE(n_factors=9, random_state=0).fit(data.X)
    assert len(model.active_factors_) == 4
    assert support_f1(model.mask_, data.mask) >= 0.97
    assert sorted(model.dropped_factors_) == [4, 5, 6, 7, 8]
    assert all(why.strip() for why in model.dropped_factors_.values())
