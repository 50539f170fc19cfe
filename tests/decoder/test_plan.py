from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from hypothesis.extra import numpy as hnp

from sparsevae.decoder import plan_mask

masks = hnp.arrays(
    "float64", st.tuples(st.integers(0, 12), st.integers(1, 5)), elements=st.sampled_from([0, 0, 1, -2])
)


@given(masks)
def test_every_feature_has_one_place(array):
    mask = torch.from_numpy(array)
    plan = plan_mask(mask)
    order = torch.cat([plan.general, plan.anchors, plan.empty])
    assert torch.equal(order.sort().values, torch.arange(len(mask)))
    assert torch.all((mask[plan.general] != 0).sum(1) > 1)
    assert torch.all((mask[plan.anchors] != 0).sum(1) == 1)
    assert torch.all(mask[plan.empty] == 0)


@given(masks)
def test_anchors_come_factor_by_factor(array):
    mask = torch.from_numpy(array)
    plan = plan_mask(mask)
    assert torch.all(mask[plan.anchors, plan.anchor_factors] != 0)
    expected = [factor for factor, count in enumerate(plan.anchor_counts) for _ in range(count)]
    assert plan.anchor_factors.tolist() == expected
    assert len(plan.anchor_counts) == mask.shape[1]


@given(masks)
def test_active_factors_are_those_that_general_features_use(array):
    mask = torch.from_numpy(array)
    plan = plan_mask(mask)
    used = (mask[plan.general] != 0).any(0)
    assert plan.active.tolist() == [factor for factor in range(mask.shape[1]) if used[factor]]


def test_only_empty_features_are_set_apart_when_zero_entries_need_gradients():
    mask = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    plan = plan_mask(mask, zero_gradients=True)
    assert plan.empty.tolist() == [0]
    assert plan.general.tolist() == [1, 2]
    assert plan.active is None
    assert len(plan.anchors) == 0


def test_columns_that_are_fixed_at_zero_need_no_gradients():
    mask = torch.tensor([[1.0, 0.0, 0.0, 2.0], [1.0, 1.0, 0.0, 0.0]])
    fixed = torch.tensor([[False, True, True, True], [True, False, True, True]])
    plan = plan_mask(mask, zero_gradients=True, fixed=fixed)
    assert plan.active.tolist() == [0, 1, 3]
    assert plan.zero_gradients
    fixed[0, 2] = False  # somebody may come to use it
    assert plan_mask(mask, zero_gradients=True, fixed=fixed).active is None


@pytest.mark.parametrize("widths", [(20,), (20, 30), (20, 30, 10)])
def test_sparser_masks_cost_less(widths):
    dense, anchors, empty = torch.ones(8, 4), torch.eye(4).repeat(2, 1), torch.zeros(8, 4)
    costs = [plan_mask(mask).cost(widths) for mask in (dense, anchors, empty)]
    assert costs[0] == 1
    assert costs[0] > costs[1] > costs[2] == 0


def test_factors_not_in_use_save_their_part_of_the_first_layer():
    mask = torch.ones(8, 4)
    mask[:, 1:3] = 0.0
    assert plan_mask(mask).cost((20,)) == pytest.approx((2 * 20 + 20) / (4 * 20 + 20))
    assert plan_mask(mask).cost((20, 30)) == pytest.approx((2 * 20 + 630) / (4 * 20 + 630))
    assert plan_mask(mask, zero_gradients=True).cost((20,)) == 1
