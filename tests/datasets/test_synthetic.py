import numpy as np
import pytest
from scipy import stats

from sparsevae.datasets import make_anchored_factors, make_sparse_factors
from sparsevae.exceptions import ParameterError


def test_paper_data_has_the_papers_mapping():
    data = make_sparse_factors(n_samples=50, random_state=1)
    z1, z2 = data.factors.T
    expected = np.column_stack([z1, 2 * z1, 3 * z1**2, 4 * z2, 5 * z2, 6 * np.sin(z2), 7 * z1 * z2])
    np.testing.assert_allclose(data.mean, expected)
    np.testing.assert_array_equal(data.mask, [[1, 0]] * 3 + [[0, 1]] * 3 + [[1, 1]])


def test_paper_data_has_its_default_size_and_noise_variance():
    data = make_sparse_factors(random_state=0)
    assert data.X.shape == (1000, 7)
    residual = (data.X - data.mean).ravel()
    assert stats.kstest(residual / np.sqrt(0.5), "norm").pvalue > 0.01
    assert "a variance" in data.description


@pytest.mark.parametrize("correlation", [0.0, 0.6, -0.5])
def test_factors_of_the_paper_data_are_correlated_as_asked(correlation):
    data = make_sparse_factors(n_samples=20_000, correlation=correlation, random_state=2)
    np.testing.assert_allclose(np.cov(data.factors.T), [[1, correlation], [correlation, 1]], atol=0.03)


def test_no_noise_gives_the_mean():
    data = make_sparse_factors(n_samples=5, noise_variance=0.0, random_state=0)
    np.testing.assert_array_equal(data.X, data.mean)


def test_negative_noise_is_refused():
    with pytest.raises(ParameterError, match="noise_variance >= 0"):
        make_sparse_factors(noise_variance=-1.0)
    with pytest.raises(ParameterError, match="noise_level >= 0"):
        make_anchored_factors(10, 10, 2, noise_level=np.nan)


def test_anchored_defaults_are_the_problem_of_sixty_features():
    data = make_anchored_factors(2000, 60, 6, random_state=0)
    sizes = data.mask.sum(axis=1)
    assert (sizes == 1).sum() == 30
    assert ((sizes == 2) | (sizes == 3)).sum() == 30
    assert [int(data.mask[sizes == 1, k].sum()) for k in range(6)] == [5] * 6
    assert sum(any(term.shape == "product" for term in curve.terms) for curve in data.curves) == 15
    ratio = (data.X - data.mean).std(axis=0) / data.mean.std(axis=0)
    np.testing.assert_allclose(ratio, 0.5, rtol=0.15)


def test_curves_and_mask_are_the_truth():
    data = make_anchored_factors(300, 20, 4, correlation=0.4, n_noise_features=3, random_state=5)
    for j, curve in enumerate(data.curves):
        np.testing.assert_allclose(curve(data.factors), data.mean[:, j])
        for k in range(4):
            moved = data.factors.copy()
            moved[:, k] += 1.0
            changes = not np.allclose(curve(moved), data.mean[:, j])
            assert changes == bool(data.mask[j, k])


def test_a_larger_sample_of_one_seed_extends_the_smaller():
    small, large = (make_anchored_factors(n, 30, 3, random_state=7) for n in (40, 90))
    np.testing.assert_array_equal(small.X, large.X[:40])
    assert small.curves == large.curves
    np.testing.assert_array_equal(small.noise_variance, large.noise_variance)


def test_seeds_differ_and_repeat():
    first, again, other = (make_anchored_factors(20, 20, 2, random_state=seed).X for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_no_factors_means_pure_noise():
    data = make_anchored_factors(2000, 8, 0, random_state=0)
    assert data.factors.shape == (2000, 0)
    assert data.mask.shape == (8, 0)
    np.testing.assert_array_equal(data.mean, 0)
    np.testing.assert_allclose(data.X.var(axis=0), data.noise_variance, rtol=0.15)


def test_a_correlation_matrix_is_accepted():
    matrix = np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]])
    data = make_anchored_factors(20_000, 9, 3, correlation=matrix, random_state=0)
    np.testing.assert_allclose(np.corrcoef(data.factors.T), matrix, atol=0.03)


def test_description_states_the_anchors_there_are():
    assert "anchors per factor [3, 3]" in make_anchored_factors(5, 7, 2).description
