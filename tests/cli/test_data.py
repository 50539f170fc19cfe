from __future__ import annotations

import io
import json
import zipfile

import pytest

from sparsevae.datasets import SOURCES

from .helpers import invoke, refusal


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSEVAE_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_every_source_is_listed_with_its_terms(data_folder):
    result = invoke("data", "list")
    assert result.exit_code == 0
    for name, source in SOURCES.items():
        assert name in result.stdout
        assert source.terms in result.stdout
    assert str(data_folder) in result.stderr


def test_json_says_which_files_are_here(data_folder):
    data_folder.mkdir()
    (data_folder / SOURCES["zeisel"].filename).write_text("")
    listed = {source["name"]: source for source in json.loads(invoke("data", "list", "--json").stdout)}
    assert set(listed) == set(SOURCES)
    assert listed["zeisel"]["present"]
    assert not listed["peerread"]["present"]


def test_fetch_prints_the_path_of_the_file(tmp_path):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("PeerRead-master/README.md", "a mirror")
    (tmp_path / "mirror.zip").write_bytes(archive.getvalue())
    url = (tmp_path / "mirror.zip").as_uri()
    result = invoke("data", "fetch", "peerread", "--url", url, "--directory", tmp_path / "files")
    assert result.exit_code == 0, result.stderr
    path = tmp_path / "files" / SOURCES["peerread"].filename
    assert result.stdout == f"{path}\n"
    assert path.read_bytes() == archive.getvalue()
    assert "research use" in result.stderr
    again = invoke("data", "fetch", "peerread", "--directory", tmp_path / "files", "--json")
    assert json.loads(again.stdout) == {"name": "peerread", "path": str(path)}


def test_an_unknown_name_and_a_dead_address_get_one_sentence(tmp_path):
    assert "'movielens-25m'" in refusal("data", "fetch", "netflix")
    dead = (tmp_path / "nowhere.zip").as_uri()
    assert "Could not download" in refusal("data", "fetch", "peerread", "--url", dead)
