"""Values as JSON and arrays, there and back."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparsevae.exceptions import ParameterError
from sparsevae.persistence.codec import decode, encode

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
nested = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.tuples(st.integers()), inner)
    ),
    max_leaves=12,
)


def round_trip(value):
    arrays = {}
    text = json.dumps(encode(value, arrays, "value"), allow_nan=False)
    return decode(json.loads(text), arrays)


def equal(value, again):
    if isinstance(value, float) and math.isnan(value):
        return isinstance(again, float) and math.isnan(again)
    if isinstance(value, list | tuple):
        return type(again) is type(value) and len(again) == len(value) and all(map(equal, value, again))
    if isinstance(value, dict):
        return list(again) == list(value) and all(equal(value[key], again[key]) for key in value)
    return type(again) is type(value) and again == value


@given(nested)
def test_plain_values_come_back_with_their_types(value):
    assert equal(value, round_trip(value))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int64", "uint16", "float16", "float32", "float64", "<U3", "O"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3)])
def test_arrays_come_back_with_dtype_and_shape(dtype, shape):
    array = np.ones(shape, dtype=dtype)
    again = round_trip(array)
    np.testing.assert_array_equal(again, array)
    assert again.dtype == array.dtype
    assert again.shape == shape
    assert again.flags.writeable


def test_arrays_in_any_memory_order_come_back():
    array = np.arange(12.0).reshape(3, 4)
    for view in (array.T, array[::2], array[:, ::-1], np.asfortranarray(array)):
        np.testing.assert_array_equal(round_trip(view), view)


def test_tensors_scalars_and_special_numbers_come_back():
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert torch.equal(round_trip(tensor), tensor)
    scalar = round_trip(np.float32(0.1))
    assert scalar == np.float32(0.1)
    assert type(scalar) is np.float32
    assert round_trip([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert math.isnan(round_trip(math.nan))
    assert round_trip(slice(1, None, 2)) == slice(1, None, 2)


def test_data_frames_come_back_with_types_names_and_index():
    frame = pd.DataFrame(
        {"n": [1, 2], "x": [0.5, np.nan], "name": ["a", "b"], "yes": [True, False], "mixed": [None, 3]}
    )
    pd.testing.assert_frame_equal(round_trip(frame), frame)
    named = frame.set_index("name")
    pd.testing.assert_frame_equal(round_trip(named), named, check_names=False)
    pd.testing.assert_frame_equal(round_trip(frame.iloc[:0]), frame.iloc[:0])
    twice = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    pd.testing.assert_frame_equal(round_trip(twice), twice)


def test_keys_that_look_like_tags_are_kept_apart_from_tags():
    for value in ({"$array": 3}, {"$tuple": [1]}, {1: "a", "1": "b"}):
        assert round_trip(value) == value


@pytest.mark.parametrize("value", [object(), {1, 2}, lambda: 0, np.array([1j]), np.array([object()])])
def test_what_cannot_be_saved_is_named(value):
    with pytest.raises(ParameterError, match=r"in parameters.thing"):
        encode({"thing": value}, {}, "parameters")
