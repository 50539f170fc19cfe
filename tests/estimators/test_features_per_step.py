"""Fits whose gradient steps see some of the features only."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sparsevae import SparseVAE
from sparsevae.datasets import make_anchored_factors
from sparsevae.decoder import MaskedDecoder
from sparsevae.metrics import support_f1

from ..models import LADDER


@pytest.fixture
def decoded(monkeypatch):
    """Number of features of each pass through the decoder in which gradients are recorded."""
    counts = []
    forward = MaskedDecoder.forward

    def spy(self, *args, **kwargs):
        output = forward(self, *args, **kwargs)
        if torch.is_grad_enabled():
            counts.append(output.shape[-1])
        return output

    monkeypatch.setattr(MaskedDecoder, "forward", spy)
    return counts


def test_a_step_decodes_no_more_features_than_asked_for(fit, make_model, make_table, decoded):
    fit(make_model(features_per_step=3), make_table())
    assert set(decoded) == {3}


def test_the_last_steps_on_all_rows_have_all_features(fit, make_model, make_table, decoded):
    options = {"recipe": LADDER, "n_init": 1, "max_epochs": 40}
    model = fit(make_model(features_per_step=3, **options), make_table())
    n_last = int((model.history_["phase"] == "polish").sum())
    assert n_last > 0
    assert decoded == [3] * (len(decoded) - n_last) + [7] * n_last


def test_more_features_than_there_are_change_nothing(fit, make_model, make_table):
    masks = [
        fit(make_model(features_per_step=size, random_state=1), make_table()).mask_ for size in (None, 7, 70)
    ]
    np.testing.assert_array_equal(masks[1], masks[0])
    np.testing.assert_array_equal(masks[2], masks[0])


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli", "poisson", "negative_binomial"])
def test_every_factorised_likelihood_fits(fit, make_model, make_table, kind):
    X = make_table(kind)
    model = fit(make_model(kind, features_per_step=3), X)
    assert np.isfinite(model.score(X))


def test_the_factors_are_found_from_a_quarter_of_the_features_at_a_time(fit):
    data = make_anchored_factors(600, 24, 2, correlation=0.3, random_state=0)
    options = {"hidden_sizes": (32,), "n_init": 1, "max_epochs": 160, "random_state": 0}
    model = fit(SparseVAE(n_factors=2, features_per_step=6, **options), data.X)
    assert support_f1(model.mask_, data.mask) > 0.85


@pytest.mark.parametrize("kind", ["multinomial", "mixed"])
def test_a_multinomial_refuses_it_in_one_sentence(make_model, make_table, kind):
    with pytest.raises(ValueError, match="Expected features_per_step=None for a multinomial"):
        make_model(kind, features_per_step=3).fit(make_table(kind))


@pytest.mark.parametrize("value", [0, -1, 2.5, "all"])
def test_it_is_a_positive_whole_number(make_model, make_table, value):
    with pytest.raises(ValueError, match="features_per_step"):
        make_model(features_per_step=value).fit(make_table())
