from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsevae.datasets import make_anchored_factors, make_sparse_factors
from sparsevae.exceptions import DataError
from sparsevae.identifiability import anchors_from_covariance


def quality(groups, mask):
    """Precision and recall of the anchors found, and the share of them beside anchors of their own factor."""
    anchor, factor = (mask != 0).sum(1) == 1, mask.argmax(1)
    found = np.concatenate([*groups, np.empty(0, dtype=int)]).astype(int)
    pure = sum(np.bincount(factor[g][anchor[g]], minlength=1).max(initial=0) for g in groups)
    return anchor[found].mean(), np.isin(np.flatnonzero(anchor), found).mean(), pure / len(found)


def sets(result):
    return {frozenset(group.tolist()) for group in result.groups}


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_finds_the_anchors_and_their_factors(correlation, seed):
    """Half of the further anchors have a curve of their own: alone, those cannot be found."""
    data = make_anchored_factors(2000, 60, 6, correlation=correlation, random_state=seed)
    precision, recall, purity = quality(anchors_from_covariance(data.X).groups, data.mask)
    assert precision >= 0.9
    assert recall >= 0.7
    assert purity >= 0.9


def test_with_linear_curves_every_anchor_is_found():
    data = make_anchored_factors(2000, 60, 6, correlation=0.3, nonlinear_share=0.0, random_state=0)
    result = anchors_from_covariance(data.X)
    assert sets(result) == {frozenset(range(5 * k, 5 * k + 5)) for k in range(6)}
    off = result.factor_correlation[~np.eye(6, dtype=bool)]
    np.testing.assert_allclose(np.abs(off), 0.3, atol=0.1)


def test_anchors_need_not_load_equally(rng):
    z = rng.standard_normal((1500, 2)) @ np.array([[1.0, 0.4], [0.0, 0.9]])
    mean = np.column_stack(
        [z[:, 0], 2 * z[:, 0], -5 * z[:, 0], z[:, 1], 30 * z[:, 1], z[:, 0] + z[:, 1], z[:, 0] - z[:, 1]]
    )
    X = mean + 0.7 * mean.std(0) * rng.standard_normal(mean.shape) * [0.2, 1, 2, 0.5, 1, 1, 1]
    assert sets(anchors_from_covariance(X)) == {frozenset({0, 1, 2}), frozenset({3, 4})}


def test_units_and_signs_do_not_matter(rng):
    data = make_anchored_factors(800, 30, 3, random_state=1)
    scaled = data.X * (10.0 ** rng.uniform(-4, 4, 30)) * rng.choice([-1, 1], 30) + 5.0
    assert sets(anchors_from_covariance(scaled)) == sets(anchors_from_covariance(data.X))


def test_order_of_the_features_does_not_matter(rng):
    data = make_anchored_factors(800, 30, 3, random_state=1)
    order = rng.permutation(30)
    shuffled = {frozenset(order[list(g)].tolist()) for g in sets(anchors_from_covariance(data.X[:, order]))}
    assert shuffled == sets(anchors_from_covariance(data.X))


def test_noise_has_no_anchors(rng):
    assert anchors_from_covariance(rng.normal(size=(300, 40))).groups == []


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_papers_example_shows_its_linear_anchors(correlation):
    data = make_sparse_factors(1000, correlation=correlation, random_state=1)
    groups = sets(anchors_from_covariance(data.X))
    assert any({0, 1} <= group <= {0, 1, 2} for group in groups)
    assert any({3, 4} <= group <= {3, 4, 5} for group in groups)


def test_replicates_of_a_mixed_feature_are_set_apart():
    data = make_anchored_factors(
        3000, 40, 3, correlation=0.2, nonlinear_share=0.0, interaction_share=0.0, random_state=0
    )
    z = data.factors
    noise = np.random.default_rng(0).standard_normal((3000, 2))
    X = np.column_stack([data.X, (z[:, :2].sum(1))[:, None] + 0.5 * noise])
    result = anchors_from_covariance(X)
    assert {40, 41} in [set(group.tolist()) for group in result.combinations]
    assert not {40, 41} & {j for group in result.groups for j in group.tolist()}


def test_copies_and_constants_are_no_trouble():
    data = make_anchored_factors(800, 30, 3, random_state=0)
    X = np.column_stack([data.X, data.X[:, 0], np.ones(800)])
    groups = sets(anchors_from_covariance(X))
    assert any({0, 1, 30} <= group for group in groups)
    assert not any(31 in group for group in groups)


def test_a_sparse_table_gives_the_same_groups():
    data = make_anchored_factors(600, 20, 2, random_state=0)
    X = np.maximum(np.rint(data.X + 2.0), 0.0)
    assert sets(anchors_from_covariance(sparse.csr_matrix(X))) == sets(anchors_from_covariance(X))


def test_the_table_names_features_and_keeps_every_statistic_below_the_threshold():
    data = make_anchored_factors(1000, 30, 3, correlation=0.3, random_state=0)
    frame = pd.DataFrame(data.X, columns=[f"gene {j}" for j in range(30)])
    result = anchors_from_covariance(frame)
    table = result.table
    assert table["feature"].tolist() == [f"gene {j}" for j in table["position"]]
    assert (table["statistic"] <= table["threshold"]).all()
    assert table["loading"].abs().between(0.5, 1.0).all()
    assert (table.groupby("group")["loading"].apply(lambda h: h.abs().is_monotonic_decreasing)).all()
    assert [len(group) for group in result.groups] == sorted((len(g) for g in result.groups), reverse=True)


def test_group_of_is_the_inverse_of_the_groups():
    data = make_anchored_factors(1000, 30, 3, random_state=0)
    result = anchors_from_covariance(data.X)
    label = result.group_of(30)
    assert all((label[members] == g).all() for g, members in enumerate(result.groups))
    assert (label >= 0).sum() == len(result.table)


def test_a_given_level_is_used_and_nothing_is_tuned():
    data = make_anchored_factors(1000, 30, 3, random_state=0)
    result = anchors_from_covariance(data.X, level=1e-3)
    assert result.level == 1e-3
    assert result.path.empty


def test_cross_validation_prefers_structure_to_none():
    data = make_anchored_factors(1000, 60, 6, correlation=0.3, random_state=0)
    result = anchors_from_covariance(data.X)
    assert result.path["loss"].min() < 1.0
    assert result.level == result.path["level"][result.path["loss"].idxmin()]


def test_the_same_seed_gives_the_same_result():
    data = make_anchored_factors(400, 30, 3, random_state=0)
    first, second = (anchors_from_covariance(data.X, random_state=4) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, second.table)


def test_three_features_say_nothing(rng):
    result = anchors_from_covariance(rng.normal(size=(100, 3)))
    assert result.groups == []
    assert result.table.empty


def test_too_few_samples_are_refused(rng):
    with pytest.raises(DataError, match="at least 40 samples"):
        anchors_from_covariance(rng.normal(size=(39, 10)))


def test_a_column_without_values_is_refused(rng):
    X = rng.normal(size=(100, 5))
    X[:, 2] = np.nan
    with pytest.raises(DataError, match="x2"):
        anchors_from_covariance(X)


def test_holes_do_not_hide_the_anchors(rng):
    data = make_anchored_factors(2000, 24, 3, correlation=0.3, nonlinear_share=0.0, random_state=0)
    X = data.X.copy()
    X[rng.uniform(size=X.shape) < 0.15] = np.nan
    found = anchors_from_covariance(X)
    precision, recall, purity = quality(found.groups, data.mask)
    assert precision == purity == 1.0
    assert recall > 0.9
    assert sets(anchors_from_covariance(sparse.csr_array(X))) == sets(found)


def test_text_is_refused():
    with pytest.raises(DataError, match="numbers"):
        anchors_from_covariance(pd.DataFrame({"a": ["x"] * 50, "b": range(50)}))


def test_names_must_match_the_features(rng):
    with pytest.raises(DataError, match="a name for each of 5"):
        anchors_from_covariance(rng.normal(size=(100, 5)), feature_names=["a", "b"])


def test_a_table_in_which_nothing_varies_has_no_anchors():
    assert anchors_from_covariance(np.ones((60, 5))).groups == []
