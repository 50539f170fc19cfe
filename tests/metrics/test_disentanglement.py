import numpy as np
import pytest
from scipy.stats import spearmanr

from sparsevae.exceptions import DataError
from sparsevae.metrics import DCI, code_importances, dci, match_codes, spearman_matrix, spearman_mcc
from sparsevae.metrics import disentanglement as module


@pytest.fixture(scope="module")
def factors():
    return np.random.default_rng(0).standard_normal((300, 2))


def test_the_factors_themselves_score_nearly_one(factors):
    score = dci(factors, factors)
    assert min(score) > 0.97


def test_scores_do_not_change_under_monotone_maps_and_order(factors):
    codes = np.column_stack([np.exp(factors[:, 1]), -(factors[:, 0] ** 3)])
    expected = dci(factors, factors).disentanglement
    assert dci(codes, factors).disentanglement == pytest.approx(expected, abs=0.01)


def test_a_rotation_by_45_degrees_is_informative_but_entangled(factors):
    rotated = factors @ np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    score = dci(rotated, factors)
    assert score.disentanglement < 0.1
    assert score.completeness < 0.1
    assert score.informativeness > 0.8


def test_entropies_are_those_of_a_hand_computed_importance_matrix(factors, monkeypatch):
    importances = np.array([[1.0, 0.25], [0.0, 0.5], [0.0, 0.25]])
    monkeypatch.setattr(module, "code_importances", lambda *args, **kwargs: importances)
    score = dci(np.column_stack([factors, factors[:, 0]]), factors)
    # code 0 has shares 4/5 and 1/5 and weight 5/8; the others belong to factor 1 alone
    entropy = -(0.8 * np.log2(0.8) + 0.2 * np.log2(0.2))
    assert score.disentanglement == pytest.approx(5 / 8 * (1 - entropy) + 3 / 8)
    # factor 0 has one code; factor 1 has shares 1/4, 1/2, 1/4 of three
    assert score.completeness == pytest.approx(0.5 * 1 + 0.5 * (1 - 1.5 * np.log(2) / np.log(3)))


def test_constant_codes_are_left_out(factors):
    padded = np.column_stack([np.zeros(300), factors, np.ones((300, 2))])
    assert dci(padded, factors) == dci(factors, factors)
    assert code_importances(padded, factors).shape == (2, 2)


def test_codes_that_say_nothing_score_zero(factors):
    assert dci(np.zeros((300, 3)), factors) == DCI(0.0, 0.0, 0.0)
    assert dci(np.zeros((300, 0)), factors) == DCI(0.0, 0.0, 0.0)


def test_one_factor_is_always_disentangled(factors):
    assert dci(factors, factors[:, :1]).disentanglement == 1


def test_one_code_is_always_complete(factors):
    assert dci(factors[:, :1], factors).completeness == 1


def test_the_score_is_repeatable(factors):
    noisy = factors + 0.5 * np.random.default_rng(1).standard_normal(factors.shape)
    assert dci(noisy, factors, random_state=3) == dci(noisy, factors, random_state=3)


def test_useless_input_is_refused(factors):
    with pytest.raises(DataError, match="same number of rows"):
        dci(factors[:10], factors)
    with pytest.raises(DataError, match="no constant one"):
        dci(factors, np.ones((300, 1)))
    with pytest.raises(DataError, match="four rows"):
        dci(factors[:3], factors[:3])
    with pytest.raises(DataError, match="codes without missing"):
        dci(np.full((300, 2), np.nan), factors)


def test_rank_correlations_are_scipys(factors):
    codes = factors + np.random.default_rng(2).standard_normal(factors.shape)
    codes[:50, 0] = 0.0  # ties
    matrix = spearman_matrix(codes, factors)
    for c in range(2):
        for k in range(2):
            assert matrix[c, k] == pytest.approx(spearmanr(codes[:, c], factors[:, k]).statistic)


def test_matching_by_rank_finds_order_and_ignores_monotone_maps(factors):
    codes = np.column_stack([np.zeros(300), -np.exp(factors[:, 1]), factors[:, 0] ** 3])
    np.testing.assert_array_equal(match_codes(codes, factors), [[1, 1], [2, 0]])
    assert spearman_mcc(codes, factors) == pytest.approx(1)


def test_a_factor_without_code_counts_zero(factors):
    assert spearman_mcc(factors[:, :1], factors) == pytest.approx(0.5, abs=0.01)
    assert spearman_mcc(np.zeros((300, 2)), factors) == 0
    assert spearman_mcc(np.zeros((300, 0)), factors) == 0


def test_ranks_need_two_rows(factors):
    with pytest.raises(DataError, match="two rows"):
        spearman_mcc(factors[:1], factors[:1])
