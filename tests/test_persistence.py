"""A saved model comes back to the last bit, is never half-written, and is refused in words when damaged."""

from __future__ import annotations

import json
import math
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
from hypothesis import given
from hypothesis import strategies as st

import sparsevae
from sparsevae import SparseVAE
from sparsevae.exceptions import ConvergenceWarning, ParameterError, SparseVAEError
from sparsevae.persistence import (
    FORMAT_VERSION,
    SavedModelError,
    SavedModelNotFoundError,
    directory,
    load_estimator,
    read_header,
)
from sparsevae.persistence.codec import decode, encode

LIKELIHOODS = ["gaussian", "bernoulli", "poisson", "negative_binomial", "multinomial"]
FILES = ["model.json", "model.safetensors"]


def make_table(likelihood="gaussian", seed=0):
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 4))
    counts = rng.poisson(np.exp(1 + 0.3 * signal)) + 1.0
    return {"gaussian": 10 + 5 * signal, "bernoulli": (signal > 0) + 0.0}.get(likelihood, counts)


def fit(likelihood="gaussian", X=None, **options):
    settings = {"n_factors": 2, "hidden_sizes": (4,), "recipe": "paper", "max_epochs": 2, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SparseVAE(**{**settings, "likelihood": likelihood, **options}).fit(
            make_table(likelihood) if X is None else X
        )


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture
def saved(model, tmp_path):
    return model.save(tmp_path / "model")


def same(value, again):
    """Equality of fitted attributes, with arrays, data frames and NaN."""
    if isinstance(value, pd.DataFrame):
        pd.testing.assert_frame_equal(again, value)
    else:
        np.testing.assert_equal(again, value)
        if isinstance(value, np.ndarray):
            assert again.dtype == value.dtype
    return True


# -- there and back -----------------------------------------------------------------------------------------


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
    np.testing.assert_array_equal(again.module_.inclusion(), model.module_.inclusion())


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


# -- on disk ------------------------------------------------------------------------------------------------


def test_a_saved_model_is_two_files_that_say_what_they_are(saved):
    assert sorted(entry.name for entry in saved.iterdir()) == FILES
    header = read_header(saved)
    assert header["class"] == "SparseVAE"
    assert header["format_version"] == FORMAT_VERSION
    assert header["package_version"] == sparsevae.__version__
    assert set(header) == {"format_version", "package_version", "class", "tensors_sha256"}


def test_the_json_is_strict_and_readable(saved):
    text = (saved / "model.json").read_text(encoding="utf-8")
    document = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert document["parameters"]["n_factors"] == 2
    assert document["parameters"]["hidden_sizes"] == {"$tuple": [4]}


def test_equal_models_are_equal_files(model, tmp_path):
    one, two = model.save(tmp_path / "one"), model.save(tmp_path / "two")
    for name in FILES:
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_nothing_is_pickled(saved, monkeypatch):
    import pickle

    def refuse(*args, **options):
        raise AssertionError("pickle was called")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    SparseVAE.load(saved)


def test_a_saved_model_is_replaced(saved):
    other = fit(n_factors=3)
    other.save(saved)
    assert SparseVAE.load(saved).mask_.shape == (4, 3)
    assert [entry.name for entry in saved.parent.iterdir()] == ["model"]


def test_directories_on_the_way_are_made_and_an_empty_one_is_used(model, tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "a" / "b" / "model", tmp_path / "empty"):
        assert model.save(str(path)) == path
        SparseVAE.load(str(path))


def test_other_things_are_never_overwritten(model, tmp_path):
    file, folder = tmp_path / "notes.txt", tmp_path / "folder"
    file.write_text("mine")
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    for path in (file, folder):
        with pytest.raises(SavedModelError, match=r"Expected a new directory, .* Choose another path"):
            model.save(path)
    assert file.read_text() == (folder / "notes.txt").read_text() == "mine"


def test_a_saved_model_with_other_things_beside_it_is_not_replaced(model, saved):
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(SavedModelError, match="a directory with other things in it"):
        model.save(saved)
    SparseVAE.load(saved)


@pytest.mark.parametrize("step", ["_write", "_move_into_place"])
def test_a_save_that_fails_leaves_the_old_model_and_no_crumbs(model, saved, monkeypatch, step):
    before = {name: (saved / name).read_bytes() for name in FILES}

    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(directory, step, full)
    with pytest.raises(OSError, match="No space left"):
        fit(n_factors=3).save(saved)
    assert {name: (saved / name).read_bytes() for name in FILES} == before
    assert [entry.name for entry in saved.parent.iterdir()] == ["model"]


def test_a_save_that_cannot_move_puts_the_old_model_back(model, saved, monkeypatch):
    rename = Path.rename

    def stuck(self, target):
        if Path(target) == saved and (self / "model.json").read_bytes() != before:
            raise OSError("the file system has gone away")
        return rename(self, target)

    before = (saved / "model.json").read_bytes()
    monkeypatch.setattr(Path, "rename", stuck)
    with pytest.raises(OSError, match="gone away"):
        fit(n_factors=3).save(saved)
    assert SparseVAE.load(saved).mask_.shape == (4, 2)
    assert [entry.name for entry in saved.parent.iterdir()] == ["model"]


# -- damage -------------------------------------------------------------------------------------------------


def test_a_path_without_a_model_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a directory with model.json .* Check the path") as caught:
        SparseVAE.load(tmp_path / "nowhere")
    assert isinstance(caught.value, SavedModelNotFoundError | SparseVAEError)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(SavedModelNotFoundError, match=f"got no {name} in"):
        SparseVAE.load(saved)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_off_is_refused(saved, name, share):
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(SavedModelError, match=r"cut off or changed. Copy it again, or save the model again"):
        SparseVAE.load(saved)


def test_one_changed_bit_of_the_tensors_is_noticed(saved):
    content = bytearray((saved / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (saved / "model.safetensors").write_bytes(content)
    with pytest.raises(SavedModelError, match="does not match the checksum"):
        SparseVAE.load(saved)


def change_json(saved, change):
    path = saved / "model.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_a_newer_format_asks_for_an_upgrade(saved):
    change_json(
        saved, lambda document: document.update(format_version=FORMAT_VERSION + 1, package_version="9.0")
    )
    with pytest.raises(SavedModelError, match=r"got format 2, written by sparsevae 9.0. Upgrade sparsevae"):
        SparseVAE.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("state"),
        lambda document: document.pop("format_version"),
        lambda document: document["parameters"].update(n_wings=2),
        lambda document: document["state"]["module"]["config"].update(n_factors=3),
        lambda document: document["state"]["module"].pop("tensors"),
        lambda document: document["state"].pop("fitted"),
        lambda document: document["state"]["fitted"].update(mask_={"$array": "nothing"}),
        lambda document: document["state"]["fitted"].update(mask_={"$code": "import os"}),
    ],
    ids=["state", "version", "parameter", "config", "tensors", "fitted", "array", "tag"],
)
def test_a_json_that_was_changed_is_refused_in_words(saved, change):
    change_json(saved, change)
    with pytest.raises(SavedModelError, match="as save wrote it"):
        SparseVAE.load(saved)


def test_json_that_is_no_object_is_refused(saved):
    (saved / "model.json").write_text("[1, 2]")
    with pytest.raises(SavedModelError, match="cut off or changed"):
        load_estimator(SparseVAE, saved)


def test_messages_are_one_sentence_or_two_on_one_line(saved, tmp_path):
    (saved / "model.json").write_text("{")
    for path in (saved, tmp_path / "nowhere"):
        with pytest.raises(SavedModelError) as caught:
            SparseVAE.load(path)
        assert "\n" not in str(caught.value)


# -- values as JSON -----------------------------------------------------------------------------------------

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
