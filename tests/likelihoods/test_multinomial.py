"""Words of a document: the density against SciPy, draws, and words that are missing."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy import stats

from sparsevae.likelihoods import Multinomial, multinomial_log_prob

from .helpers import FLOAT64, N_FEATURES, N_SAMPLES


def test_multinomial_density_equals_scipy_with_its_coefficient(output, rng):
    x = rng.poisson(2.0, size=(N_SAMPLES, N_FEATURES)).astype(float)
    x[0] = 0.0
    shares = torch.softmax(output, -1).numpy()
    expected = [stats.multinomial.logpmf(row, row.sum(), share) for row, share in zip(x, shares, strict=True)]
    np.testing.assert_allclose(
        multinomial_log_prob(torch.from_numpy(x), output), expected, rtol=1e-10, atol=1e-12
    )


@given(st.floats(-1e4, 1e4), st.integers(0, 2**31))
def test_multinomial_ignores_a_shift_of_all_outputs(shift, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 9, (3, 4), generator=generator).double()
    logits = torch.randn(3, 4, generator=generator, dtype=FLOAT64)
    torch.testing.assert_close(
        multinomial_log_prob(x, logits + shift), multinomial_log_prob(x, logits), rtol=1e-7, atol=1e-7
    )


def test_a_missing_word_leaves_the_softmax(output, rng):
    x = torch.from_numpy(rng.poisson(2.0, size=(N_SAMPLES, N_FEATURES)).astype(float))
    observed = torch.ones(N_SAMPLES, N_FEATURES, dtype=torch.bool)
    observed[:, 2] = False
    kept = [0, 1, 3, 4]
    torch.testing.assert_close(
        multinomial_log_prob(x, output, observed), multinomial_log_prob(x[:, kept], output[:, kept])
    )


def test_multinomial_draws_have_the_asked_number_of_words(output, total, generator):
    x = Multinomial().sample(output, {}, total=total, generator=generator)
    assert torch.equal(x.sum(-1), total)


def test_multinomial_draws_never_take_a_word_of_no_chance(generator):
    logits = torch.tensor([[0.0, -1e4, 0.0, -1e4]])
    x = Multinomial().sample(logits, {}, total=torch.tensor([1000.0]), generator=generator)
    assert x[0, 1] == x[0, 3] == 0
    assert x.sum() == 1000


def test_a_forgotten_total_is_named(output):
    with pytest.raises(ValueError, match="Expected total"):
        Multinomial().sample(output, {})
