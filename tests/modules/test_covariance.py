"""The split of posterior moments into a correlation and a scale."""

from __future__ import annotations

import torch
from torch.testing import assert_close

from sparsevae.modules.covariance import correlation_and_scale


def test_repeated_updates_settle_at_the_correlation_of_the_moments_shrunk_a_little():
    moments = torch.tensor([[4.0, 1.2], [1.2, 1.0]])
    correlation = torch.eye(2)
    for _ in range(100):
        correlation, scale = correlation_and_scale(moments, correlation, torch.tensor([True, True]))
    assert_close(correlation, torch.tensor([[1.0, 0.98 * 0.6], [0.98 * 0.6, 1.0]]))
    assert_close(scale, torch.tensor([2.0, 1.0]).sqrt())


def test_factors_not_in_use_are_standard_and_keep_their_scale():
    moments = torch.tensor([[4.0, 1.2], [1.2, 1.0]])
    correlation, scale = correlation_and_scale(moments, torch.eye(2), torch.tensor([False, True]))
    assert_close(correlation, torch.eye(2))
    assert_close(scale, torch.ones(2))


def test_moments_that_are_not_finite_leave_the_identity():
    moments = torch.full((2, 2), torch.nan)
    correlation, scale = correlation_and_scale(moments, torch.eye(2), torch.tensor([True, True]))
    assert_close(correlation, torch.eye(2))
    assert_close(scale, torch.ones(2))
