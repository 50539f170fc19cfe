from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from sparsevae.training.records import Records


def some_records():
    first = {
        "epoch": 1,
        "phase": "dense",
        "rate": 0.1,
        "objective": np.float32([1.5, np.nan]),
        "n": np.array(3),
    }
    first["bound"] = np.float32(0.1)
    last = {**first, "epoch": 3, "objective": np.array(2.0), "validation": np.array(-1.0)}
    return [first, {**first, "epoch": 2}, last, first]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        for name, value in other.items():
            assert type(one[name]) is type(value)
            np.testing.assert_array_equal(one[name], value)
            assert getattr(one[name], "dtype", None) == getattr(value, "dtype", None)


def test_records_come_back_with_their_types():
    records = Records(some_records())
    assert len(records) == 4
    assert_same(records, some_records())
    assert_same([records[-1], *records[1:3]], [some_records()[i] for i in (3, 1, 2)])
    with pytest.raises(IndexError):
        records[4]


def test_packed_records_come_back_too():
    packed = Records(some_records()).packed()
    assert len(packed) == 3  # two alike, and one of another shape between them and the last
    assert packed[0]["objective"].shape == (2, 2)
    found = Records(some_records()[:1])
    assert found.unpack_(packed) is found
    assert_same(found, some_records())


@pytest.mark.parametrize("few", [[], [{"epoch": 1}], [{"bound": np.float32(2.5)}] * 3])
def test_few_records(few):
    assert list(Records().unpack_(Records(few).packed())) == few


def test_what_is_packed_or_taken_out_is_a_copy():
    records = Records({"epoch": i, "bound": np.array(float(i))} for i in range(3))
    packed, taken = records.packed(), records[0]
    records.append({"epoch": 3, "bound": np.array(3.0)})
    packed[0]["bound"][:] = packed[0]["epoch"][0] = taken["bound"][...] = -1.0
    assert [record["epoch"] for record in records] == [float(record["bound"]) for record in records]
    assert len(packed[0]["bound"]) == 3


def test_values_that_are_added_are_copied():
    value, records = np.zeros(2), Records()
    records.append({"bound": value})
    value[:] = 1.0
    assert not records[0]["bound"].any()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_epochs():
    """A hundred thousand of them take less than 300 bytes each."""

    def resident():
        return 4096 * int(Path("/proc/self/statm").read_text().split()[1])

    records, terms = Records(), [f"term {i}" for i in range(10)]
    record = {name: np.float32([0.0]) for name in terms}

    def add(n):
        for i in range(n):
            records.append({"epoch": i, "phase": "climb", "learning_rate": 0.1 * i, **record})

    add(1000)
    before = resident()
    add(100_000)
    assert resident() - before < 300 * 100_000
