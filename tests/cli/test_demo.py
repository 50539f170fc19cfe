from __future__ import annotations

import json

import numpy as np
import pytest

from sparsevae.cli.demo import _match_columns
from sparsevae.datasets import make_sparse_factors

from .helpers import invoke, refusal

QUICK = ("--rows", "60", "--max-epochs", "4")


@pytest.fixture(scope="module")
def printed():
    result = invoke("demo", *QUICK)
    assert result.exit_code == 0, result.stderr
    return result


def test_both_masks_are_printed_side_by_side_with_a_row_per_feature(printed):
    lines = printed.stdout.splitlines()
    assert "true mask" in lines[0]
    assert "recovered mask" in lines[0]
    curves = [str(curve) for curve in make_sparse_factors(2).curves]
    for line, curve in zip(lines[2:9], curves, strict=True):
        assert curve in line


def test_both_methods_are_scored(printed):
    table = printed.stdout.split("\n\n")[1]
    assert "DCI-D" in table
    assert "held-out MSE" in table
    assert "SparseVAE" in table
    assert "linear factor analysis" in table


def test_it_says_in_two_sentences_what_is_to_be_seen(printed):
    text = printed.stdout.split("\n\n")[2]
    assert len(text.strip().replace("\n", " ").split(". ")) == 2


def test_json_has_masks_and_scores(tmp_path):
    picture = tmp_path / "figures" / "masks.png"
    result = invoke("demo", *QUICK, "--correlation", "0", "--seed", "3", "--json", "--plot", picture)
    found = json.loads(result.stdout)
    assert found["correlation"] == 0
    assert found["seed"] == 3
    true_mask, mask = np.array(found["true_mask"]), np.array(found["mask"])
    assert mask.shape[0] == len(true_mask) == 7
    assert 0 <= found["support_f1"] <= 1
    assert found["n_active"] == (mask != 0).any(0).sum()
    padded = np.pad(true_mask, ((0, 0), (0, mask.shape[1] - 2)))
    np.testing.assert_array_equal(found["wrong"], (mask != 0) != (padded != 0))
    for scores in found["scores"].values():
        assert set(scores) == {"disentanglement", "completeness", "heldout_mse"}
        assert scores["heldout_mse"] > 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_columns_are_matched_to_the_truth_and_the_rest_follows():
    truth = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    mask = np.array([[0, 0, 2.0, 0], [0, 0, 3.0, 0], [0.5, 0, 0, 0], [0.5, 0, 0, 1.0]])
    np.testing.assert_array_equal(
        _match_columns(mask, truth), [[2, 0, 0], [3, 0, 0], [0, 0.5, 0], [0, 0.5, 1]]
    )


def test_a_true_factor_that_was_not_found_has_an_empty_column():
    truth = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    mask = np.array([[0, 0], [0, 0], [0, 2.0], [0, 1.0]])
    np.testing.assert_array_equal(_match_columns(mask, truth), [[0, 0], [0, 0], [0, 2], [0, 1]])
    np.testing.assert_array_equal(_match_columns(0 * mask, truth), np.zeros((4, 2)))


def test_bad_options_are_refused_before_the_fit(tmp_path):
    assert "--correlation above -1" in refusal("demo", "--correlation", "1.5")
    assert "--plot to end in .png" in refusal("demo", "--plot", tmp_path / "masks.doc")
