"""Rows with what is known of them: parts, copies, and means that count weights."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from sparsevae.modules import Batch


@pytest.fixture
def batch(generator):
    x = torch.randn(7, 3, generator=generator)
    return Batch(
        x,
        inputs=2.0 * x,
        size=torch.arange(1.0, 8.0),
        total=torch.arange(7.0),
        observed=x > 0,
        weight=torch.arange(1.0, 8.0) / 3.0,
        group=torch.arange(7) % 2,
        features=torch.tensor([0, 2]),
    )


def same(one, other):
    """Whether two batches hold the same, with the same left out."""
    return all(
        (a is None and b is None) or (a is not None and b is not None and torch.equal(a, b))
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("index", [slice(2, 5), torch.tensor([5, 0, 0])], ids=["slice", "positions"])
def test_some_rows_take_along_what_is_known_of_them(batch, index):
    some = batch.rows(index)
    assert some.n_rows == 3
    assert torch.equal(some.features, batch.features)
    for name in ("x", "inputs", "size", "total", "observed", "weight", "group"):
        assert torch.equal(getattr(some, name), getattr(batch, name)[index]), name


def test_an_index_of_two_dimensions_gives_each_replicate_rows_of_its_own(batch):
    index = torch.tensor([[0, 1, 2], [6, 6, 5]])
    some = batch.rows(index)
    assert some.x.shape == (2, 3, 3)
    assert some.n_rows == 3
    for r in range(2):
        own = batch.rows(index[r])
        for name in ("x", "inputs", "size", "total", "observed", "weight", "group"):
            assert torch.equal(getattr(some, name)[r], getattr(own, name)), name


def test_parts_hold_every_row_once_in_order(batch):
    parts = list(batch.split(3))
    assert [part.n_rows for part in parts] == [3, 3, 1]
    assert torch.equal(torch.cat([part.x for part in parts]), batch.x)
    assert torch.equal(torch.cat([part.weight for part in parts]), batch.weight)


def test_rows_repeated_are_one_copy_after_the_other(batch):
    twice = batch.repeated(2)
    assert twice.n_rows == 14
    assert same(twice.rows(slice(0, 7)), batch)
    assert same(twice.rows(slice(7, 14)), batch)


def test_a_copy_has_tensors_of_its_own(batch):
    copy = batch.copied()
    assert same(copy, batch)
    copy.x.zero_()
    copy.weight.zero_()
    assert batch.x.any()
    assert batch.weight.any()


def test_what_is_not_known_stays_unknown(generator):
    x = torch.randn(4, 3, generator=generator)
    plain = Batch(x, x)
    for other in (plain.rows(slice(0, 2)), next(plain.split(2)), plain.repeated(2), plain.copied()):
        assert all(value is None for value in other[2:])


def test_a_mean_over_rows_counts_each_as_often_as_its_weight(batch):
    values = torch.arange(14.0).reshape(2, 7)
    expected = (values * batch.weight).sum(-1) / batch.weight.sum()
    assert_close(batch.row_mean(values), expected)
    assert_close(batch._replace(weight=None).row_mean(values), values.mean(-1))
    assert_close(batch._replace(weight=torch.full((7,), 3.0)).row_mean(values), values.mean(-1))
