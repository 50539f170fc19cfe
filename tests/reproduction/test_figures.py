from __future__ import annotations

import numpy as np
import pytest
from matplotlib.image import imread

from sparsevae.datasets import make_sparse_factors
from sparsevae.reproduction.figures import _in_order, draw
from sparsevae.reproduction.results import FAILED, Results
from sparsevae.reproduction.runner import run_spec
from sparsevae.reproduction.tables import current_rows

from .helpers import make_spec


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    results = Results(tmp_path_factory.mktemp("rows"))
    run_spec(make_spec(), "paper", results)
    return current_rows(make_spec(), "paper", results)


def test_curves_are_drawn_from_rows_and_come_out_the_same(rows, tmp_path):
    (first,) = draw(make_spec(), "paper", rows, tmp_path)
    picture, content = imread(first), first.read_bytes()
    assert first.name == "linear.png"
    assert picture.std() > 0
    (again,) = draw(make_spec(), "paper", rows, tmp_path)
    assert again.read_bytes() == content


def test_other_numbers_make_another_picture(rows, tmp_path):
    (path,) = draw(make_spec(), "paper", rows, tmp_path)
    before = imread(path)
    changed = rows.assign(value=[value if value is None else 2 * value for value in rows["value"]])
    draw(make_spec(), "paper", changed, tmp_path)
    after = imread(path)
    assert before.shape != after.shape or not np.array_equal(before, after)


def test_failures_alone_make_no_picture(rows, tmp_path):
    assert draw(make_spec(), "paper", rows.assign(metric=FAILED, value=None), tmp_path) == []


def test_no_rows_and_no_figure_make_no_picture(rows, tmp_path):
    assert draw(make_spec(), "paper", rows.iloc[:0], tmp_path) == []
    assert draw(make_spec(figure=""), "paper", rows, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_the_example_shows_features_against_factors_and_masks(tmp_path):
    spec = make_spec(
        figure="example",
        figure_metrics=[],
        splitting="none",
        claims=[],
        metrics=["mask", "codes"],
        data_sets=[{"name": "0.6", "source": "synthetic", "parameters": {"n_samples": 40}}],
        methods=[
            {
                "name": "Sparse VAE",
                "estimator": "SparseVAE",
                "recipes": ["paper"],
                "parameters": {"max_epochs": 2, "hidden_sizes": [4]},
            },
            {"name": "PCA", "estimator": "PCA"},
        ],
    )
    results = Results(tmp_path)
    run_spec(spec, "paper", results)
    rows = current_rows(spec, "paper", results)
    (path,) = draw(spec, "paper", rows, tmp_path)
    assert imread(path).std() > 0
    content = path.read_bytes()
    draw(spec, "paper", rows.iloc[::-1], tmp_path)  # runs that ended in another order
    assert path.read_bytes() == content


def test_masks_are_shown_in_the_order_of_the_true_factors():
    data = make_sparse_factors(200, correlation=0.0, random_state=0)
    codes = np.column_stack([np.zeros(200), -data.factors[:, 1], np.ones(200), data.factors[:, 0]])
    mask = np.arange(28.0).reshape(7, 4)
    np.testing.assert_array_equal(_in_order(mask, codes, data), mask[:, [3, 1, 0, 2]])
