from __future__ import annotations

import numpy as np
import pandas as pd

from sparsevae.identifiability import Stability
from sparsevae.plotting import plot_stability


def test_a_bar_is_the_share_of_refits_and_a_dot_is_a_link():
    names = ["sparsevae0", "sparsevae1"]
    chosen = pd.DataFrame([[0.9, 0.0], [0.5, 0.0], [0.0, 0.7]], index=list("abc"), columns=names)
    result = Stability(
        pd.Series([1.0, 0.25], index=names),
        chosen,
        pd.DataFrame(),
        pd.DataFrame({"failure": [""] * 4}),
        "seed",
    )
    ax = plot_stability(result)
    assert [bar.get_width() for bar in ax.patches] == [1.0, 0.25]
    dots = [np.sort(dots.get_offsets()[:, 0]).tolist() for dots in ax.collections]
    assert dots == [[0.5, 0.9], [0.7]]
    assert "4 refits on other seeds" in ax.get_xlabel()
