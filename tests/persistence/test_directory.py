"""A saved model is two files that are never half-written, and are never written over other things."""

from __future__ import annotations

import json

import pytest

import sparsevae
from sparsevae import SparseVAE
from sparsevae.persistence import FORMAT_VERSION, SavedModelError, directory, place

from .helpers import fit

FILES = ["model.json", "model.safetensors"]


def test_a_saved_model_is_two_files_that_say_what_they_are(saved):
    assert sorted(entry.name for entry in saved.iterdir()) == FILES
    header = json.loads((saved / "model.json").read_text(encoding="utf-8"))
    assert header["class"] == "SparseVAE"
    assert header["format_version"] == FORMAT_VERSION
    assert header["package_version"] == sparsevae.__version__
    about = {"format_version", "package_version", "class", "sha256"}
    assert set(header) == {*about, "parameters", "state"}


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


@pytest.mark.parametrize("module,step", [(directory, "write_synced"), (place, "_move")])
def test_a_save_that_fails_leaves_the_old_model_and_no_crumbs(model, saved, monkeypatch, module, step):
    before = {name: (saved / name).read_bytes() for name in FILES}

    def full(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(module, step, full)
    with pytest.raises(OSError, match="No space left"):
        fit(n_factors=3).save(saved)
    assert {name: (saved / name).read_bytes() for name in FILES} == before
    assert [entry.name for entry in saved.parent.iterdir()] == ["model"]
