"""A bar on standard error when asked for, silence otherwise."""

from __future__ import annotations

import numpy as np

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
    for words in ("lasso", "3/3", "objective=1.500", "nonzero=4", "factors=2"):
        assert words in err


def test_a_fit_that_stops_early_or_late_ends_at_its_own_length(capsys):
    for n_epochs in (2, 5):
        with progress_bar(1, 3) as show:
            for _ in range(n_epochs):
                show(RECORD)
        assert f"{n_epochs}/{n_epochs}" in capsys.readouterr().err
