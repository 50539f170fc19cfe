"""A bar on standard error when asked for, silence otherwise."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sparsevae.training.progress import progress_bar

RECORD = {
    "phase": "lasso",
    "objective": np.array([1.5, np.nan]),
    "n_nonzero": np.array([4, 7]),
    "n_active": 2,
}


def test_nothing_is_shown_unless_asked_for(capsys):
    with progress_bar(0, 5) as show:
        assert show is None
    assert capsys.readouterr() == ("", "")


def test_the_bar_names_phase_objective_and_sparsity_on_standard_error(capsys):
    with progress_bar(1, 3) as show:
        for _ in range(3):
            show(RECORD)
    out, err = capsys.readouterr()
    assert out == ""
    for words in ("lasso", "100%", "objective=1.500", "nonzero=4", "factors=2"):
        assert words in err


@pytest.mark.parametrize("n_epochs", [2, 5])
def test_a_fit_that_stops_early_or_late_ends_at_its_own_length(capsys, n_epochs):
    with progress_bar(1, 3) as show:
        for _ in range(n_epochs):
            show(RECORD)
    assert "100%" in capsys.readouterr().err.splitlines()[-1].rsplit("\r", 1)[-1]


def percent(capsys):
    return int(re.findall(r"(\d+)%", capsys.readouterr().err)[-1])


def test_epochs_are_parts_of_the_work_that_is_expected_of_them(capsys):
    with progress_bar(1, 10.0) as show:
        show.expect(4.0, 8)
        show(RECORD)
        show.reach(1.0, 10.0)
        assert percent(capsys) == 10
        show.expect(4.0, 2)
        for _ in range(5):  # three more than were expected
            show(RECORD)
        show.reach(5.0, 10.0)
        assert percent(capsys) == 50


def test_a_longer_way_than_was_thought_moves_the_bar_back(capsys):
    with progress_bar(1, 10.0) as show:
        show.reach(5.0, 10.0)
        assert percent(capsys) == 50
        show.reach(5.0, 20.0)
        assert percent(capsys) == 25
