import numpy as np

from sparsevae.datasets import load_ability_tests


def test_ability_tests_ship_with_the_package():
    data = load_ability_tests()
    assert data.X.shape == (301, 9)
    assert np.isfinite(data.X).all()
    assert dict(zip(*np.unique(data.target, return_counts=True), strict=True)) == {
        "Grant-White": 145,
        "Pasteur": 156,
    }


def test_ability_tests_have_readable_names_and_no_claimed_truth():
    data = load_ability_tests()
    assert data.feature_names[0] == "visual perception"
    assert data.mask is None


def test_tests_of_one_ability_correlate_more_than_tests_of_two():
    correlation = np.corrcoef(load_ability_tests().X.T)
    same = np.kron(np.eye(3), np.ones((3, 3))).astype(bool)
    np.fill_diagonal(correlation, np.nan)
    assert np.nanmean(correlation[same]) > np.nanmean(correlation[~same]) + 0.2
