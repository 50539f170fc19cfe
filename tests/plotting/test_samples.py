from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsevae.exceptions import ParameterError
from sparsevae.plotting import plot_embedding, plot_response


def test_a_response_goes_through_its_data(small):
    model, table = small
    ax = plot_response(model, "d", X=table)
    x, y = ax.lines[0].get_data()
    points = ax.collections[0].get_offsets()
    expected = np.interp(points[:, 0], x, y)
    assert np.corrcoef(points[:, 1], expected)[0, 1] > 0.9
    assert ax.get_xlabel() == "sparsevae1" or ax.get_xlabel() == "sparsevae0"


@pytest.mark.parametrize("wanted", [("nobody", None), (99, None), ("d", "factor 9")])
def test_a_name_that_is_not_there_is_refused(small, wanted):
    with pytest.raises(ParameterError, match="to be a name of the fit"):
        plot_response(small[0], *wanted)


def test_labels_are_colours_or_a_scale(rng):
    codes = pd.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
    few = plot_embedding(codes, ["x", "y"] * 20, factors=(0, 2))
    assert [text.get_text() for text in few.get_legend().get_texts()] == ["x", "y"]
    assert few.get_ylabel() == "c"
    many = plot_embedding(codes, [f"kind {i % 12}" for i in range(40)])
    eight = plot_embedding(codes, [str(i % 8) for i in range(40)])
    assert sorted(text.get_text() for text in eight.get_legend().get_texts()) == list("01234567")
    assert "5 other kinds" in [text.get_text() for text in many.get_legend().get_texts()]
    scale = plot_embedding(codes, rng.standard_normal(40))
    assert scale.get_legend() is None
    assert len(scale.figure.axes) == 2


def test_codes_and_labels_must_fit(rng):
    with pytest.raises(ParameterError, match="a label for each"):
        plot_embedding(rng.standard_normal((4, 2)), [1, 2])
    with pytest.raises(ParameterError, match="columns 0 and 5"):
        plot_embedding(rng.standard_normal((4, 2)), factors=(0, 5))
