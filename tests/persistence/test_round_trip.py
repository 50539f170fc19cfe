"""A saved model comes back to the last bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import sparsevae
from sparsevae import SparseVAE
from sparsevae.exceptions import ConvergenceWarning
from sparsevae.persistence import SavedModelError

from ..tables import LIKELIHOODS
from .helpers import fit, make_table


def same(value, again):
    """Equality of fitted attributes, with arrays, data frames and NaN."""
    if isinstance(value, pd.DataFrame):
        pd.testing.assert_frame_equal(again, value)
    else:
        np.testing.assert_equal(again, value)
        if isinstance(value, np.ndarray):
            assert again.dtype == value.dtype
    return True


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("recipe", ["paper", "default"])
def test_a_loaded_model_is_the_same_to_the_last_bit(tmp_path, likelihood, recipe):
    model, X = fit(likelihood, recipe=recipe, n_init=1), make_table(likelihood, seed=1)
    again = SparseVAE.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.sample(7, random_state=0), model.sample(7, random_state=0))
    Z = model.transform(X)
    np.testing.assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))
    fitted = {name for name in vars(model) if name.endswith("_")} - {"module_"}
    assert fitted == {name for name in vars(again) if name.endswith("_")} - {"module_"}
    assert all(same(getattr(model, name), getattr(again, name)) for name in fitted)
    for name, value in model.module_.state_dict().items():
        assert torch.equal(again.module_.state_dict()[name], value), name
    np.testing.assert_array_equal(again.module_.mask.inclusion(), model.module_.mask.inclusion())


@pytest.mark.parametrize("hidden_sizes", [(), (3, 4, 5), [4, 4]])
def test_any_depth_comes_back(tmp_path, hidden_sizes):
    model = fit(hidden_sizes=hidden_sizes)
    again = SparseVAE.load(model.save(tmp_path / "model"))
    assert again.hidden_sizes == hidden_sizes
    assert type(again.hidden_sizes) is type(hidden_sizes)
    np.testing.assert_array_equal(again.transform(make_table()), model.transform(make_table()))


def test_names_and_mixed_likelihoods_come_back(tmp_path):
    frame = pd.DataFrame(make_table(), columns=["größe", "b", "c", "d"])
    frame["c"], frame["d"] = make_table("poisson")[:, 2], make_table("bernoulli")[:, 3]
    likelihood = {"gaussian": ["größe", "b"], "poisson": frame.columns[[2]], "bernoulli": slice(3, 4)}
    model = fit(likelihood, frame)
    again = SparseVAE.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    assert again.feature_names_in_.dtype == object
    pd.testing.assert_frame_equal(again.loadings(), model.loadings())
    np.testing.assert_array_equal(again.score_samples(frame), model.score_samples(frame))
    assert again.likelihood["bernoulli"] == slice(3, 4)


def test_parameters_of_every_kind_come_back_and_fit_again(tmp_path):
    parameters = {
        "init": np.full((4, 2), 0.5, dtype=np.float32),
        "anchors": {0: 1, "x2": 0},
        "inclusion_prior": (0.25, 1.0),
        "random_state": np.random.RandomState(4),
        "learning_rate": np.float64(0.01),
        "spike_rate": 20.0,
    }
    model = fit(**parameters)
    again = SparseVAE.load(model.save(tmp_path / "model"))
    got, wanted = again.get_params(), model.get_params()
    np.testing.assert_array_equal(got.pop("init"), wanted.pop("init"))
    assert again.init.dtype == np.float32
    states = [state.pop("random_state").get_state() for state in (got, wanted)]
    np.testing.assert_array_equal(states[0][1], states[1][1])
    assert got == wanted
    assert isinstance(again.inclusion_prior, tuple)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(again.fit(make_table()).mask_, model.fit(make_table()).mask_)


def test_a_covariance_given_as_an_array_comes_back(tmp_path):
    covariance = np.array([[1.0, 0.3], [0.3, 1.0]])
    again = SparseVAE.load(fit(factor_covariance=covariance).save(tmp_path / "model"))
    np.testing.assert_array_equal(again.factor_covariance, covariance)


def test_the_kind_of_output_comes_back(tmp_path):
    model = fit(X=pd.DataFrame(make_table(), columns=list("abcd"))).set_output(transform="pandas")
    again = SparseVAE.load(model.save(tmp_path / "model"))
    assert isinstance(again.transform(pd.DataFrame(make_table(), columns=list("abcd"))), pd.DataFrame)


def test_a_model_loads_in_another_process_after_its_directory_has_moved(model, saved, tmp_path):
    moved = tmp_path / "elsewhere" / "renamed"
    moved.parent.mkdir()
    shutil.move(saved, moved)
    np.save(tmp_path / "X.npy", make_table())
    script = (
        "import numpy as np, sparsevae\n"
        f"model = sparsevae.SparseVAE.load({str(moved)!r})\n"
        "np.save('scores.npy', model.score_samples(np.load('X.npy')))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(sparsevae.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, env=environment)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), model.score_samples(make_table()))


def test_a_subclass_saves_and_loads_without_a_line_of_its_own(tmp_path):
    class Renamed(SparseVAE):
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = Renamed(2, hidden_sizes=(), recipe="paper", max_epochs=1, random_state=0).fit(make_table())
    again = Renamed.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(make_table()), model.transform(make_table()))
    with pytest.raises(SavedModelError, match="Expected a saved SparseVAE; got a Renamed"):
        SparseVAE.load(tmp_path / "model")
