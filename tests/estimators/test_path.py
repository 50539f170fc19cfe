"""The path along the spike rate."""

from __future__ import annotations

import numpy as np
import pytest

from sparsevae import SparseVAE, sparsity_path
from sparsevae.datasets import make_sparse_factors
from sparsevae.exceptions import ParameterError
from sparsevae.metrics import support_f1


@pytest.fixture(scope="module")
def data():
    return make_sparse_factors(400, random_state=0)


@pytest.fixture(scope="module")
def path(data):
    model = SparseVAE(4, n_init=4, hidden_sizes=(16, 16), max_epochs=150, random_state=0)
    return sparsity_path(data.X, model, multiples=[0.1, 1.0, 4.0, 1e5])


def test_there_is_a_row_and_a_mask_for_each_rate(path):
    assert path.masks.shape == (4, 7, 4)
    assert path.supports.dtype == bool
    np.testing.assert_allclose(path.table["multiple"], [0.1, 1.0, 4.0, 1e5])
    np.testing.assert_allclose(path.table["spike_rate"] / path.table["multiple"], path.table["spike_rate"][1])
    np.testing.assert_array_equal(path.table["n_nonzero"], path.supports.sum((1, 2)))
    np.testing.assert_array_equal(path.table["n_active"], path.supports.any(1).sum(1))


def test_masks_get_sparser_with_the_rate_down_to_none(path):
    counts = path.table["n_nonzero"].to_numpy()
    assert (np.diff(counts) <= 0).all()
    assert counts[-1] == 0


def test_the_chosen_step_has_the_truth_and_says_why(path, data):
    assert path.table["chosen"].sum() == 1
    assert path.table["chosen"][path.chosen]
    assert support_f1(path.masks[path.chosen], data.mask) == 1.0
    row = path.table.iloc[path.chosen]
    assert path.reason.startswith(f"{row.n_nonzero} non-zeros on {row.n_active} factors")


def test_an_empty_mask_is_never_chosen_where_there_are_factors(path):
    scores = path.table["score"]
    assert scores[3] < scores[path.chosen] - path.table["standard_error"][3]


def test_persistence_is_the_share_of_steps_that_have_an_entry(path):
    table = path.persistence
    assert list(table.index) == [f"x{j}" for j in range(7)]
    active = path.supports[path.chosen].any(0)
    np.testing.assert_allclose(table, path.supports[:, :, active].mean(0))


def test_the_same_seed_gives_the_same_path(data):
    model = SparseVAE(2, n_init=1, hidden_sizes=(5,), max_epochs=10, random_state=1)
    first, second = (sparsity_path(data.X, model, n_steps=3) for _ in range(2))
    np.testing.assert_array_equal(first.masks, second.masks)
    assert not hasattr(model, "module_")


@pytest.mark.parametrize(
    "options, words",
    [
        ({"multiples": [0.0, 1.0]}, "positive numbers"),
        ({"multiples": []}, "positive numbers"),
        ({"n_steps": 0}, "n_steps"),
        ({"span": 1.0}, "span above 1"),
        ({"model": SparseVAE(2, recipe="paper")}, "recipe='default'"),
        ({"model": SparseVAE(2, hidden_sizes=())}, "hidden layers"),
    ],
)
def test_what_cannot_be_walked_is_said(data, options, words):
    with pytest.raises(ParameterError, match=words):
        sparsity_path(data.X, **options)


def test_each_step_says_what_it_keeps_of_the_best_gain(path):
    kept = path.table["gain_kept"]
    assert kept.max() == 1.0
    assert kept[path.chosen] > 0.9
    assert abs(kept[3]) < 0.05  # an empty mask gains nothing
