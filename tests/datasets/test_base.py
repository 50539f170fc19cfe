import dataclasses

import numpy as np
import pytest
from scipy import sparse

from sparsevae.datasets import Dataset, make_sparse_factors
from sparsevae.datasets.base import as_generator, check_count
from sparsevae.exceptions import DataError, ParameterError


@pytest.fixture
def small():
    return make_sparse_factors(n_samples=6, random_state=0)


def test_dataset_is_frozen(small):
    with pytest.raises(dataclasses.FrozenInstanceError):
        small.X = np.zeros((6, 7))


def test_fields_come_in_the_order_of_the_contract():
    names = [field.name for field in dataclasses.fields(Dataset)]
    assert names[:6] == ["X", "feature_names", "factors", "mask", "target", "description"]


def test_take_cuts_rows_of_everything_that_has_rows(small):
    part = small.take([4, 1])
    np.testing.assert_array_equal(part.X, small.X[[4, 1]])
    np.testing.assert_array_equal(part.factors, small.factors[[4, 1]])
    np.testing.assert_array_equal(part.mean, small.mean[[4, 1]])
    assert part.mask is small.mask
    assert part.target is None


def test_take_accepts_a_boolean_array_and_sparse_rows():
    data = Dataset(sparse.csr_array(np.eye(3)), ["a", "b", "c"], target=np.array([1, 2, 3]))
    part = data.take(np.array([True, False, True]))
    np.testing.assert_array_equal(part.X.toarray(), np.eye(3)[[0, 2]])
    np.testing.assert_array_equal(part.target, [1, 3])


@pytest.mark.parametrize(
    "field, value",
    [
        ("factors", np.zeros((5, 2))),
        ("mask", np.zeros((6, 2))),
        ("target", np.zeros(5)),
        ("mean", np.zeros((6, 6))),
        ("noise_variance", np.zeros(6)),
        ("feature_names", ["a"]),
    ],
)
def test_a_field_of_the_wrong_shape_is_refused_by_name(small, field, value):
    with pytest.raises(DataError, match=f"Expected {field} of shape"):
        dataclasses.replace(small, **{field: value})


def test_too_few_curves_are_refused(small):
    with pytest.raises(DataError, match="one curve per feature"):
        dataclasses.replace(small, curves=small.curves[:2])


def test_a_flat_array_is_refused():
    with pytest.raises(DataError, match="two dimensions"):
        Dataset(np.zeros(3), ["a"])


def test_repr_says_what_is_known(small):
    assert repr(small).startswith("Dataset(6 samples x 7 features, array; known: factors, mask, mean")


def test_generator_from_random_state_leaves_the_global_seed_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    as_generator(3).random(10)
    as_generator(np.random.RandomState(3)).random(10)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_generators_of_the_same_random_state_agree():
    draws = [as_generator(np.random.RandomState(3)).random(4) for _ in range(2)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3"])
def test_counts_that_are_no_counts_are_refused(value):
    with pytest.raises(ParameterError, match="whole number >= 1"):
        check_count("n_samples", value, minimum=1)
