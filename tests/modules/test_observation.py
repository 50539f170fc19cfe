"""Units, encoder inputs and size factors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparsevae.likelihoods import get_likelihood
from sparsevae.modules import Observation

MIXED = {"gaussian": [0, 3], "poisson": [1, 4], "bernoulli": [2], "multinomial": [5]}


@pytest.mark.parametrize(
    "likelihood, real, count, size, total",
    [
        ("gaussian", 6, 0, 0, 0),
        ("bernoulli", 0, 0, 0, 0),
        ("poisson", 0, 6, 6, 0),
        ("negative_binomial", 0, 6, 6, 0),
        ("multinomial", 0, 6, 0, 6),
        (MIXED, 2, 3, 2, 1),
    ],
)
def test_columns_are_sorted_by_what_their_likelihood_needs(
    make_observation, likelihood, real, count, size, total
):
    observation = make_observation(likelihood)
    kinds = ("real", "count", "size", "total")
    counted = [int(getattr(observation, f"{kind}_columns").sum()) for kind in kinds]
    assert counted == [real, count, size, total]


def test_units_go_there_and_back(make_observation, generator):
    observation = make_observation().double()
    x = torch.randn(5, 6, generator=generator, dtype=torch.float64)
    expected = (x - observation.location) / observation.scale
    assert_close(observation.to_model_units(x.numpy()), expected)
    assert_close(observation.to_user_units(observation.to_model_units(x.numpy())), x)


def test_units_are_exact_whatever_the_dtype_of_the_module(make_observation):
    """The same table in other units is the same numbers to the model, to the last bit of float32."""
    x = np.random.default_rng(0).standard_normal((5, 6))
    units = 10.0 ** np.array([-9, -3, 0, 1, 5, 9])
    plain = make_observation(location=x.mean(0), scale=x.std(0))
    other = make_observation(location=x.mean(0) * units, scale=x.std(0) * units)
    assert torch.equal(other.to_model_units(x * units), plain.to_model_units(x))
    halved = make_observation(location=x.mean(0), scale=x.std(0)).double().float()
    assert torch.equal(halved.to_model_units(x), plain.to_model_units(x))


def test_units_survive_the_state_dict(make_observation):
    saved = make_observation(location=np.full(6, 1 / 3))
    read = make_observation()
    read.load_state_dict(saved.state_dict())
    x = np.arange(12.0).reshape(2, 6)
    assert torch.equal(read.to_model_units(x), saved.to_model_units(x))


def test_counts_keep_their_units(make_observation):
    observation = make_observation("poisson")
    x = torch.arange(12.0).reshape(2, 6)
    assert torch.equal(observation.to_model_units(x.numpy()), x)
    assert torch.equal(observation.to_user_units(x), x)
    assert observation.log_jacobian() == 0


def test_the_jacobian_is_that_of_the_change_of_units(make_observation):
    observation = make_observation().double()
    x = torch.zeros(6, dtype=torch.float64)
    to_user_units = torch.autograd.functional.jacobian(observation.to_user_units, x)
    assert_close(observation.log_jacobian(), -torch.linalg.slogdet(to_user_units).logabsdet)


def test_size_factors_are_one_on_average_and_never_zero(make_observation):
    observation = make_observation("poisson", mean_total=4.0)
    x = torch.tensor([[1.0, 1, 1, 1, 0, 0], [2, 2, 2, 2, 0, 0], [0, 0, 0, 0, 0, 0]])
    size = observation.size(x)
    assert size[:2].tolist() == [1.0, 2.0]
    assert size[2] > 0
    assert make_observation().size(x) is None


def test_size_factors_of_a_mixed_table_count_their_own_columns(make_observation):
    observation = make_observation(MIXED, mean_total=2.0)
    x = torch.tensor([[100.0, 3.0, 1.0, 50.0, 1.0, 7.0]])
    assert observation.size(x).tolist() == [2.0]
    assert observation.total(x).tolist() == [7.0]


def test_the_encoder_sees_standardised_logarithms_of_scaled_counts(make_observation):
    observation = make_observation("poisson").double()
    x = torch.tensor([[1.0, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60]], dtype=torch.float64)
    scaled = x / (x.sum(-1, keepdim=True) / observation.mean_total)
    expected = (torch.log1p(scaled) - observation.input_location) / observation.input_scale
    assert_close(observation.batch(x).inputs, expected)
    # Rows that differ in size only look the same to the encoder.
    assert_close(observation.batch(x).inputs[0], observation.batch(x).inputs[1])


def test_the_encoder_sees_documents_with_their_length(make_observation):
    observation = make_observation("multinomial").double()
    x = torch.tensor([[1.0, 2, 3, 4, 5, 6]], dtype=torch.float64)
    expected = (torch.log1p(x) - observation.input_location) / observation.input_scale
    assert_close(observation.batch(x).inputs, expected)


def test_the_encoder_sees_each_kind_of_a_mixed_table_in_its_own_way(make_observation):
    observation = make_observation(MIXED, input_location=np.zeros(6), input_scale=np.ones(6), mean_total=4.0)
    x = torch.tensor([[-5.0, 3.0, 1.0, 2.0, 1.0, 7.0]])
    seen = observation.batch(x).inputs[0].tolist()
    assert seen == pytest.approx([-5.0, math.log(4), 1.0, 2.0, math.log(2), math.log(8)])


def test_average_rows_have_size_one_and_the_mean_length(make_observation):
    observation = make_observation(MIXED, mean_words=9.4)
    rows = observation.average_rows(3)
    assert rows["size"].tolist() == [1.0, 1.0, 1.0]
    assert rows["total"].tolist() == pytest.approx([9.4] * 3)
    assert observation.average_rows(2, whole=True)["total"].tolist() == [9.0, 9.0]
    assert make_observation("multinomial", mean_words=0.2).average_rows(1, whole=True)["total"] == 1
    assert make_observation().average_rows(3) == {"size": None, "total": None}


def test_a_blank_observation_is_filled_by_a_state(make_observation):
    observation = make_observation()
    blank = Observation.blank(get_likelihood("gaussian", 6), 6)
    blank.load_state_dict(observation.state_dict())
    for name, value in observation.state_dict().items():
        assert torch.equal(blank.state_dict()[name], value)


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson", "multinomial", MIXED], ids=str)
def test_a_batch_has_all_that_is_known_of_its_rows(make_observation, make_rows, likelihood):
    observation, x = make_observation(likelihood).double(), make_rows(likelihood)
    batch = observation.batch(x)
    assert batch.x is x
    assert_close(batch.inputs, observation.encoder_input(x, observation.size(x)))
    for value, expected in ((batch.size, observation.size(x)), (batch.total, observation.total(x))):
        assert (value is None) == (expected is None)
        assert value is None or torch.equal(value, expected)
    assert batch.observed is batch.weight is batch.group is batch.features is None


def test_a_batch_takes_along_what_it_is_told(make_observation, make_rows):
    x = make_rows()
    observed, weight, group = x > 0, torch.rand(8), torch.arange(8) % 3
    batch = make_observation().double().batch(x, observed=observed, weight=weight, group=group)
    assert batch.observed is observed
    assert batch.weight is weight
    assert batch.group is group


def test_rows_of_replicates_are_rows_of_each(make_observation, make_rows):
    observation = make_observation(MIXED).double()
    rows = torch.stack([make_rows(MIXED, seed=seed) for seed in range(2)])
    together = observation.batch(rows)
    for r in range(2):
        alone = observation.batch(rows[r])
        assert_close(together.inputs[r], alone.inputs)
        assert_close(together.size[r], alone.size)
        assert_close(together.total[r], alone.total)
