from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from sparsevae import VAE, SparseVAE
from sparsevae.exceptions import ConvergenceWarning, ParameterError

from ..models import TINY
from ..tables import make_table

QUICK = {"n_factors": 2, "hidden_sizes": (5,), "n_init": 1, "max_epochs": 12, "random_state": 0}


def fit(model, callbacks, X=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(make_table() if X is None else X, callbacks=callbacks)


@pytest.mark.parametrize(
    "model", [SparseVAE(**QUICK), SparseVAE(**TINY), VAE(**QUICK)], ids=["default", "paper", "vae"]
)
def test_each_epoch_is_seen_as_plain_numbers_and_changes_nothing(model):
    seen = []
    model = fit(model, [seen.append])
    assert [record["step"] for record in seen] == list(range(1, len(seen) + 1))
    assert len(seen) >= model.n_iter_
    assert {"phase", "objective", "n_nonzero", "n_active", "validation"} <= seen[0].keys()
    json.dumps(seen)
    assert seen[-1]["objective"] == pytest.approx(model.history_["objective"].iloc[-1], rel=1e-6)
    alone = fit(type(model)(**model.get_params()), None)
    np.testing.assert_array_equal(alone.transform(make_table()), model.transform(make_table()))


def test_a_callback_can_end_a_fit():
    seen = []

    def stop(record):
        seen.append(record["step"])
        return record["step"] == 3

    model = VAE(**QUICK)
    with pytest.warns(ConvergenceWarning, match="Stopped by a callback after 3 epochs"):
        model.fit(make_table(), callbacks=[stop])
    assert seen == [1, 2, 3]
    assert model.n_iter_ == 3
    assert np.isfinite(model.transform(make_table())).all()


def test_the_next_fit_is_not_stopped_by_it():
    model = VAE(**QUICK)
    fit(model, [lambda record: True])
    assert model.n_iter_ == 1
    assert fit(model, None).n_iter_ > 1


def test_an_exception_ends_the_fit_and_leaves_the_best_model():
    def fail(record):
        if record["step"] == 4:
            raise OSError("the disk is full")

    later = []
    model = SparseVAE(**TINY | {"max_epochs": 9})
    with pytest.warns(ConvergenceWarning), pytest.raises(OSError, match="the disk is full"):
        model.fit(make_table(), callbacks=[fail, later.append])
    assert len(later) == 3
    assert model.n_iter_ == 4
    assert model.transform(make_table()).shape == (60, 2)
    assert model.mask_.shape == (7, 2)


def test_what_is_returned_must_be_true_to_stop():
    model = fit(VAE(**QUICK), [lambda record: "yes", lambda record: 1])
    assert model.n_iter_ > 1
    # What a comparison with a number of numpy gives is as true as Python's.
    assert fit(VAE(**QUICK), [lambda record: np.int64(record["step"]) >= 2]).n_iter_ == 2


@pytest.mark.parametrize("callbacks", [print, [1], "print"])
def test_callbacks_that_are_none_are_refused(callbacks):
    with pytest.raises(ParameterError, match="a list of functions"):
        VAE(**QUICK).fit(make_table(), callbacks=callbacks)


def test_fit_transform_takes_them_too():
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        VAE(**QUICK).fit_transform(make_table(), callbacks=[seen.append])
    assert seen
