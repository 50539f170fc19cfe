from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from joblib import delayed
from scipy import sparse

from sparsevae import SparseVAE
from sparsevae.identifiability.jobs import by_rows, count_workers, run_jobs, take_rows


def _threads(number):
    return number, torch.get_num_threads()


def test_results_come_in_the_order_of_the_jobs_from_one_process_or_several():
    assert [n for n, _ in run_jobs((delayed(_threads)(n) for n in range(3)), 3, 1)] == [0, 1, 2]
    assert list(run_jobs((delayed(_threads)(n) for n in range(3)), 3, 2)) == [(0, 1), (1, 1), (2, 1)]


def test_there_are_no_more_workers_than_jobs_and_one_on_an_accelerator():
    assert count_workers(SparseVAE(), 4, 2) == 2
    assert count_workers(SparseVAE(), 1, 2) == 1
    assert count_workers(SparseVAE(device="cuda"), 4, 2) == 1


def test_masked_cells_are_missing():
    values = np.ma.masked_greater(np.array([[1.0, 9.0], [2.0, 3.0]]), 5.0)
    assert np.isnan(by_rows(values)).tolist() == [[False, True], [False, False]]


def test_rows_are_taken_by_position():
    values = np.arange(8.0).reshape(4, 2)
    frame = pd.DataFrame(values, index=list("dcba"))
    for table in (frame, sparse.coo_matrix(values), values.tolist()):
        taken = take_rows(by_rows(table), np.array([2, 0]))
        dense = taken.toarray() if sparse.issparse(taken) else np.asarray(taken)
        assert dense.tolist() == [[4.0, 5.0], [0.0, 1.0]]
