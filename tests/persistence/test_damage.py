"""A saved model that is missing, damaged or from the future is refused in words."""

from __future__ import annotations

import copy
import json
import sys
import tracemalloc

import pandas as pd
import pytest

from sparsevae import SparseVAE
from sparsevae.exceptions import SparseVAEError
from sparsevae.persistence import (
    FORMAT_VERSION,
    SavedModelError,
    SavedModelNotFoundError,
    load_estimator,
    pack_estimator,
    unpack_estimator,
)
from sparsevae.persistence.directory import sign

from .helpers import fit, make_table

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


def change_json(saved, change, *, signed=False):
    """Change what model.json says; signed, as someone would who means harm."""
    path = saved / "model.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    text = json.dumps(document).encode()
    path.write_bytes(sign(text, (saved / "model.safetensors").read_bytes()) if signed else text)


def test_a_newer_format_asks_for_an_upgrade(saved):
    change_json(
        saved, lambda document: document.update(format_version=FORMAT_VERSION + 1, package_version="9.0")
    )
    newer = rf"got format {FORMAT_VERSION + 1}, written by sparsevae 9.0. Upgrade sparsevae"
    with pytest.raises(SavedModelError, match=newer):
        SparseVAE.load(saved)


def test_one_changed_byte_of_either_file_is_noticed(saved):
    for name in FILES:
        content = (saved / name).read_bytes()
        for at in range(0, len(content), max(1, len(content) // 60)):
            (saved / name).write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
            with pytest.raises(SavedModelError):
                SparseVAE.load(saved)
        (saved / name).write_bytes(content)
    SparseVAE.load(saved)


def test_a_letter_of_a_name_is_part_of_the_checksum(tmp_path):
    frame = pd.DataFrame(make_table(), columns=["weight", "b", "c", "d"])
    saved = fit(X=frame).save(tmp_path / "model")
    text = (saved / "model.json").read_text("utf-8")
    (saved / "model.json").write_text(text.replace("weight", "height"), "utf-8")
    with pytest.raises(SavedModelError, match="does not match the checksum"):
        SparseVAE.load(saved)


def test_a_packed_model_is_covered_by_its_checksum_too(model):
    text, tensors = pack_estimator(model)
    assert unpack_estimator(SparseVAE, text, tensors, "here").n_factors == model.n_factors
    for changed in ((text.replace('"n_factors": ', '"n_factors":  ', 1), tensors), (text, tensors[:-1])):
        assert changed != (text, tensors)
        with pytest.raises(SavedModelError, match="Expected here as save wrote it"):
            unpack_estimator(SparseVAE, *changed, "here")


def at(document, *keys):
    for key in keys:
        document = document[key]
    return document


CHANGES = {
    "state": lambda d: d.pop("state"),
    "version": lambda d: d.pop("format_version"),
    "version zero": lambda d: d.update(format_version=0),
    "version true": lambda d: d.update(format_version=True),
    "parameter": lambda d: d["parameters"].update(n_wings=2),
    "config": lambda d: at(d, "state", "module", "config").update(n_factors=3),
    "config type": lambda d: at(d, "state", "module", "config").update(n_factors="many"),
    "config switch": lambda d: at(d, "state", "module", "config").update(linear_path=[]),
    "held without a path": lambda d: at(d, "state", "module", "config").update(
        linear_path=False, held_means=True
    ),
    "huge layers": lambda d: at(d, "state", "module", "config").update(
        hidden_sizes={"$tuple": [30000, 30000]}
    ),
    "many layers": lambda d: at(d, "state", "module", "config").update(hidden_sizes={"$tuple": [1] * 10**5}),
    "huge factors": lambda d: at(d, "state", "module", "config").update(n_factors=10**12),
    "huge features": lambda d: at(d, "state", "fitted").update(n_features_in_=10**9),
    "features": lambda d: at(d, "state", "fitted").update(n_features_in_=True),
    "tensors": lambda d: d["state"]["module"].pop("tensors"),
    "tensor": lambda d: at(d, "state", "module", "tensors").update({"encoder.mean_bias": 3}),
    "fitted": lambda d: d["state"].pop("fitted"),
    "array": lambda d: at(d, "state", "fitted").update(mask_={"$array": "nothing"}),
    "array twice": lambda d: at(d, "state", "fitted").update(effects_=at(d, "state", "fitted", "mask_")),
    "tag": lambda d: at(d, "state", "fitted").update(mask_={"$code": "import os"}),
    "mask": lambda d: at(d, "state", "fitted").update(mask_="full"),
    "active": lambda d: at(d, "state", "fitted").update(active_factors_=[99]),
    "history": lambda d: at(d, "state", "fitted").update(history_=5),
    "names": lambda d: at(d, "state", "fitted").update(feature_names_in_=5),
    "dropped": lambda d: at(d, "state", "fitted").update(dropped_factors_=[1]),
    "factor names": lambda d: at(d, "state", "fitted").update(factor_names_=["zeal"]),
    "renamed effects": lambda d: at(d, "state", "fitted").update(
        effect_=at(d, "state", "fitted").pop("effects_")
    ),
    "names given": lambda d: at(d, "state", "fitted").update(_names_given="perhaps"),
    "method": lambda d: at(d, "state", "fitted").update(transform="gone"),
    "wide text": lambda d: at(d, "state", "fitted").update(
        feature_names_in_={"$objects": {"dtype": "S900000000", "shape": [4], "items": ["a", "b", "c", "d"]}}
    ),
    "wide unicode": lambda d: at(d, "state", "fitted").update(
        feature_names_in_={"$objects": {"dtype": "<U900000000", "shape": [4], "items": ["a", "b", "c", "d"]}}
    ),
    "wide column": lambda d: at(d, "state", "fitted").update(
        extra_={"$index": {"dtype": "S900000000", "values": ["a"]}}
    ),
    "negative shape": lambda d: at(d, "state", "fitted").update(
        extra_={"$objects": {"dtype": "|O", "shape": [-1], "items": ["a"]}}
    ),
    "deep": lambda d: d.update(state=json.loads("[" * 700 + "]" * 700)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("signed", [False, True], ids=["changed", "signed"])
def test_a_json_that_was_changed_is_refused_in_words(saved, change, signed):
    change_json(saved, change, signed=signed)
    with pytest.raises(SavedModelError, match="as save wrote it"):
        SparseVAE.load(saved)


def test_sizes_of_a_text_take_no_memory(saved):
    tracemalloc.start()
    try:
        for name in ("huge layers", "huge factors", "huge features", "wide text", "wide unicode"):
            text = (saved / "model.json").read_bytes()
            change_json(saved, CHANGES[name], signed=True)
            before = max_memory()
            with pytest.raises(SavedModelError):
                SparseVAE.load(saved)
            assert max_memory() - before < 200e6, name
            (saved / "model.json").write_bytes(text)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def max_memory() -> int:
    """The most that this process has had, in bytes; what torch takes is not Python's."""
    resource = pytest.importorskip("resource")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_weights_that_are_no_numbers_are_refused(model, tmp_path):
    broken = copy.deepcopy(model)
    broken.module_.encoder.mean_bias.fill_(float("nan"))
    with pytest.raises(SavedModelError, match=r"finite numbers in encoder.mean_bias"):
        SparseVAE.load(broken.save(tmp_path / "broken"))


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
