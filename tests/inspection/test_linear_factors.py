from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sparsevae
from sparsevae.exceptions import DataError, ParameterError
from sparsevae.principal import parallel_analysis as of_standardised


@pytest.fixture
def table(rng):
    z = rng.standard_normal((300, 2))
    return np.column_stack(
        [z[:, [0]] + rng.standard_normal((300, 4)), z[:, [1]] + rng.standard_normal((300, 4))]
    )


def test_the_number_is_that_of_the_fit_whatever_the_units(table):
    found = sparsevae.parallel_analysis(table * 100 + 7)
    standard = (table - table.mean(0)) / table.std(0)
    assert found == found.n_factors == of_standardised(standard, random_state=0) == 2
    assert found.table["kept"].sum() == 2
    np.testing.assert_allclose(
        found.table["eigenvalue"], np.sort(np.linalg.eigvalsh(np.corrcoef(table.T)))[::-1]
    )


def test_frames_and_sparse_tables_give_the_same(table):
    table = np.rint(np.abs(table))
    expected = sparsevae.parallel_analysis(table)
    for other in (pd.DataFrame(table), sparse.csr_array(table)):
        pd.testing.assert_frame_equal(sparsevae.parallel_analysis(other).table, expected.table)


def test_noise_has_no_factor_and_constants_do_no_harm(rng):
    noise = rng.standard_normal((400, 6))
    noise[:, 0] = 3.0
    assert sparsevae.parallel_analysis(noise, quantile=0.99, n_permutations=200) == 0


def test_answers_with_holes_are_those_of_the_rows_that_have_both(table, rng):
    holes = np.where(rng.random(table.shape) < 0.1, np.nan, table)
    found = sparsevae.parallel_analysis(holes)
    assert found == 2
    correlation = pd.DataFrame(holes).corr().to_numpy()
    expected = np.sort(np.linalg.eigvalsh(correlation))[::-1]
    # The means are of each column, not of each pair, and rounding is all that differs otherwise.
    np.testing.assert_allclose(found.table["eigenvalue"], expected, atol=0.05)
    masked = sparsevae.parallel_analysis(np.ma.masked_array(table, np.isnan(holes)))
    pd.testing.assert_frame_equal(masked.table, found.table)
    empty = np.column_stack([holes, np.full(len(holes), np.nan)])
    assert sparsevae.parallel_analysis(empty) == 2


def test_tables_that_cannot_be_analysed_are_refused(table):
    with pytest.raises(DataError, match="at least two rows and two columns"):
        sparsevae.parallel_analysis(table[:, :1])
    table[0, 3] = np.inf
    with pytest.raises(DataError, match="columns 'd'"):
        sparsevae.parallel_analysis(pd.DataFrame(table, columns=list("abcdefgh")))
    with pytest.raises(DataError, match="every column to hold numbers"):
        sparsevae.parallel_analysis(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}))
    with pytest.raises(ParameterError, match="quantile"):
        sparsevae.parallel_analysis(table, quantile=95)
