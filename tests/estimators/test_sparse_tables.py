"""Sparse tables are checked before anything believes their indices, and are not changed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sparsevae import NMF, OIVAE, VAE, VSC, SparseVAE
from sparsevae.exceptions import DataError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

TINY = {"n_factors": 2, "max_epochs": 2, "hidden_sizes": (4,), "random_state": 0, "likelihood": "poisson"}
ESTIMATORS = {
    "SparseVAE": SparseVAE(**TINY, n_init=1),
    "VAE": VAE(**TINY),
    "VSC": VSC(**TINY),
    "OIVAE": OIVAE(**TINY),
    "NMF": NMF(2, likelihood="poisson", random_state=0),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(scope="module")
def counts():
    return np.random.default_rng(0).poisson(1.0, (60, 6)).astype(float) + np.eye(60, 6)


def out_of_bounds(counts):
    table = sparse.csr_matrix(counts)
    table.indices = table.indices.copy()
    table.indices[3] = 10**7
    return table


@every_estimator
@pytest.mark.parametrize("method", ["fit", "transform"])
def test_an_index_out_of_bounds_is_refused(name, method, counts):
    model = ESTIMATORS[name]
    if method == "transform":
        model.fit(counts)
    with pytest.raises(DataError, match="got a damaged sparse matrix"):
        getattr(model, method)(out_of_bounds(counts))


@every_estimator
def test_entries_that_occur_twice_count_as_their_sum(name, counts):
    plain = sparse.csr_matrix(counts)
    halves = sparse.csr_matrix(
        (np.repeat(plain.data / 2, 2), np.repeat(plain.indices, 2), 2 * plain.indptr), shape=plain.shape
    )
    model = ESTIMATORS[name]
    expected = model.fit(plain).transform(plain)
    np.testing.assert_array_equal(model.fit(halves).transform(halves), expected)


@every_estimator
def test_the_callers_table_is_left_as_it_is(name, counts):
    plain = sparse.csr_matrix(counts)
    # Columns of each row in falling order, in arrays that cannot be written to.
    order = np.lexsort((-plain.indices, np.repeat(np.arange(60), np.diff(plain.indptr))))
    table = sparse.csr_matrix((plain.data[order], plain.indices[order], plain.indptr), shape=plain.shape)
    kept = [part.copy() for part in (table.data, table.indices, table.indptr)]
    for part in (table.data, table.indices, table.indptr):
        part.flags.writeable = False
    model = ESTIMATORS[name]
    Z = model.fit(table).transform(table)
    for part, before in zip((table.data, table.indices, table.indptr), kept, strict=True):
        np.testing.assert_array_equal(part, before)
    np.testing.assert_array_equal(Z, model.fit(plain).transform(plain))
