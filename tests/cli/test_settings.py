from __future__ import annotations

import pytest

from sparsevae.cli.settings import merge_settings, read_config
from sparsevae.exceptions import ParameterError
from sparsevae.io import read_table


def config(tmp_path, text):
    (tmp_path / "fit.toml").write_text(text)
    return read_config(tmp_path / "fit.toml")


def test_no_file_is_an_empty_one(tmp_path):
    assert read_config(None) == ({}, {}) == config(tmp_path, "")


def test_keys_are_the_parameters_of_the_estimator(tmp_path):
    text = 'n_factors = 4\nhidden_sizes = [32]\n[likelihood]\ngaussian = ["a"]\nbernoulli = ["b"]\n'
    parameters, _ = config(tmp_path, text)
    likelihood = {"gaussian": ["a"], "bernoulli": ["b"]}
    assert parameters == {"n_factors": 4, "hidden_sizes": (32,), "likelihood": likelihood}


def test_the_table_section_says_how_to_read(tmp_path):
    text = '[table]\ndrop = ["sex", "age"]\nid_column = "who"\nfeature_names = "names.txt"\n'
    _, reading = config(tmp_path, text)
    assert reading == {"drop": ["sex", "age"], "id_column": "who", "feature_names": tmp_path / "names.txt"}


def test_what_is_typed_wins(tmp_path):
    written = config(tmp_path, 'n_factors = 4\nn_init = 2\n[table]\nheader = true\nid_column = "who"\n')
    typed = {"n_factors": 7, "max_epochs": None}
    parameters, reading = merge_settings(written, typed, {"header": False, "id_column": None, "drop": None})
    assert parameters == {"n_factors": 7, "n_init": 2}
    assert reading == {"header": False, "id_column": "who"}


@pytest.mark.parametrize(
    "text,phrase",
    [
        ("n_factors =", "to be TOML"),
        ("factors = 3", "got 'factors'"),
        ("verbose = 1", "got 'verbose'"),
        ("[table]\nheadings = true", r"in \[table\] among header.*got 'headings'"),
        ("table = 3", "to be a section"),
    ],
)
def test_a_bad_file_is_refused_in_words(tmp_path, text, phrase):
    with pytest.raises(ParameterError, match=phrase):
        config(tmp_path, text)


def test_a_value_of_another_type_is_refused_before_the_table_is_read(tmp_path):
    _, reading = config(tmp_path, "[table]\nheader = 'yes'")
    with pytest.raises(ParameterError, match="Expected header to be True"):
        read_table(tmp_path / "nowhere.csv", **reading)
