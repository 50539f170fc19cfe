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


TYPES = [
    ('transpose = "no"', "transpose"),
    ('header = "no"', "header"),
    ("drop = 5", "drop"),
    ("drop = [1, 2]", "drop"),
    ("feature_names = 5", "feature_names"),
    ("layer = true", "layer"),
    ("id_column = 0", "id_column"),
]


@pytest.mark.parametrize("line,name", TYPES)
def test_an_option_of_another_type_is_refused_with_the_file(tmp_path, line, name):
    with pytest.raises(ParameterError, match=rf"Expected {name} to be .*\(In \[table\] of .*fit.toml"):
        config(tmp_path, f"[table]\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "n_factors = true",
        'max_epochs = "3"',
        "n_factors = 2.5",
        "learning_rate = '0.1'",
        "hidden_sizes = 64",
        'hidden_sizes = ["a"]',
        "inclusion_prior = [1, 2, 3]",
        "device = 5",
        "anchors = {a = 'b'}",
        "anchors = [1]",
        "precision = 32",
    ],
)
def test_a_parameter_of_another_type_is_refused_with_the_file(tmp_path, line):
    with pytest.raises(ParameterError, match=rf"Expected {line.split(' ')[0]} in .*fit.toml to be"):
        config(tmp_path, line)


def test_whole_numbers_are_numbers(tmp_path):
    parameters, _ = config(tmp_path, "learning_rate = 1\nspike_rate = 20\nanchors = {a = 0}\n")
    assert parameters == {"learning_rate": 1, "spike_rate": 20, "anchors": {"a": 0}}


def test_a_string_is_one_name_of_a_column(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,ab\n1,2,3\n4,5,6\n")
    _, reading = config(tmp_path, "[table]\ndrop = 'ab'\n")
    assert list(read_table(tmp_path / "t.csv", **reading).feature_names) == ["a", "b"]


def test_a_file_that_is_nested_too_deep_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="to be TOML"):
        config(tmp_path, "init = " + "[" * 5000 + "]" * 5000)
