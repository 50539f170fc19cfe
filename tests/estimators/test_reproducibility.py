"""The same seed gives the same fit to the last bit, and nobody else's randomness is touched."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch


@pytest.mark.parametrize("recipe", ["default", "paper", "authors"])
@pytest.mark.parametrize("hidden_sizes", [(), (4,)])
def test_the_same_random_state_gives_the_same_fit_to_the_last_bit(
    fit, make_model, make_table, recipe, hidden_sizes
):
    X = make_table()
    settings = {"recipe": recipe, "hidden_sizes": hidden_sizes, "n_init": 2, "random_state": 3}
    one, two = (fit(make_model(**settings), X) for _ in range(2))
    for (name, value), again in zip(
        one.module_.state_dict().items(), two.module_.state_dict().values(), strict=True
    ):
        assert torch.equal(value, again), name
    pd.testing.assert_frame_equal(one.history_, two.history_)
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))


def test_a_random_state_that_is_an_object_goes_on_from_fit_to_fit(fit, make_model, make_table):
    first, again = (fit(make_model(random_state=np.random.RandomState(5)), make_table()) for _ in range(2))
    np.testing.assert_array_equal(first.mask_, again.mask_)


def test_without_a_random_state_fits_differ(fit, make_model, make_table):
    masks = [fit(make_model(random_state=None), make_table()).mask_ for _ in range(2)]
    assert not np.array_equal(*masks)


@pytest.mark.parametrize("random_state", [0, None])
@pytest.mark.parametrize("recipe", ["default", "paper"])
def test_global_generators_are_neither_read_nor_moved(fit, make_model, make_table, random_state, recipe):
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    model = fit(make_model(random_state=random_state, recipe=recipe, n_init=1, max_epochs=2), make_table())
    model.transform(make_table())
    model.score(make_table())
    model.sample(3, random_state=random_state)
    after = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    assert torch.equal(before[0], after[0])
    np.testing.assert_array_equal(before[1][1], after[1][1])
    assert before[1][2:] == after[1][2:]


def test_global_seeds_do_not_matter_where_there_is_a_random_state(fit, make_model, make_table):
    masks = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        masks.append(fit(make_model(recipe="default", n_init=1, max_epochs=2), make_table()).mask_)
    np.testing.assert_array_equal(*masks)


def test_threads_do_not_change_a_fit_from_run_to_run(fit, make_model, make_table):
    masks = []
    threads = torch.get_num_threads()
    try:
        for _ in range(2):
            torch.set_num_threads(2)
            masks.append(fit(make_model(hidden_sizes=(32, 32), max_epochs=1), make_table()).mask_)
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(*masks)
