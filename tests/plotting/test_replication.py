from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.replication import Replication

from .helpers import rendered


def replication(n_factors=2):
    names = [f"factor {k}" for k in range(n_factors)]
    factors = pd.DataFrame(
        {
            "factor": names,
            "correlation": np.linspace(0.97, 0.5, n_factors),
            "returned": [3] + [1] * (n_factors - 1),
            "n_splits": 3,
            "overlap": 0.5,
            "counts": True,
            "features": [["$a$", "b" * 60, "c", "d"]] * n_factors,
        }
    )
    matches = pd.DataFrame(
        [(part, name, 0.9, 0.5) for part in ("half 1a", "half 1b") for name in names],
        columns=["part", "factor", "correlation", "overlap"],
    )
    splits = pd.DataFrame(
        [
            {"split": "1", "method": method, "factors_a": 2, "factors_b": 2, "back": back, "match": 0.8}
            for method, back in (("SparseVAE", 1), ("varimax", 2))
        ]
    ).assign(overlap=0.5)
    return Replication(factors, splits, matches, 100)


def test_a_bar_is_the_mean_and_a_dot_is_a_fit():
    ax = replication().plot()
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.97, 0.5])
    assert [len(dots.get_offsets()) for dots in ax.collections] == [2, 2]
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("3 of 3") == 1
    assert texts.count("1 of 3") == 1
    assert ax.get_title(loc="left") == "Come back between halves: SparseVAE 1 of 2, varimax 2 of 2"
    assert ax.get_yticklabels()[0].get_text().startswith("factor 0: \\$a\\$, bbb")


def test_a_factor_that_comes_back_always_has_another_colour():
    first, second = replication().plot().patches
    assert first.get_facecolor() != second.get_facecolor()


@pytest.mark.parametrize("n_factors", [1, 60])
def test_it_makes_a_picture_at_any_size(n_factors):
    assert rendered(replication(n_factors).plot()).startswith(b"\x89PNG")
