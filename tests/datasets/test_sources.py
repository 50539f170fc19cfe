import re
from pathlib import Path

import pytest

from sparsevae.datasets import SOURCES, DataNotFoundError, data_directory
from sparsevae.datasets.sources import get_source, locate
from sparsevae.exceptions import DataError, ParameterError


def test_environment_variable_names_the_data_directory(monkeypatch):
    monkeypatch.setenv("SPARSEVAE_DATA", "/somewhere/else")
    assert data_directory() == Path("/somewhere/else")


def test_data_directory_is_in_the_users_cache_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARSEVAE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_directory() == tmp_path / "sparsevae"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_directory() == tmp_path / ".cache" / "sparsevae"


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
def test_sources_are_complete(source):
    assert source.url.startswith("https://")
    assert source.terms
    assert source.size is None or source.size > 0
    assert source.checksum is None or re.fullmatch(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", source.checksum)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ParameterError, match=r"'movielens-25m'.*got 'netflix'"):
        get_source("netflix")


def test_nothing_found_says_in_one_sentence_where_to_put_the_file(data_folder):
    with pytest.raises(DataNotFoundError, match=re.escape(str(data_folder))) as caught:
        locate(None, ("a.zip",), get_source("movielens-1m"))
    message = str(caught.value)
    assert "put a.zip there (from https://files.grouplens.org" in message
    assert "`sparsevae data fetch movielens-1m`, or pass path=" in message
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, DataError)


def test_a_given_path_must_exist(tmp_path):
    with pytest.raises(DataNotFoundError, match="no such file or folder"):
        locate(tmp_path / "absent", (), get_source("zeisel"))


def test_the_first_name_that_exists_is_taken(data_folder):
    (data_folder / "second").touch()
    (data_folder / "third").touch()
    assert locate(None, ("first", "second", "third"), get_source("zeisel")) == data_folder / "second"


def test_a_directory_takes_the_place_of_the_data_directory(data_folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    for folder in (data_folder, other):
        (folder / "first").touch()
    assert locate(None, ("first",), get_source("zeisel"), other) == other / "first"
