"""Several likelihoods in one table, and how a user names them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae.likelihoods import Gaussian, Mixed, get_likelihood

from .. import tables
from .helpers import LIKELIHOODS


def test_mixed_density_is_the_sum_of_its_parts(draw, output, dispersion, size):
    mixed = LIKELIHOODS["mixed"]
    x = draw(mixed)
    expected = sum(
        part.log_prob(x[:, c], output[:, c], dispersion=dispersion[c], size=size) for part, c in mixed.parts
    )
    torch.testing.assert_close(mixed.log_prob(x, output, dispersion=dispersion, size=size), expected)
    assert mixed.has_dispersion
    assert mixed.uses_size
    assert not LIKELIHOODS["mixed with words"].factorised


@pytest.mark.parametrize("name", tables.LIKELIHOODS)
def test_a_name_gives_its_likelihood(name):
    likelihood = get_likelihood(name, 4)
    assert likelihood.name == name
    assert get_likelihood(likelihood, 4) is likelihood


@pytest.mark.parametrize(
    "columns",
    [[0, 2], (0, 2), np.array([0, 2]), slice(0, 3, 2), [True, False, True, False], range(0, 4, 2)],
    ids=["list", "tuple", "array", "slice", "boolean", "range"],
)
def test_a_dict_gives_each_likelihood_its_columns(columns):
    likelihood = get_likelihood({"poisson": columns, Gaussian(): [3, 1]}, 4)
    parts = {part.name: list(c) for part, c in likelihood.split(4)}
    assert parts == {"poisson": [0, 2], "gaussian": [3, 1]}


def test_a_part_without_columns_is_allowed():
    likelihood = get_likelihood({"poisson": [], "gaussian": [0, 1]}, 2)
    x = torch.zeros(3, 2)
    assert likelihood.log_prob(x, x, dispersion=torch.ones(2)).shape == (3,)


@pytest.mark.parametrize(
    "spec, message",
    [
        ("softmax", "got 'softmax'. The paper's softmax loss is 'multinomial'"),
        ("Normal", "Real values with normal noise are 'gaussian'"),
        ("cauchy", "one of 'gaussian', 'multinomial', .*; got 'cauchy'. Pass one of these names"),
        (None, "got None"),
        (3, "got 3"),
        ({"poisson": [0, 1], "softmax": [2]}, "got 'softmax'"),
        ({"poisson": [0, 1]}, "each of the 3 columns exactly once; got 2 columns"),
        ({"poisson": [0, 1], "gaussian": [1, 2]}, "every column exactly once; got .*'poisson': \\[0, 1\\]"),
        ({"poisson": [0, 3], "gaussian": [1, 2]}, "table of 3 columns; got \\[0, 3\\]"),
        (
            {"poisson": ["age"], "gaussian": [1, 2]},
            "list of indices, a slice or a boolean mask; got \\['age'\\]",
        ),
        ({}, "every column exactly once"),
    ],
)
def test_an_unusable_specification_is_refused_with_a_remedy(spec, message):
    with pytest.raises(ValueError, match=message):
        get_likelihood(spec, 3)


def test_an_object_for_another_table_is_refused():
    with pytest.raises(ValueError, match="each of the 4 columns"):
        get_likelihood(Mixed([(Gaussian(), [0, 1])]), 4)
