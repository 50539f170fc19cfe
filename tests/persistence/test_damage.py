"""A saved model that is missing, damaged or from the future is refused in words."""

from __future__ import annotations

import json

import pytest

from sparsevae import SparseVAE
from sparsevae.exceptions import SparseVAEError
from sparsevae.persistence import FORMAT_VERSION, SavedModelError, SavedModelNotFoundError, load_estimator

FILES = ["model.json", "model.safetensors"]


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
    newer = rf"got format {FORMAT_VERSION + 1}, written by sparsevae 9.0. Upgrade sparsevae"
    with pytest.raises(SavedModelError, match=newer):
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
