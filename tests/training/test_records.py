from __future__ import annotations

import numpy as np
import pytest

from sparsevae.training.records import pack_records, unpack_records


def test_records_come_back_with_their_types():
    first = {
        "epoch": 1,
        "phase": "dense",
        "rate": 0.1,
        "objective": np.float32([1.5, np.nan]),
        "n": np.array(3),
    }
    first["bound"] = np.float32(0.1)
    last = {**first, "epoch": 3, "objective": np.array(2.0), "validation": np.array(-1.0)}
    records = [first, {**first, "epoch": 2}, last, first]
    packed = pack_records(records)
    assert len(packed) == 3  # two alike, and one of another shape between them and the last
    assert packed[0]["objective"].shape == (2, 2)
    for found, expected in zip(unpack_records(packed), records, strict=True):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert type(found[name]) is type(value)
            np.testing.assert_array_equal(found[name], value)
            assert getattr(found[name], "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize("records", [[], [{"epoch": 1}], [{"bound": np.float32(2.5)}] * 3])
def test_few_records(records):
    assert unpack_records(pack_records(records)) == records
