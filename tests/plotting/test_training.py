from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sparsevae.estimators import SparsityPath
from sparsevae.plotting import plot_history, plot_sparsity_path
from sparsevae.plotting.training import phase_spans

from .helpers import rendered


def test_the_terms_of_a_narrow_history_are_named_beside_it(small):
    ax = plot_history(small[0], ax=Figure(figsize=(4, 3)).subplots())
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().x0 >= ax.bbox.x1


def test_a_path_along_rates_marks_the_chosen_one():
    table = pd.DataFrame({"multiple": [0.5, 1.0, 2.0], "n_nonzero": [9, 7, 3], "score": [-3.0, -2.5, -4.0]})
    table["standard_error"] = [0.1, np.nan, 0.2]
    path = SparsityPath(table, np.zeros((3, 5, 2)), np.array(list("abcde")), chosen=1, reason="")
    ax = plot_sparsity_path(path)
    assert ax.get_xscale() == "log"
    assert "chosen" in [text.get_text() for text in ax.texts]
    assert rendered(ax)


def test_phases_are_runs_of_epochs():
    history = pd.DataFrame({"phase": ["a", "a", "b", "a"]})
    assert phase_spans(history) == [("a", 1, 2), ("b", 3, 3), ("a", 4, 4)]
    assert phase_spans(pd.DataFrame({"kl": []})) == []
