"""Fits that are cut off in the middle of an epoch, and others that go on from their checkpoint."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from sparsevae.exceptions import ConvergenceWarning, DataWarning

from ..training.helpers import assert_equal_states


class Cut(BaseException):
    """As SIGKILL would: nobody catches it, nothing is written because of it."""


def fit(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*(looks like counts|are constant).*", DataWarning)
        return model.fit(X, **options)


def cut_off(model, X, folder, step, *, every=0.0, error=Cut, **options):
    """Fit until an epoch of this number has been trained and not yet kept; the steps that were seen."""
    seen = []

    def see(record):
        seen.append(record["step"])
        if record["step"] == step:
            raise error

    try:
        fit(model, X, checkpoint=folder, checkpoint_every=every, callbacks=[see], **options)
    except error:
        return seen
    raise AssertionError(f"the fit was over after {seen}")


def middles(phases):
    """Of each stretch of epochs with one name, one in the middle, counted from 1."""
    begins = [i for i, phase in enumerate(phases) if i == 0 or phase != phases[i - 1]]
    return [1 + (begin + end) // 2 for begin, end in zip(begins, [*begins[1:], len(phases)], strict=True)]


def assert_equal_models(model, expected, X):
    """Fitted estimators are equal to the last bit."""
    assert_equal_states(model.module_, expected.module_)
    pd.testing.assert_frame_equal(model.history_, expected.history_, check_exact=True)
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))
    if hasattr(expected, "starts_"):
        pd.testing.assert_frame_equal(model.starts_, expected.starts_, check_exact=True)
        assert model.dropped_factors_ == expected.dropped_factors_
        for name, rate in model.module_.mask.rates().items():
            np.testing.assert_array_equal(rate, expected.module_.mask.rates()[name])
